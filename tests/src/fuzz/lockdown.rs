//! The lockdown codec: how a stream is cut into messages, and what is read from
//! the property list in each.

use fleetgate_usbmux::lockdown::{Decoder, ErrorCode, MAX_MESSAGE, Message, Reply, Request, Value};
use fleetgate_usbmux::{FrameError, Unencodable};

use super::{assert_brief, cuts};

/// Takes the bytes as a stream of messages, and as one message's property list.
///
/// # Panics
///
/// If the messages depend on how the stream was cut, bytes are lost or made up,
/// the limit is passed, an error is forgotten, or what was read is not what is
/// read after it was written.
pub fn lockdown(data: &[u8]) {
    for message in stream(data) {
        check(&message);
    }
    if data.len() <= MAX_MESSAGE {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let whole = [&length.to_be_bytes()[..], data].concat();
        let (messages, end) = decode(&[&whole]);
        assert!(matches!(end, Ok(true)), "{end:?}");
        assert_eq!(messages.len(), 1);
        messages.iter().for_each(check);
    }
}

fn stream(data: &[u8]) -> Vec<Message> {
    let [whole, others @ ..] = cuts(data).map(|pieces| decode(&pieces));
    for other in others {
        assert_eq!(other, whole, "the cut decides");
    }
    let (messages, end) = whole;
    // Cut by hand.
    let (mut rest, mut count) = (data, 0);
    let illegal = loop {
        let Some((length, after)) = rest.split_first_chunk() else {
            break false;
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_MESSAGE {
            break true;
        }
        let Some((_, after)) = after.split_at_checked(length) else {
            break false;
        };
        (rest, count) = (after, count + 1);
    };
    assert_eq!(messages.len(), count);
    match end {
        Ok(empty) => assert!(!illegal && empty == rest.is_empty()),
        Err(error) => assert!(illegal && matches!(error, FrameError::TooLong { .. })),
    }
    messages
}

/// Everything that a decoder makes of a stream in these pieces, and whether it
/// ends between messages.
fn decode(pieces: &[&[u8]]) -> (Vec<Message>, Result<bool, FrameError>) {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    decoder.push(piece);
                    assert_eq!(decoder.next_message(), Err(error.clone()), "it stands");
                    return (messages, Err(error));
                }
            }
        }
    }
    (messages, Ok(decoder.is_empty()))
}

fn check(message: &Message) {
    let asked = match Request::decode(message) {
        Ok(request) => {
            if request_texts(&request).into_iter().all(is_plain) {
                assert_kept(&request, request.encode("fuzz"), Request::decode);
            }
            Some(request)
        }
        Err(error) => {
            assert_brief(&error.to_string());
            None
        }
    };
    let questions = [
        Request::QueryType,
        Request::value("DeviceName"),
        Request::GetValue {
            domain: None,
            key: None,
        },
        Request::Other("StartSession".to_owned()),
    ];
    for request in questions.into_iter().chain(asked) {
        match Reply::decode(message, &request) {
            Ok(reply) => {
                let plain = request_texts(&request).into_iter().all(is_plain);
                if plain && is_plain_reply(&reply) {
                    let read = |message: &Message| Reply::decode(message, &request);
                    assert_kept(&reply, reply.encode(&request), read);
                }
            }
            Err(error) => assert_brief(&error.to_string()),
        }
    }
}

/// `value` was `written`: reads it back and compares.
fn assert_kept<T: PartialEq + std::fmt::Debug, E: std::fmt::Display>(
    value: &T,
    written: Result<impl AsRef<[u8]>, Unencodable>,
    read: impl Fn(&Message) -> Result<T, E>,
) {
    let written = match written {
        Ok(written) => written,
        // A property list may unfold.
        Err(Unencodable::TooLarge { bytes }) => {
            assert!(bytes > MAX_MESSAGE);
            return;
        }
        Err(Unencodable::Plist(error)) => panic!("{value:?} cannot be written: {error}"),
    };
    let (messages, end) = decode(&[written.as_ref()]);
    assert!(matches!(end, Ok(true)), "{end:?}");
    let [message] = messages.as_slice() else {
        panic!("{} messages for one", messages.len());
    };
    match read(message) {
        Ok(again) => assert!(again == *value, "{value:?} is read back as {again:?}"),
        Err(error) => panic!("{value:?} cannot be read back: {error}"),
    }
}

/// Text that XML carries as it is.
fn is_plain(text: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    !text.contains(odd)
}

fn request_texts(request: &Request) -> Vec<&str> {
    match request {
        Request::QueryType => Vec::new(),
        Request::GetValue { domain, key } => domain.iter().chain(key).map(String::as_str).collect(),
        Request::Other(name) => vec![name],
    }
}

fn is_plain_reply(reply: &Reply) -> bool {
    match reply {
        Reply::Type(service) => is_plain(service),
        Reply::Value(value) => is_plain_value(value),
        Reply::Refused(code) => {
            if let ErrorCode::Other(code) = code {
                assert!(code.len() <= 64 && code.is_ascii(), "{code}");
            }
            true
        }
    }
}

fn is_plain_value(value: &Value) -> bool {
    match value {
        Value::Text(text) => is_plain(text),
        Value::Integer(_) | Value::Boolean(_) => true,
        Value::Table(table) => table
            .iter()
            .all(|(key, value)| is_plain(key) && is_plain_value(value)),
    }
}
