//! What holds for every input: any cut of a stream gives the same packets, what
//! is written is read back, and nothing panics.

use crate::{
    Client, ConnectionType, Decoder, DeviceList, Event, FrameError, MuxDeviceId, Packet,
    PairRecord, Phone, Port, Reply, Request, ResultCode,
};
use bytes::{BufMut, Bytes};
use proptest::prelude::*;

/// Text that XML can carry as it is.
fn text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn device() -> impl Strategy<Value = MuxDeviceId> {
    any::<u32>().prop_map(MuxDeviceId)
}

fn record() -> impl Strategy<Value = PairRecord> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(|bytes| PairRecord(Bytes::from(bytes)))
}

fn request() -> impl Strategy<Value = Request> {
    let port = (1_u16..).prop_map(|number| Port::new(number.into()).unwrap());
    prop_oneof![
        Just(Request::ListDevices),
        Just(Request::Listen),
        Just(Request::ReadBuid),
        Just(Request::ListListeners),
        (device(), port).prop_map(|(device, port)| Request::Connect { device, port }),
        text().prop_map(|id| Request::ReadPairRecord { id }),
        text().prop_map(|id| Request::DeletePairRecord { id }),
        (text(), record(), prop::option::of(device()))
            .prop_map(|(id, record, device)| Request::SavePairRecord { id, record, device }),
        text().prop_map(|name| Request::Other(format!("x-{name}"))),
    ]
}

prop_compose! {
    fn phone()(
        device in device(),
        connection in prop_oneof![
            Just(ConnectionType::Usb),
            Just(ConnectionType::Network),
            text().prop_map(|name| ConnectionType::Other(format!("x-{name}"))),
        ],
        serial in text(),
        product in prop::option::of(any::<u64>()),
        location in prop::option::of(any::<u64>()),
        speed in prop::option::of(any::<u64>()),
    ) -> Phone {
        Phone { device, connection, serial, product, location, speed }
    }
}

fn reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        any::<i64>().prop_map(|number| Reply::Result(ResultCode::from(number))),
        prop::collection::vec(phone(), 0..4)
            .prop_map(|phones| Reply::DeviceList(DeviceList { phones, skipped: 0 })),
        text().prop_map(Reply::Buid),
        record().prop_map(Reply::PairRecord),
        prop::collection::vec(text(), 0..4).prop_map(Reply::Listeners),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        phone().prop_map(Event::Attached),
        device().prop_map(Event::Detached),
        device().prop_map(Event::Paired),
        text().prop_map(|name| Event::Unknown {
            message_type: format!("x-{name}")
        }),
    ]
}

/// Everything that a decoder makes of a stream that comes in these pieces.
fn packets<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Packet>, Result<Bytes, FrameError>) {
    let mut decoder = Decoder::new();
    let mut packets = Vec::new();
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
            match decoder.next_packet() {
                Ok(Some(packet)) => packets.push(packet),
                Ok(None) => break,
                Err(error) => return (packets, Err(error)),
            }
        }
    }
    (packets, Ok(decoder.into_rest()))
}

fn parse(bytes: &[u8]) -> Packet {
    let (mut packets, rest) = packets(std::iter::once(bytes));
    assert_eq!(rest, Ok(Bytes::new()));
    packets.pop().unwrap()
}

/// Cuts `stream` at these places, wherever they fall.
fn cut<'a>(stream: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
    places.push(stream.len());
    places.sort_unstable();
    let mut start = 0;
    let piece = |end| {
        let piece = &stream[start..end];
        start = end;
        piece
    };
    places.into_iter().map(piece).collect()
}

proptest! {
    #[test]
    fn requests_are_read_back_as_written(message in request(), name in text(), tag: u32) {
        let packet = parse(&message.encode(&Client::new(name, "1"), tag).unwrap());
        prop_assert_eq!(packet.header.tag, tag);
        prop_assert_eq!(Request::decode(&packet).unwrap(), message);
    }

    #[test]
    fn replies_are_read_back_as_written(message in reply(), tag: u32) {
        let packet = parse(&message.encode(tag).unwrap());
        prop_assert_eq!(Reply::decode(&packet, tag).unwrap(), message);
    }

    #[test]
    fn events_are_read_back_as_written(message in event()) {
        let packet = parse(&message.encode().unwrap());
        prop_assert_eq!(packet.header.tag, 0);
        prop_assert_eq!(Event::decode(&packet).unwrap(), message);
    }

    #[test]
    fn any_cut_of_a_stream_gives_the_same_packets(
        events in prop::collection::vec(event(), 0..5),
        tail in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let mut stream: Vec<u8> =
            events.iter().flat_map(|event| event.encode().unwrap()).collect();
        stream.extend(tail);
        let whole = packets(std::iter::once(&stream[..]));
        prop_assert!(whole.0.len() >= events.len());
        prop_assert_eq!(packets(cut(&stream, &cuts).into_iter()), whole.clone());
        prop_assert_eq!(packets(stream.chunks(1)), whole);
    }

    #[test]
    fn arbitrary_payloads_never_panic(
        magic in prop::sample::select(vec!["", "bplist00", "<plist><dict><key>"]),
        payload in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let payload = [magic.as_bytes(), &payload].concat();
        let mut stream = u32::try_from(payload.len() + 16).unwrap().to_le_bytes().to_vec();
        stream.extend([1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0]);
        stream.extend(payload);
        let packet = parse(&stream);
        let _ = (Request::decode(&packet), Reply::decode(&packet, 0), Event::decode(&packet));
    }

    #[test]
    fn arbitrary_streams_never_panic(stream in prop::collection::vec(any::<u8>(), 0..300)) {
        for packet in packets(stream.chunks(7)).0 {
            let _ = (Request::decode(&packet), Reply::decode(&packet, 0), Event::decode(&packet));
        }
    }

    #[test]
    fn damaged_messages_never_panic(
        message in event(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut stream = message.encode().unwrap().to_vec();
        for (place, byte) in damage {
            let place = 16 + place.index(stream.len() - 16);
            stream[place] = byte;
        }
        let _ = Event::decode(&parse(&stream));
    }
}
