//! Bytes written down from the protocol, not produced by this crate: both sides
//! of a connection share its codec, so a mistake in it would cancel out.

use crate::{
    Client, ConnectionType, Decoder, DeviceList, Event, Header, InvalidMessage, MuxDeviceId,
    Packet, PairRecord, Phone, Port, Reply, Request, ResultCode,
};
use bytes::Bytes;

const PROLOGUE: &str = concat!(
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
    "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" ",
    "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n",
    "<plist version=\"1.0\">\n",
);

/// A packet from a header written by hand and the inside of a `plist` element.
fn packet(version: u8, tag: u8, body: &str) -> Vec<u8> {
    let xml = format!("{PROLOGUE}{body}\n</plist>\n");
    let length = u32::try_from(16 + xml.len()).unwrap();
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend([version, 0, 0, 0, 8, 0, 0, 0, tag, 0, 0, 0]);
    bytes.extend(xml.as_bytes());
    bytes
}

fn parse(bytes: &[u8]) -> Packet {
    let mut decoder = Decoder::new();
    decoder.push(bytes);
    let packet = decoder.next_packet().unwrap().unwrap();
    assert!(decoder.is_empty());
    packet
}

fn request(fields: &str) -> Vec<u8> {
    packet(1, 5, &format!("<dict>\n{fields}</dict>"))
}

const WHO: &str = "\t<key>ClientVersionString</key>\n\t<string>0.1</string>\n\
     \t<key>ProgName</key>\n\t<string>fleetgate</string>\n\
     \t<key>kLibUSBMuxVersion</key>\n\t<integer>3</integer>\n";

const USB_PHONE: &str = "<dict>\n\
     \t<key>DeviceID</key>\n\t<integer>3</integer>\n\
     \t<key>MessageType</key>\n\t<string>Attached</string>\n\
     \t<key>Properties</key>\n\t<dict>\n\
     \t\t<key>ConnectionSpeed</key>\n\t\t<integer>480000000</integer>\n\
     \t\t<key>ConnectionType</key>\n\t\t<string>USB</string>\n\
     \t\t<key>DeviceID</key>\n\t\t<integer>3</integer>\n\
     \t\t<key>LocationID</key>\n\t\t<integer>17891328</integer>\n\
     \t\t<key>ProductID</key>\n\t\t<integer>4776</integer>\n\
     \t\t<key>SerialNumber</key>\n\t\t<string>00008110-000978540290401E</string>\n\
     \t</dict>\n</dict>";

fn usb_phone() -> Phone {
    Phone {
        device: MuxDeviceId(3),
        connection: ConnectionType::Usb,
        serial: "00008110-000978540290401E".to_owned(),
        product: Some(4776),
        location: Some(17_891_328),
        speed: Some(480_000_000),
    }
}

#[test]
fn requests_are_the_bytes_of_the_protocol() {
    let plain = |kind: &str| {
        request(&format!(
            "\t<key>MessageType</key>\n\t<string>{kind}</string>\n{WHO}"
        ))
    };
    let with = |kind: &str, fields: &str| {
        request(&format!(
            "\t<key>MessageType</key>\n\t<string>{kind}</string>\n{WHO}{fields}"
        ))
    };
    let id = "\t<key>PairRecordID</key>\n\t<string>0000</string>\n";
    let connect = Request::Connect {
        device: MuxDeviceId(3),
        port: Port::new(8100).unwrap(),
    };
    let record = Request::SavePairRecord {
        id: "0000".to_owned(),
        record: PairRecord(Bytes::from_static(b"secret")),
        device: Some(MuxDeviceId(3)),
    };
    let cases = [
        (Request::ListDevices, plain("ListDevices")),
        (Request::Listen, plain("Listen")),
        (Request::ReadBuid, plain("ReadBUID")),
        (Request::ListListeners, plain("ListListeners")),
        (Request::Other("AddDevice".to_owned()), plain("AddDevice")),
        (
            connect,
            with(
                "Connect",
                "\t<key>DeviceID</key>\n\t<integer>3</integer>\n\
                 \t<key>PortNumber</key>\n\t<integer>42015</integer>\n",
            ),
        ),
        (
            Request::ReadPairRecord {
                id: "0000".to_owned(),
            },
            with("ReadPairRecord", id),
        ),
        (
            Request::DeletePairRecord {
                id: "0000".to_owned(),
            },
            with("DeletePairRecord", id),
        ),
        (
            record,
            with(
                "SavePairRecord",
                &format!(
                    "{id}\t<key>PairRecordData</key>\n\t<data>\n\tc2VjcmV0\n\t</data>\n\
                     \t<key>DeviceID</key>\n\t<integer>3</integer>\n"
                ),
            ),
        ),
    ];
    let client = Client::new("fleetgate", "0.1");
    for (message, golden) in cases {
        let encoded = message.encode(&client, 5).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            String::from_utf8_lossy(&golden)
        );
        assert_eq!(Request::decode(&parse(&golden)).unwrap(), message);
        assert_eq!(Client::decode(&parse(&golden)).unwrap(), client);
    }
}

#[test]
fn replies_are_the_bytes_of_the_protocol() {
    let entry = USB_PHONE.replace('\n', "\n\t\t");
    let cases = [
        (
            Reply::Result(ResultCode::ConnectionRefused),
            "<dict>\n\t<key>MessageType</key>\n\t<string>Result</string>\n\
             \t<key>Number</key>\n\t<integer>3</integer>\n</dict>"
                .to_owned(),
        ),
        (
            Reply::DeviceList(DeviceList {
                phones: vec![usb_phone()],
                skipped: 0,
            }),
            format!("<dict>\n\t<key>DeviceList</key>\n\t<array>\n\t\t{entry}\n\t</array>\n</dict>"),
        ),
        (
            Reply::Buid("30142955-4440".to_owned()),
            "<dict>\n\t<key>BUID</key>\n\t<string>30142955-4440</string>\n</dict>".to_owned(),
        ),
        (
            Reply::PairRecord(PairRecord(Bytes::from_static(b"secret"))),
            "<dict>\n\t<key>PairRecordData</key>\n\t<data>\n\tc2VjcmV0\n\t</data>\n</dict>"
                .to_owned(),
        ),
        (
            Reply::Listeners(vec!["fleetgate".to_owned()]),
            "<dict>\n\t<key>ListenerList</key>\n\t<array>\n\t\t<dict>\n\t\t\t<key>ProgName</key>\n\
             \t\t\t<string>fleetgate</string>\n\t\t</dict>\n\t</array>\n</dict>"
                .to_owned(),
        ),
    ];
    for (message, golden) in cases {
        let golden = packet(1, 9, &golden);
        let encoded = message.encode(9).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            String::from_utf8_lossy(&golden)
        );
        assert_eq!(Reply::decode(&parse(&golden), 9).unwrap(), message);
    }
}

#[test]
fn events_are_the_bytes_of_the_protocol() {
    let about = |kind: &str| {
        format!(
            "<dict>\n\t<key>DeviceID</key>\n\t<integer>3</integer>\n\
             \t<key>MessageType</key>\n\t<string>{kind}</string>\n</dict>"
        )
    };
    let cases = [
        (Event::Attached(usb_phone()), USB_PHONE.to_owned()),
        (Event::Detached(MuxDeviceId(3)), about("Detached")),
        (Event::Paired(MuxDeviceId(3)), about("Paired")),
    ];
    for (message, golden) in cases {
        let golden = packet(1, 0, &golden);
        let encoded = message.encode().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&encoded),
            String::from_utf8_lossy(&golden)
        );
        assert_eq!(Event::decode(&parse(&golden)).unwrap(), message);
    }
    let newer = parse(&packet(1, 0, &about("Renamed")));
    assert_eq!(
        Event::decode(&newer).unwrap(),
        Event::Unknown {
            message_type: "Renamed".to_owned()
        }
    );
}

#[test]
fn ports_go_in_network_byte_order_and_impossible_ones_are_refused() {
    for (port, wire) in [
        (8100_u16, 42015),
        (62078, 32498),
        (49152, 192),
        (1, 256),
        (65535, 65535),
    ] {
        assert_eq!(Port::new(port.into()).unwrap().to_wire(), wire);
        assert_eq!(Port::from_wire(wire.into()).unwrap().get(), port);
    }
    for number in [0_u64, 65_536, u64::MAX] {
        Port::new(number).unwrap_err();
        Port::from_wire(number).unwrap_err();
    }
}

#[test]
fn known_result_numbers_have_names_and_others_keep_their_number() {
    let named = [
        (0, ResultCode::Ok),
        (1, ResultCode::BadCommand),
        (2, ResultCode::BadDevice),
        (3, ResultCode::ConnectionRefused),
        (4, ResultCode::ConnectionTimedOut),
        (6, ResultCode::BadVersion),
        (5, ResultCode::Other(5)),
        (99, ResultCode::Other(99)),
        (-1, ResultCode::Other(-1)),
    ];
    for (number, code) in named {
        let bytes = packet(
            1,
            2,
            &format!(
                "<dict><key>MessageType</key><string>Result</string>\
                 <key>Number</key><integer>{number}</integer></dict>"
            ),
        );
        assert_eq!(
            Reply::decode(&parse(&bytes), 2).unwrap(),
            Reply::Result(code)
        );
        assert_eq!(code.number(), number);
    }
}

#[test]
fn a_result_without_a_number_is_an_error() {
    let bytes = packet(
        1,
        2,
        "<dict><key>MessageType</key><string>Result</string></dict>",
    );
    let error = Reply::decode(&parse(&bytes), 2).unwrap_err();
    assert!(matches!(error, InvalidMessage::Key("Number")), "{error}");
}

#[test]
fn an_answer_to_another_request_is_an_error() {
    let bytes = Reply::Result(ResultCode::Ok).encode(8).unwrap();
    let error = Reply::decode(&parse(&bytes), 7).unwrap_err();
    assert!(
        matches!(
            error,
            InvalidMessage::Tag {
                expected: 7,
                got: 8
            }
        ),
        "{error}"
    );
}

#[test]
fn binary_property_lists_are_read() {
    // Five objects at offsets 8, 13, 25, 32 and 39; the table of those at 41.
    let mut plist = b"bplist00".to_vec();
    plist.extend([0xD2, 1, 2, 3, 4]);
    plist.extend(b"\x5BMessageType\x56Number\x56Result\x10\x63");
    plist.extend([8, 13, 25, 32, 39]);
    plist.extend([0, 0, 0, 0, 0, 0, 1, 1]);
    plist.extend([
        0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 41,
    ]);
    let mut bytes = u32::try_from(16 + plist.len())
        .unwrap()
        .to_le_bytes()
        .to_vec();
    bytes.extend([1, 0, 0, 0, 8, 0, 0, 0, 4, 0, 0, 0]);
    bytes.extend(plist);
    assert_eq!(
        Reply::decode(&parse(&bytes), 4).unwrap(),
        Reply::Result(ResultCode::Other(99))
    );
}

#[test]
fn header_version_0_with_a_property_list_is_read() {
    let bytes = packet(
        0,
        2,
        "<dict><key>MessageType</key><string>Result</string>\
         <key>Number</key><integer>0</integer></dict>",
    );
    let packet = parse(&bytes);
    assert_eq!(
        packet.header,
        Header {
            length: bytes.len().try_into().unwrap(),
            version: 0,
            message: 8,
            tag: 2
        }
    );
    assert_eq!(
        Reply::decode(&packet, 2).unwrap(),
        Reply::Result(ResultCode::Ok)
    );
}

#[test]
fn bad_entries_of_a_device_list_are_skipped_and_counted() {
    let entry = |properties: &str| {
        format!(
            "<dict><key>DeviceID</key><integer>7</integer><key>Properties</key><dict>{properties}</dict></dict>"
        )
    };
    let serial = "<key>SerialNumber</key><string>cafe</string>";
    let network = "<key>ConnectionType</key><string>Network</string>";
    let list = [
        entry(serial),
        entry(network),
        "<string>not a phone</string>".to_owned(),
        "<dict/>".to_owned(),
        entry(&format!("{serial}{network}")),
        entry(&format!(
            "{serial}<key>ConnectionType</key><integer>1</integer>"
        )),
        "<dict><key>DeviceID</key><integer>4294967296</integer></dict>".to_owned(),
    ]
    .concat();
    let bytes = packet(
        1,
        2,
        &format!("<dict><key>DeviceList</key><array>{list}</array></dict>"),
    );
    let phone = Phone {
        device: MuxDeviceId(7),
        connection: ConnectionType::Network,
        serial: "cafe".to_owned(),
        product: None,
        location: None,
        speed: None,
    };
    let expected = Reply::DeviceList(DeviceList {
        phones: vec![phone],
        skipped: 6,
    });
    assert_eq!(Reply::decode(&parse(&bytes), 2).unwrap(), expected);
}

#[test]
fn a_connect_to_an_impossible_port_is_refused() {
    for port in ["0", "65536", "-1"] {
        let bytes = request(&format!(
            "<key>MessageType</key><string>Connect</string><key>DeviceID</key><integer>3</integer>\
             <key>PortNumber</key><integer>{port}</integer>"
        ));
        Request::decode(&parse(&bytes)).unwrap_err();
    }
}

#[test]
fn pair_records_are_not_shown() {
    let reply = Reply::PairRecord(PairRecord(Bytes::from_static(b"canary")));
    assert_eq!(format!("{reply:?}"), "PairRecord(PairRecord(6 bytes))");
}
