//! The usbmux codec: how a stream is cut into packets, and what is read from
//! the property list in each.

use std::fmt::Debug;

use fleetgate_usbmux::{
    Client, ConnectionType, Decoder, Event, FrameError, Header, InvalidMessage, MAX_PACKET, Packet,
    Phone, Reply, Request, Unencodable,
};

use super::cuts;

/// A cap that a fuzzer's streams pass.
const LOW_LIMIT: usize = 256;

/// Longer messages are not written again: a property list may unfold, and one
/// near the limit need not fit into it in another form.
const LONGEST_WRITTEN: usize = 1024 * 1024;

/// Takes the bytes as a stream of packets, and as one packet's payload.
///
/// # Panics
///
/// If the packets depend on how the stream was cut, bytes are lost or made up,
/// a limit is passed, an error is forgotten, or what was read is not what is
/// read after it was written.
pub fn usbmux(data: &[u8]) {
    for packet in stream(data) {
        message(&packet);
    }
    message(&around(data));
}

fn stream(data: &[u8]) -> Vec<Packet> {
    let [whole, others @ ..] = cuts(data).map(|pieces| decode(Decoder::new(), &pieces));
    for other in others {
        assert_eq!(other, whole, "the cut decides");
    }

    let (packets, end) = &whole;
    let mut taken = 0;
    for packet in packets {
        let length = packet.header.length as usize;
        assert!(length <= MAX_PACKET);
        assert_eq!(length, Header::LEN + packet.payload.len());
        assert_eq!(packet.payload, data[taken + Header::LEN..taken + length]);
        taken += length;
    }
    if let Ok(rest) = end {
        assert_eq!(rest, &data[taken..], "what is left is what comes next");
    }

    let (below, end) = decode(Decoder::with_limit(LOW_LIMIT), &[data]);
    let fits = |packet: &&Packet| packet.header.length as usize <= LOW_LIMIT;
    assert_eq!(below.len(), packets.iter().take_while(fits).count());
    if below.len() < packets.len() {
        assert!(matches!(end, Err(FrameError::TooLong { .. })), "{end:?}");
    }
    whole.0
}

/// Everything that a decoder makes of a stream in these pieces.
fn decode(mut decoder: Decoder, pieces: &[&[u8]]) -> (Vec<Packet>, Result<Vec<u8>, FrameError>) {
    let mut packets = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_packet() {
                Ok(Some(packet)) => packets.push(packet),
                Ok(None) => break,
                Err(error) => {
                    decoder.push(piece);
                    assert_eq!(decoder.next_packet(), Err(error.clone()), "it stands");
                    return (packets, Err(error));
                }
            }
        }
    }
    (packets, Ok(decoder.into_rest().into()))
}

/// The packet that has this payload.
fn around(payload: &[u8]) -> Packet {
    let header = Header {
        length: u32::try_from(Header::LEN + payload.len()).unwrap_or(u32::MAX),
        version: Header::VERSION,
        message: Header::PLIST,
        tag: 7,
    };
    Packet {
        header,
        payload: payload.to_vec().into(),
    }
}

fn message(packet: &Packet) {
    let tag = packet.header.tag;
    let other = tag.wrapping_add(1);
    assert!(
        matches!(Reply::decode(packet, other), Err(InvalidMessage::Tag { expected, got }) if (expected, got) == (other, tag)),
        "the answer to something else"
    );

    if let Ok(mut reply) = Reply::decode(packet, tag) {
        // An entry that could not be read cannot be written.
        if let Reply::DeviceList(list) = &mut reply {
            list.skipped = 0;
        }
        if reply_texts(&reply).into_iter().all(is_plain) {
            let read = |packet: &Packet| Reply::decode(packet, tag);
            assert_kept(&reply, reply.encode(tag), tag, read);
        }
    }
    if let Ok(event) = Event::decode(packet)
        && event_texts(&event).into_iter().all(is_plain)
    {
        assert_kept(&event, event.encode(), 0, Event::decode);
    }
    if let Ok(request) = Request::decode(packet) {
        let client = Client::decode(packet).unwrap_or_else(|_| Client::new("fuzz", "1"));
        let own = [client.name.as_str(), client.version.as_str()];
        if request_texts(&request).into_iter().chain(own).all(is_plain) {
            let read = |packet: &Packet| Ok((Request::decode(packet)?, Client::decode(packet)?));
            let written = request.encode(&client, tag);
            assert_kept(&(request, client), written, tag, read);
        }
    }
}

/// `value` was `written`: reads it back and compares.
fn assert_kept<T: PartialEq + Debug>(
    value: &T,
    written: Result<impl AsRef<[u8]>, Unencodable>,
    tag: u32,
    read: impl Fn(&Packet) -> Result<T, InvalidMessage>,
) {
    let written = match written {
        Ok(written) => written,
        Err(Unencodable::TooLarge { bytes }) => {
            assert!(bytes + Header::LEN > MAX_PACKET);
            return;
        }
        Err(Unencodable::Plist(error)) => panic!("{value:?} cannot be written: {error}"),
    };
    let written = written.as_ref();
    if written.len() > LONGEST_WRITTEN {
        return;
    }
    let (packets, rest) = decode(Decoder::new(), &[written]);
    let [packet] = packets.as_slice() else {
        panic!("{} packets for one message", packets.len());
    };
    assert_eq!(rest, Ok(Vec::new()));
    assert_eq!(packet.header.tag, tag);
    match read(packet) {
        Ok(again) => assert_eq!(&again, value),
        Err(error) => panic!("{value:?} cannot be read back: {error}"),
    }
}

/// Text that XML carries as it is.
fn is_plain(text: &str) -> bool {
    let odd = |c: char| c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}');
    !text.contains(odd)
}

fn reply_texts(reply: &Reply) -> Vec<&str> {
    match reply {
        Reply::Result(_) | Reply::PairRecord(_) => Vec::new(),
        Reply::DeviceList(list) => list.phones.iter().flat_map(phone_texts).collect(),
        Reply::Buid(buid) => vec![buid],
        Reply::Listeners(names) => names.iter().map(String::as_str).collect(),
    }
}

fn event_texts(event: &Event) -> Vec<&str> {
    match event {
        Event::Attached(phone) => phone_texts(phone).to_vec(),
        Event::Detached(_) | Event::Paired(_) => Vec::new(),
        Event::Unknown { message_type } => vec![message_type],
    }
}

fn phone_texts(phone: &Phone) -> [&str; 2] {
    let connection = match &phone.connection {
        ConnectionType::Usb | ConnectionType::Network => "",
        ConnectionType::Other(name) => name,
    };
    [connection, &phone.serial]
}

fn request_texts(request: &Request) -> Vec<&str> {
    match request {
        Request::ListDevices
        | Request::Listen
        | Request::Connect { .. }
        | Request::ReadBuid
        | Request::ListListeners => Vec::new(),
        Request::ReadPairRecord { id }
        | Request::SavePairRecord { id, .. }
        | Request::DeletePairRecord { id } => vec![id],
        Request::Other(name) => vec![name],
    }
}
