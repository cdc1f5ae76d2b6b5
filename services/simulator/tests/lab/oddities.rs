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
}
