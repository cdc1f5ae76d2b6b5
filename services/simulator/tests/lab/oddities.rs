//! Odd answers of usbmuxd, as the bytes that a client gets.

use std::time::Duration;

use fleetgate_simulator::{Asked, Lab, Odd, Oddity, Scenario};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use crate::wire::{ask, assert_silent, packet, plist, read_all, receive, result};

/// Asks for the device list with tag 7 after this oddity was queued.
async fn list_after(odd: Odd) -> (Lab, DuplexStream) {
    let lab = Lab::start(Scenario::fleet(1));
    lab.oddity(odd);
    let stream = list(&lab).await;
    (lab, stream)
}

/// Asks for the device list with tag 7.
pub(crate) async fn list(lab: &Lab) -> DuplexStream {
    let mut stream = lab.connect();
    let request = packet(7, &plist("ListDevices", ""));
    stream.write_all(&request).await.unwrap();
    stream
}

async fn header(stream: &mut DuplexStream) -> [u32; 4] {
    let mut numbers = [0; 4];
    for number in &mut numbers {
        *number = stream.read_u32_le().await.unwrap();
    }
    numbers
}

#[tokio::test(start_paused = true)]
async fn a_property_list_can_be_binary() {
    let (_lab, mut stream) = list_after(Odd::BinaryPlist).await;
    let [length, version, message, tag] = header(&mut stream).await;
    assert_eq!((version, message, tag), (1, 8, 7));
    let mut list = vec![0; length as usize - 16];
    stream.read_exact(&mut list).await.unwrap();
    assert!(list.starts_with(b"bplist00"));
    let connection_type = list.windows(14).any(|bytes| bytes == b"ConnectionType");
    assert!(connection_type, "the list is all there");
}

#[tokio::test(start_paused = true)]
async fn headers_can_say_other_things() {
    let lab = Lab::start(Scenario::fleet(1));
    let [length, ..] = header(&mut list(&lab).await).await;
    for (odd, expected) in [
        (Odd::VersionZero, [length, 0, 8, 7]),
        (Odd::WrongTag, [length, 1, 8, 8]),
        (Odd::Length { length: 15 }, [15, 1, 8, 7]),
        (Odd::Length { length: u32::MAX }, [u32::MAX, 1, 8, 7]),
    ] {
        let (_lab, mut stream) = list_after(odd.clone()).await;
        assert_eq!(header(&mut stream).await, expected, "{odd:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_cut_off() {
    let (_lab, mut stream) = list_after(Odd::Cut { bytes: 4 }).await;
    assert_eq!(read_all(&mut stream).await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_come_byte_by_byte() {
    let every = Duration::from_millis(10);
    let start = Instant::now();
    let (_lab, mut stream) = list_after(Odd::Trickle { every }).await;
    let [length, ..] = header(&mut stream).await;
    let mut list = vec![0; length as usize - 16];
    stream.read_exact(&mut list).await.unwrap();
    assert_eq!(start.elapsed(), every * length);
}

#[tokio::test(start_paused = true)]
async fn an_answer_may_never_come() {
    let (_lab, mut stream) = list_after(Odd::Silence).await;
    assert_silent(&mut stream, Duration::from_secs(600)).await;
}

#[tokio::test(start_paused = true)]
async fn listeners_can_hear_of_things_that_they_do_not_know() {
    let lab = Lab::start(Scenario::fleet(1));
    let weather = Odd::UnknownEvent {
        message_type: "Weather".to_owned(),
    };
    lab.oddity(Oddity::from(weather).on(Asked::Listen));
    lab.oddity(Oddity::from(Odd::Paired { device: 1 }).on(Asked::Listen));
    for event in ["Weather", "Paired"] {
        let mut listener = lab.connect();
        assert_eq!(
            result(&ask(&mut listener, 1, &plist("Listen", "")).await),
            0
        );
        let (tag, odd) = receive(&mut listener).await;
        assert_eq!(tag, 0);
        assert!(
            odd.contains(&format!("<key>MessageType</key><string>{event}</string>")),
            "{odd}"
        );
        assert!(receive(&mut listener).await.1.contains("Attached"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_oddity_waits_for_its_request_and_is_gone_after_its_times() {
    let lab = Lab::start(Scenario::fleet(1));
    lab.oddity(Oddity::from(Odd::WrongTag).on(Asked::ListDevices).times(2));
    ask(&mut lab.connect(), 1, &plist("ReadBUID", "")).await;
    for tag in [8, 8, 7] {
        assert_eq!(header(&mut list(&lab).await).await[3], tag);
    }
    lab.oddity(Oddity::from(Odd::WrongTag).times(9));
    lab.clear_oddities();
    assert_eq!(header(&mut list(&lab).await).await[3], 7);
}

#[tokio::test(start_paused = true)]
async fn an_error_can_be_the_answer_to_anything_and_the_connection_goes_on() {
    let lab = Lab::start(Scenario::fleet(1));
    for asked in [Asked::ListDevices, Asked::Listen, Asked::Connect] {
        lab.oddity(Oddity::from(Odd::Result { number: 5 }).on(asked));
    }
    let mut stream = lab.connect();
    for request in [
        plist("ListDevices", ""),
        plist("Listen", ""),
        crate::wire::connect(1, crate::wire::PORT_8100),
    ] {
        assert_eq!(result(&ask(&mut stream, 1, &request).await), 5);
    }
    assert_eq!(lab.phones()[0].report().connects.usb, 0, "nothing was done");
    assert!(
        ask(&mut stream, 2, &plist("ListDevices", ""))
            .await
            .contains("Attached")
    );
}

#[tokio::test(start_paused = true)]
async fn a_result_can_come_without_its_number_and_an_answer_without_sense() {
    let lab = Lab::start(Scenario::fleet(1));
    lab.oddity(Odd::NoNumber);
    let answer = ask(&mut lab.connect(), 4, &plist("Listen", "")).await;
    assert!(answer.contains("<string>Result</string>"), "{answer}");
    assert!(!answer.contains("Number"), "{answer}");
    let message_type = "Weather".to_owned();
    lab.oddity(Odd::Unrelated { message_type });
    let answer = ask(&mut lab.connect(), 5, &plist("ListDevices", "")).await;
    assert!(
        answer.contains("<key>MessageType</key><string>Weather</string>"),
        "{answer}"
    );
    assert!(!answer.contains("DeviceList"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_listen_can_come_in_one_piece_with_500_phones() {
    let lab = Lab::start(Scenario::fleet(500));
    lab.oddity(Odd::Glued);
    let mut listener = lab.connect();
    listener
        .write_all(&packet(1, &plist("Listen", "")))
        .await
        .unwrap();
    // An in-memory pipe gives in one read what is in it from one write.
    let mut piece = vec![0; 65536];
    let read = listener.read(&mut piece).await.unwrap();
    assert!(read > 30_000, "{read}");
    let text = String::from_utf8_lossy(&piece[..read]).into_owned();
    assert!(text.find("Result").unwrap() < text.find("Attached").unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_event_can_be_odd_too_and_be_cut_off_in_the_middle() {
    let lab = Lab::start(Scenario::fleet(1));
    let phone = lab.phones().remove(0);
    lab.oddity(Odd::BinaryPlist);
    let mut listener = lab.connect();
    listener
        .write_all(&packet(1, &plist("Listen", "")))
        .await
        .unwrap();
    let [length, ..] = header(&mut listener).await;
    let mut list = vec![0; length as usize - 16];
    listener.read_exact(&mut list).await.unwrap();
    assert!(
        list.starts_with(b"bplist00"),
        "one that names nothing befalls an answer"
    );
    assert!(receive(&mut listener).await.1.contains("Attached"));

    lab.oddity(Oddity::from(Odd::VersionZero).on(Asked::Event));
    lab.oddity(Oddity::from(Odd::Cut { bytes: 20 }).on(Asked::Event));
    phone.detach();
    let [length, version, _, tag] = header(&mut listener).await;
    assert_eq!((version, tag), (0, 0));
    let mut list = vec![0; length as usize - 16];
    listener.read_exact(&mut list).await.unwrap();
    phone.attach();
    assert_eq!(read_all(&mut listener).await.len(), 20, "then the end");
}
