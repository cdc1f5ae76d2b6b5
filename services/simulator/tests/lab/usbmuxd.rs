//! The conversation with usbmuxd, byte by byte.

use fleetgate_simulator::{Ids, Lab, Scenario, Transport};
use tokio::io::AsyncWriteExt;

use crate::wire::{
    Bench, PORT_8100, ask, connect, packet, pipe, plist, post, read_all, read_reply, receive,
    result, try_pipe,
};

/// The value behind a key, up to the next tag.
fn value<'a>(list: &'a str, key: &str) -> &'a str {
    let (_, rest) = list.split_once(&format!("<key>{key}</key>")).unwrap();
    let (_, rest) = rest.split_once('>').unwrap();
    rest.split_once('<').unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_device_list_names_every_transport_of_every_phone() {
    let bench = Bench::of(
        "[[phones]]\nudid = \"00008110-000978540290401E\"\n\
         serial = \"00008110000978540290401e\"\nconnection = [\"network\", \"usb\"]\n",
    );
    let list = ask(&mut bench.lab.connect(), 7, &plist("ListDevices", "")).await;
    let entries: Vec<_> = list.split("<key>Properties</key>").skip(1).collect();
    let [network, usb] = entries[..] else {
        panic!("two entries: {list}")
    };
    assert_eq!(
        (value(network, "DeviceID"), value(usb, "DeviceID")),
        ("1", "2")
    );
    assert_eq!(value(network, "ConnectionType"), "Network");
    assert_eq!(value(usb, "ConnectionType"), "USB");
    assert_eq!(value(usb, "SerialNumber"), "00008110000978540290401e");
    assert_eq!(value(usb, "ConnectionSpeed"), "480000000");
}

#[tokio::test(start_paused = true)]
async fn a_listener_gets_its_result_first_and_then_what_is_there_and_what_changes() {
    let bench = Bench::new();
    let mut listener = bench.lab.connect();
    assert_eq!(
        result(&ask(&mut listener, 3, &plist("Listen", "")).await),
        0
    );
    let (tag, attached) = receive(&mut listener).await;
    assert_eq!((tag, value(&attached, "MessageType")), (0, "Attached"));
    assert_eq!(value(&attached, "DeviceID"), "1");

    bench.phone.detach();
    let (tag, detached) = receive(&mut listener).await;
    assert_eq!((tag, value(&detached, "MessageType")), (0, "Detached"));
    assert_eq!(value(&detached, "DeviceID"), "1");

    bench.phone.attach();
    let (_, attached) = receive(&mut listener).await;
    assert_eq!(
        value(&attached, "DeviceID"),
        "2",
        "a replug gives a new number"
    );

    bench.phone.attach_over(Transport::Network);
    let (_, twin) = receive(&mut listener).await;
    assert_eq!(
        (value(&twin, "DeviceID"), value(&twin, "ConnectionType")),
        ("3", "Network")
    );
}

#[tokio::test(start_paused = true)]
async fn common_clients_get_what_they_ask_for_on_one_connection() {
    let lab = Lab::start(Scenario::fleet(2));
    let mut stream = lab.connect();
    let buid = ask(&mut stream, 1, &plist("ReadBUID", "")).await;
    assert_eq!(value(&buid, "BUID").len(), 36);
    let list = ask(&mut stream, 2, &plist("ListDevices", "")).await;
    assert_eq!(list.matches("<key>Properties</key>").count(), 2);
    let record_id = "<key>PairRecordID</key><string>00008110-00F1EE7000000001</string>";
    let record = ask(&mut stream, 3, &plist("ReadPairRecord", record_id)).await;
    assert!(!value(&record, "PairRecordData").is_empty(), "{record}");
    let nobody = "<key>PairRecordID</key><string>00008110-000978540290401E</string>";
    let record = ask(&mut stream, 3, &plist("ReadPairRecord", nobody)).await;
    assert_eq!(result(&record), 2, "no such record");
    assert_eq!(
        result(&ask(&mut stream, 4, &plist("DeletePairRecord", record_id)).await),
        0
    );
    let listeners = ask(&mut stream, 5, &plist("ListListeners", "")).await;
    assert_eq!(listeners.matches("ProgName").count(), 0);
    assert_eq!(
        result(&ask(&mut stream, 6, &plist("MakeCoffee", "")).await),
        1
    );
    assert_eq!(
        result(&ask(&mut stream, 7, "<plist version=\"1.0\"><true/></plist>").await),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_program_is_a_listener_for_as_long_as_it_listens() {
    let lab = Lab::start(Scenario::fleet(1));
    let mut listener = lab.connect();
    ask(&mut listener, 1, &plist("Listen", "")).await;
    receive(&mut listener).await;
    let mut asking = lab.connect();
    let names = ask(&mut asking, 2, &plist("ListListeners", "")).await;
    assert_eq!(value(&names, "ProgName"), "hand");
    drop(listener);
    loop {
        // The daemon notices in its own time.
        let names = ask(&mut asking, 3, &plist("ListListeners", "")).await;
        if !names.contains("ProgName") {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn another_version_is_refused_with_result_6() {
    let lab = Lab::start(Scenario::fleet(1));
    let mut stream = lab.connect();
    let mut request = packet(9, &plist("ListDevices", ""));
    request[4] = 0;
    stream.write_all(&request).await.unwrap();
    assert_eq!(result(&receive(&mut stream).await.1), 6);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_cut_into_packets_is_closed() {
    let lab = Lab::start(Scenario::fleet(1));
    for length in [0_u32, 15, u32::MAX] {
        let mut stream = lab.connect();
        let mut request = packet(1, &plist("ListDevices", ""));
        request[..4].copy_from_slice(&length.to_le_bytes());
        stream.write_all(&request).await.unwrap();
        assert_eq!(read_all(&mut stream).await, b"");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connect_takes_the_port_in_network_byte_order() {
    let bench = Bench::new();
    assert_eq!(
        try_pipe(&bench.lab, 1, 8100).await.unwrap_err(),
        3,
        "that is port 42015"
    );
    assert!(
        try_pipe(&bench.lab, 1, 32498).await.is_ok(),
        "lockdown is on 62078"
    );
    assert_eq!(try_pipe(&bench.lab, 1, 0).await.unwrap_err(), 1);
    assert_eq!(try_pipe(&bench.lab, 9, PORT_8100).await.unwrap_err(), 2);
    assert!(try_pipe(&bench.lab, 1, PORT_8100).await.is_ok());
    let connects = bench.phone.report().connects;
    assert_eq!((connects.usb, connects.refused), (2, 1));
    assert_eq!(connects.lockdown, 1);
}

#[tokio::test(start_paused = true)]
async fn bytes_glued_to_a_connect_belong_to_the_pipe() {
    let bench = Bench::new();
    let mut stream = bench.lab.connect();
    let mut bytes = packet(1, &connect(1, PORT_8100));
    bytes.extend_from_slice(&post(r#"{"command":"status"}"#));
    stream.write_all(&bytes).await.unwrap();
    assert_eq!(result(&receive(&mut stream).await.1), 0);
    assert_eq!(read_reply(&mut stream).await.data()["state"], "idle");
}

#[tokio::test(start_paused = true)]
async fn the_network_twin_does_not_lead_to_the_runner() {
    let bench = Bench::of("[[phones]]\nconnection = [\"network\", \"usb\"]\n");
    assert_eq!(try_pipe(&bench.lab, 1, PORT_8100).await.unwrap_err(), 3);
    assert!(try_pipe(&bench.lab, 2, PORT_8100).await.is_ok());
    bench.phone.detach();
    assert_eq!(try_pipe(&bench.lab, 2, PORT_8100).await.unwrap_err(), 2);
    let connects = bench.phone.report().connects;
    assert_eq!((connects.network, connects.usb), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn pulling_the_cable_breaks_the_pipe() {
    let bench = Bench::new();
    let mut pipe = pipe(&bench.lab, 1).await;
    bench.phone.detach();
    assert_eq!(read_all(&mut pipe).await, b"");
}

#[tokio::test(start_paused = true)]
async fn a_restart_ends_every_connection_and_may_give_an_id_to_another_phone() {
    let lab = Lab::start(Scenario::fleet(2));
    let (first, second) = (lab.phones().remove(0), lab.phones().remove(1));
    let mut listener = lab.connect();
    ask(&mut listener, 1, &plist("Listen", "")).await;
    for _ in 0..2 {
        receive(&mut listener).await;
    }
    let mut open = pipe(&lab, 1).await;

    lab.start_usbmuxd(Ids::Reused);
    assert_eq!(read_all(&mut listener).await, b"", "no word of the new ids");
    assert_eq!(read_all(&mut open).await, b"");
    let list = ask(&mut lab.connect(), 1, &plist("ListDevices", "")).await;
    let entries: Vec<_> = list.split("<key>Properties</key>").skip(1).collect();
    assert_eq!(value(entries[0], "DeviceID"), "1");
    assert_eq!(value(entries[0], "SerialNumber"), second.udid().as_str());
    assert_eq!(value(entries[1], "SerialNumber"), first.udid().as_str());
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_is_down_has_no_connections() {
    let lab = Lab::start(Scenario::fleet(1));
    lab.stop_usbmuxd();
    assert_eq!(read_all(&mut lab.connect()).await, b"");
    lab.start_usbmuxd(Ids::Fresh);
    assert_eq!(
        try_pipe(&lab, 1, PORT_8100).await.unwrap_err(),
        2,
        "the old id is gone"
    );
    assert!(try_pipe(&lab, 2, PORT_8100).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stalled_daemon_answers_when_it_is_itself_again() {
    let lab = Lab::start(Scenario::fleet(1));
    lab.stall_usbmuxd(true);
    let mut stream = lab.connect();
    stream
        .write_all(&packet(5, &plist("ReadBUID", "")))
        .await
        .unwrap();
    tokio::task::yield_now().await;
    lab.stall_usbmuxd(false);
    assert_eq!(receive(&mut stream).await.0, 5);
}
