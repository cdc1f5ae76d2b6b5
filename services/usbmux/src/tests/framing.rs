//! How a stream is cut into packets, and what becomes of one that cannot be.

use crate::{
    ConnectionType, Decoder, DeviceList, Event, FrameError, InvalidMessage, MAX_PACKET,
    MuxDeviceId, Packet, Phone, Reply, ResultCode,
};

fn header(length: u32, message: u32) -> Vec<u8> {
    [length, 1, message, 0]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect()
}

fn phones(count: u32) -> Vec<Phone> {
    let phone = |number| Phone {
        device: MuxDeviceId(number),
        connection: ConnectionType::Usb,
        serial: format!("00008110-{number:016X}"),
        product: Some(4776),
        location: Some(number.into()),
        speed: Some(480_000_000),
    };
    (1..=count).map(phone).collect()
}

fn plist(payload: &[u8]) -> Packet {
    let length = u32::try_from(16 + payload.len()).unwrap();
    let mut decoder = Decoder::new();
    decoder.push(&header(length, 8));
    decoder.push(payload);
    decoder.next_packet().unwrap().unwrap()
}

#[test]
fn lengths_that_do_not_cover_the_header_are_errors() {
    for length in [0, 15] {
        let mut decoder = Decoder::new();
        decoder.push(&header(length, 8));
        assert_eq!(decoder.next_packet(), Err(FrameError::TooShort { length }));
        decoder.push(&Reply::Result(ResultCode::Ok).encode(1).unwrap());
        assert_eq!(
            decoder.next_packet(),
            Err(FrameError::TooShort { length }),
            "it stays refused"
        );
    }
}

#[test]
fn lengths_over_the_limit_are_errors_before_anything_is_allocated_for_them() {
    let one_over = u32::try_from(MAX_PACKET + 1).unwrap();
    for length in [one_over, u32::MAX] {
        let mut decoder = Decoder::new();
        decoder.push(&header(length, 8));
        assert_eq!(
            decoder.next_packet(),
            Err(FrameError::TooLong {
                length,
                limit: MAX_PACKET
            })
        );
    }
    let mut decoder = Decoder::with_limit(20);
    decoder.push(&header(20, 8));
    assert_eq!(decoder.next_packet(), Ok(None));
    decoder.push(b"four");
    assert_eq!(decoder.next_packet().unwrap().unwrap().payload, b"four"[..]);
}

#[test]
fn a_packet_without_a_payload_is_a_packet() {
    let mut decoder = Decoder::new();
    decoder.push(&header(16, 8));
    let packet = decoder.next_packet().unwrap().unwrap();
    assert!(packet.payload.is_empty());
    assert!(matches!(
        Event::decode(&packet),
        Err(InvalidMessage::Unreadable(_))
    ));
}

#[test]
fn four_bytes_are_no_packet_and_no_place_to_end() {
    let mut decoder = Decoder::new();
    assert!(decoder.is_empty());
    decoder.push(&[1, 2, 3, 4]);
    assert_eq!(decoder.next_packet(), Ok(None));
    assert!(!decoder.is_empty());
}

#[test]
fn bytes_after_the_answer_to_a_connect_are_kept_for_the_pipe() {
    let mut decoder = Decoder::new();
    decoder.push(&Reply::Result(ResultCode::Ok).encode(3).unwrap());
    decoder.push(b"HTTP/1.1 200 OK\r\n");
    let packet = decoder.next_packet().unwrap().unwrap();
    assert_eq!(
        Reply::decode(&packet, 3).unwrap(),
        Reply::Result(ResultCode::Ok)
    );
    assert_eq!(decoder.into_rest(), b"HTTP/1.1 200 OK\r\n"[..]);
}

#[test]
fn a_listen_result_and_500_phones_in_one_write_are_501_packets() {
    let mut stream = Reply::Result(ResultCode::Ok).encode(1).unwrap().to_vec();
    for phone in phones(500) {
        stream.extend(Event::Attached(phone).encode().unwrap());
    }
    let mut decoder = Decoder::new();
    decoder.push(&stream);
    let result = decoder.next_packet().unwrap().unwrap();
    assert_eq!(
        Reply::decode(&result, 1).unwrap(),
        Reply::Result(ResultCode::Ok)
    );
    for phone in phones(500) {
        let packet = decoder.next_packet().unwrap().unwrap();
        assert_eq!(Event::decode(&packet).unwrap(), Event::Attached(phone));
    }
    assert!(decoder.is_empty());
}

#[test]
fn a_list_of_500_phones_is_legal() {
    let list = Reply::DeviceList(DeviceList {
        phones: phones(500),
        skipped: 0,
    });
    let mut decoder = Decoder::new();
    decoder.push(&list.encode(1).unwrap());
    let packet = decoder.next_packet().unwrap().unwrap();
    assert_eq!(Reply::decode(&packet, 1).unwrap(), list);
}

#[test]
fn a_packet_of_another_kind_is_refused_without_harm_to_the_stream() {
    let mut decoder = Decoder::new();
    decoder.push(&header(20, 1));
    decoder.push(&[0; 4]);
    decoder.push(&Reply::Result(ResultCode::Ok).encode(0).unwrap());
    let packet = decoder.next_packet().unwrap().unwrap();
    assert!(matches!(
        Reply::decode(&packet, 0),
        Err(InvalidMessage::NotPlist(_))
    ));
    let packet = decoder.next_packet().unwrap().unwrap();
    assert_eq!(
        Reply::decode(&packet, 0).unwrap(),
        Reply::Result(ResultCode::Ok)
    );
}

#[test]
fn a_document_that_is_no_dictionary_is_refused() {
    let packet = plist(b"<plist><array/></plist>");
    assert!(matches!(
        Event::decode(&packet),
        Err(InvalidMessage::NotDictionary)
    ));
}

#[test]
fn a_bottomless_document_is_refused() {
    let packet = plist("<array>".repeat(500_000).as_bytes());
    assert!(matches!(
        Event::decode(&packet),
        Err(InvalidMessage::Excessive)
    ));
}

#[test]
fn a_small_document_that_unfolds_without_end_is_refused() {
    // Fourteen arrays, each holding the next one fourteen times.
    const LEVELS: u8 = 14;
    let mut plist_bytes = b"bplist00".to_vec();
    let mut offsets = Vec::new();
    for level in 0..LEVELS {
        offsets.push(u8::try_from(plist_bytes.len()).unwrap());
        plist_bytes.push(0xAE);
        plist_bytes.extend([level + 1; 14]);
    }
    offsets.push(u8::try_from(plist_bytes.len()).unwrap());
    plist_bytes.push(0x09);
    let table = u8::try_from(plist_bytes.len()).unwrap();
    plist_bytes.extend(&offsets);
    plist_bytes.extend([0, 0, 0, 0, 0, 0, 1, 1]);
    plist_bytes.extend([0, 0, 0, 0, 0, 0, 0, LEVELS + 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    plist_bytes.extend([0, 0, 0, 0, 0, 0, 0, table]);
    assert!(matches!(
        Event::decode(&plist(&plist_bytes)),
        Err(InvalidMessage::Excessive)
    ));
}
