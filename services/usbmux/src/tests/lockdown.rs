//! Lockdown's messages against bytes written by hand, against abuse, and against
//! themselves.

use std::collections::BTreeMap;

use bytes::BufMut;
use proptest::prelude::*;

use crate::lockdown::{Decoder, ErrorCode, MAX_MESSAGE, Message, Reply, Request, Value};
use crate::{FrameError, InvalidMessage};

const PROLOGUE: &str = concat!(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
    "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" ",
    "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n",
    "<plist version=\"1.0\">\n",
);

/// A message with these fields: the length in network order, then the list.
fn message(fields: &str) -> Vec<u8> {
    let xml = format!("{PROLOGUE}<dict>\n{fields}</dict>\n</plist>\n");
    let length = u16::try_from(xml.len()).unwrap();
    let mut bytes = vec![0, 0];
    bytes.extend(length.to_be_bytes());
    bytes.extend(xml.into_bytes());
    bytes
}

fn text(key: &str, value: &str) -> String {
    format!("\t<key>{key}</key>\n\t<string>{value}</string>\n")
}

fn parse(bytes: &[u8]) -> Message {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let message = decoder.next_message().unwrap().unwrap();
    assert!(decoder.is_empty());
    message
}

#[test]
fn requests_are_the_bytes_of_the_protocol() {
    let label = text("Label", "fleetgate");
    let get = text("Request", "GetValue");
    let cases = [
        (
            Request::QueryType,
            format!("{label}{}", text("Request", "QueryType")),
        ),
        (
            Request::value("DeviceName"),
            format!("{}{label}{get}", text("Key", "DeviceName")),
        ),
        (
            Request::GetValue {
                domain: Some("com.apple.disk_usage".to_owned()),
                key: None,
            },
            format!("{}{label}{get}", text("Domain", "com.apple.disk_usage")),
        ),
        (
            Request::Other("StartSession".to_owned()),
            format!("{label}{}", text("Request", "StartSession")),
        ),
    ];
    for (request, fields) in cases {
        let bytes = message(&fields);
        assert_eq!(request.encode("fleetgate").unwrap(), bytes, "{request:?}");
        assert_eq!(Request::decode(&parse(&bytes)).unwrap(), request);
    }
}

#[test]
fn answers_are_the_bytes_of_the_protocol() {
    let name = Request::value("DeviceName");
    let all = Request::GetValue {
        domain: None,
        key: None,
    };
    let get = text("Request", "GetValue");
    let named = format!("{}{get}", text("Key", "DeviceName"));
    let values = [
        ("DeviceName", Value::from("left & right")),
        ("ProtocolVersion", Value::Integer(2)),
        ("TrustedHostAttached", Value::Boolean(true)),
    ];
    let values = values.map(|(key, value)| (key.to_owned(), value));
    let table = format!(
        "{get}\t<key>Value</key>\n\t<dict>\n\
         \t\t<key>DeviceName</key>\n\t\t<string>left &amp; right</string>\n\
         \t\t<key>ProtocolVersion</key>\n\t\t<integer>2</integer>\n\
         \t\t<key>TrustedHostAttached</key>\n\t\t<true/>\n\t</dict>\n"
    );
    let cases = [
        (
            &Request::QueryType,
            Reply::Type("com.apple.mobile.lockdown".to_owned()),
            text("Request", "QueryType") + &text("Type", "com.apple.mobile.lockdown"),
        ),
        (
            &name,
            Reply::Value(Value::from("left")),
            format!("{named}{}", text("Value", "left")),
        ),
        (
            &all,
            Reply::Value(Value::Table(BTreeMap::from(values))),
            table,
        ),
        (
            &name,
            Reply::Refused(ErrorCode::PasswordProtected),
            format!("{}{named}", text("Error", "PasswordProtected")),
        ),
    ];
    for (request, reply, fields) in cases {
        let bytes = message(&fields);
        assert_eq!(reply.encode(request).unwrap(), bytes, "{reply:?}");
        assert_eq!(Reply::decode(&parse(&bytes), request).unwrap(), reply);
    }
}

#[test]
fn every_code_has_its_spelling_and_others_are_kept() {
    let cases = [
        ("PasswordProtected", ErrorCode::PasswordProtected),
        ("InvalidHostID", ErrorCode::InvalidHostId),
        ("MissingValue", ErrorCode::MissingValue),
        ("GetProhibited", ErrorCode::GetProhibited),
        ("SessionInactive", ErrorCode::SessionInactive),
        (
            "PairingDialogResponsePending",
            ErrorCode::PairingDialogResponsePending,
        ),
        ("UserDeniedPairing", ErrorCode::UserDeniedPairing),
        ("InvalidRequest", ErrorCode::InvalidRequest),
        ("EscrowLocked", ErrorCode::Other("EscrowLocked".to_owned())),
    ];
    for (spelt, code) in cases {
        assert_eq!(code.to_string(), spelt);
        let bytes = message(&(text("Error", spelt) + &text("Request", "QueryType")));
        let reply = Reply::decode(&parse(&bytes), &Request::QueryType).unwrap();
        assert_eq!(reply, Reply::Refused(code));
    }
}

#[test]
fn fields_that_old_phones_add_do_not_matter() {
    let fields = [
        text("Key", "DeviceName"),
        text("Request", "GetValue"),
        text("Result", "Success"),
        text("Value", "Alice's phone"),
    ];
    let reply = Reply::decode(
        &parse(&message(&fields.concat())),
        &Request::value("DeviceName"),
    );
    assert_eq!(reply.unwrap(), Reply::Value(Value::from("Alice's phone")));
}

#[test]
fn an_answer_to_another_question_is_none() {
    let name = Request::value("DeviceName");
    let get = text("Request", "GetValue");
    let value = text("Value", "x");
    let cases = [
        (
            format!("{get}{}{value}", text("Key", "UniqueDeviceID")),
            "Key",
        ),
        (format!("{}{value}", text("Request", "SetValue")), "Request"),
        (value.clone(), "Request"),
        (get.clone(), "Value"),
        (
            format!("{get}\t<key>Value</key>\n\t<data>AAAA</data>\n"),
            "Value",
        ),
        (format!("{}{get}", text("Error", "no code at all")), "Error"),
        (format!("{}{get}", text("Error", "")), "Error"),
        (format!("{}{get}", text("Error", &"e".repeat(65))), "Error"),
    ];
    for (fields, key) in cases {
        let outcome = Reply::decode(&parse(&message(&fields)), &name);
        assert!(
            matches!(outcome, Err(InvalidMessage::Key(wrong)) if wrong == key),
            "{fields}: {outcome:?}"
        );
    }
}

#[test]
fn a_length_over_the_limit_is_refused_before_anything_of_it_has_come() {
    for length in [u32::try_from(MAX_MESSAGE).unwrap() + 1, u32::MAX] {
        let mut decoder = Decoder::new();
        decoder.push(&length.to_be_bytes());
        for _ in 0..2 {
            assert_eq!(
                decoder.next_message().unwrap_err(),
                FrameError::TooLong {
                    length,
                    limit: MAX_MESSAGE
                }
            );
        }
    }
    // A length within it reserves nothing either.
    let mut decoder = Decoder::new();
    decoder.push(&u32::try_from(MAX_MESSAGE).unwrap().to_be_bytes());
    assert!(decoder.next_message().unwrap().is_none());
    assert!(decoder.input().chunk_mut().len() < 16 * 1024);
}

#[test]
fn an_empty_message_is_no_property_list_and_the_next_one_counts() {
    let mut stream = vec![0; 4];
    stream.extend(Request::QueryType.encode("x").unwrap());
    let mut decoder = Decoder::new();
    decoder.push(&stream);
    let empty = decoder.next_message().unwrap().unwrap();
    assert!(Request::decode(&empty).is_err());
    let next = decoder.next_message().unwrap().unwrap();
    assert_eq!(Request::decode(&next).unwrap(), Request::QueryType);
}

#[test]
fn binary_property_lists_are_read_too() {
    let dictionary = plist::Dictionary::from_iter([("Request", "QueryType"), ("Type", "x")]);
    let mut stream = vec![0; 4];
    plist::Value::Dictionary(dictionary)
        .to_writer_binary(&mut stream)
        .unwrap();
    let length = u32::try_from(stream.len() - 4).unwrap();
    stream[..4].copy_from_slice(&length.to_be_bytes());
    let reply = Reply::decode(&parse(&stream), &Request::QueryType).unwrap();
    assert_eq!(reply, Reply::Type("x".to_owned()));
}

#[test]
fn what_a_phone_says_shows_in_nothing_that_is_formatted() {
    const SECRET: &str = "Zanzibar";
    let name = Request::value("DeviceName");
    let whole =
        |value: &str| message(&(text("Key", "DeviceName") + &text("Request", "GetValue") + value));
    let good = parse(&whole(&text("Value", SECRET)));
    let mut decoder = Decoder::new();
    decoder.push(SECRET.as_bytes());
    let mut shown = vec![format!(
        "{good:?} {:?} {decoder:?}",
        Reply::decode(&good, &name)
    )];
    let broken = [
        format!("\t<key>Value</key>\n\t<{SECRET}>x</{SECRET}>\n"),
        format!("\t<key>Value</key>\n\t<integer>{SECRET}</integer>\n"),
        format!("\t<key>Value</key>\n\t<date>{SECRET}</date>\n"),
        format!("\t<key>Value</key>\n\t<string>{SECRET}</integer>\n"),
        format!("\t<key>{SECRET}</key>\n"),
        text("Error", &format!("{SECRET} {SECRET}")),
        format!("{SECRET}\n"),
        text(SECRET, SECRET),
    ];
    for value in broken {
        let error = Reply::decode(&parse(&whole(&value)), &name).unwrap_err();
        shown.push(format!("{error} {error:?}"));
    }
    let told: Vec<_> = shown.iter().filter(|text| text.contains(SECRET)).collect();
    assert!(told.is_empty(), "{told:#?}");
}

/// Text that XML can carry as it is.
fn words() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        Just(Request::QueryType),
        (prop::option::of(words()), prop::option::of(words()))
            .prop_map(|(domain, key)| Request::GetValue { domain, key }),
        words().prop_map(|name| Request::Other(format!("x-{name}"))),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        words().prop_map(Value::Text),
        any::<i64>().prop_map(Value::Integer),
        any::<bool>().prop_map(Value::Boolean),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop::collection::btree_map(words(), inner, 0..4).prop_map(Value::Table)
    })
}

fn code() -> impl Strategy<Value = ErrorCode> {
    prop_oneof![
        Just(ErrorCode::InvalidHostId),
        "[a-z][A-Za-z0-9_]{0,60}".prop_map(ErrorCode::Other),
    ]
}

/// A request and an answer that fits it.
fn answered() -> impl Strategy<Value = (Request, Reply)> {
    (request(), words(), value(), code(), any::<bool>()).prop_map(
        |(request, service, value, code, refused)| {
            let reply = match &request {
                Request::QueryType if !refused => Reply::Type(service),
                Request::GetValue { .. } if !refused => Reply::Value(value),
                Request::QueryType | Request::GetValue { .. } | Request::Other(_) => {
                    Reply::Refused(code)
                }
            };
            (request, reply)
        },
    )
}

/// Everything that a decoder makes of a stream that comes in these pieces.
fn messages<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<Message>, Result<bool, FrameError>) {
    let mut decoder = Decoder::new();
    let mut messages = Vec::new();
    for (number, piece) in pieces.enumerate() {
        // Both ways in, so that neither differs from the other.
        if number % 2 == 0 {
            decoder.push(piece);
        } else {
            let mut rest = piece;
            while !rest.is_empty() {
                let input = decoder.input();
                let fits = rest.len().min(input.chunk_mut().len());
                input.put_slice(&rest[..fits]);
                rest = &rest[fits..];
            }
        }
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Err(error)),
            }
        }
    }
    (messages, Ok(decoder.is_empty()))
}

proptest! {
    #[test]
    fn requests_are_read_back_as_written(message in request(), label in words()) {
        let bytes = message.encode(&label).unwrap();
        prop_assert_eq!(Request::decode(&parse(&bytes)).unwrap(), message);
    }

    #[test]
    fn answers_are_read_back_as_written((request, reply) in answered()) {
        let bytes = reply.encode(&request).unwrap();
        prop_assert_eq!(Reply::decode(&parse(&bytes), &request).unwrap(), reply);
    }

    #[test]
    fn any_cut_of_a_stream_gives_the_same_messages(
        requests in prop::collection::vec(request(), 0..5),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        piece in 1..50_usize,
    ) {
        let mut stream: Vec<u8> =
            requests.iter().flat_map(|request| request.encode("x").unwrap()).collect();
        stream.extend(tail);
        let whole = messages(std::iter::once(&stream[..]));
        prop_assert!(whole.0.len() >= requests.len());
        prop_assert_eq!(messages(stream.chunks(piece)), whole.clone());
        prop_assert_eq!(messages(stream.chunks(1)), whole);
    }

    #[test]
    fn nothing_panics(
        magic in prop::sample::select(vec!["", "bplist00", "<plist><dict><key>"]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        request in request(),
    ) {
        let payload = [magic.as_bytes(), &bytes].concat();
        let mut stream = u32::try_from(payload.len()).unwrap().to_be_bytes().to_vec();
        stream.extend(payload);
        for message in messages(stream.chunks(7)).0.into_iter().chain(messages(bytes.chunks(7)).0) {
            let _ = (Request::decode(&message), Reply::decode(&message, &request));
        }
    }
}
