//! Lockdown in bytes: a length in network order, then a property list.

use std::time::Duration;

use fleetgate_simulator::{Injection, Lockdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::wire::{Bench, assert_silent, read_all, try_pipe};

/// 62078 in network byte order, read as a little-endian number.
const LOCKDOWN: u32 = 32498;

fn bench() -> Bench {
    Bench::of(
        "[[phones]]\nname = \"Alice & co\"\nmodel = \"iPhone14,2\"\nos_version = \"17.4.1\"\n\
         connection = [\"usb\", \"network\"]\n",
    )
}

fn message(keys: &str) -> Vec<u8> {
    let list = format!("<plist version=\"1.0\"><dict>{keys}</dict></plist>");
    let mut bytes = u32::try_from(list.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(list.as_bytes());
    bytes
}

fn get(key: &str) -> Vec<u8> {
    message(&format!(
        "<key>Request</key><string>GetValue</string><key>Key</key><string>{key}</string>"
    ))
}

async fn receive(pipe: &mut DuplexStream) -> String {
    let length = pipe.read_u32().await.unwrap();
    let mut list = vec![0; length as usize];
    pipe.read_exact(&mut list).await.unwrap();
    String::from_utf8(list).unwrap()
}

async fn ask(pipe: &mut DuplexStream, request: &[u8]) -> String {
    pipe.write_all(request).await.unwrap();
    receive(pipe).await
}

fn says(answer: &str, key: &str, value: &str) -> bool {
    let (_, rest) = answer.split_once(&format!("<key>{key}</key>")).unwrap();
    rest.trim_start()
        .starts_with(&format!("<string>{value}</string>"))
}

#[tokio::test(start_paused = true)]
async fn a_phone_tells_what_it_is_by_cable_and_over_the_network() {
    let bench = bench();
    bench.phone.set_trusted(false);
    for device in [1, 2] {
        let mut pipe = try_pipe(&bench.lab, device, LOCKDOWN).await.unwrap();
        let who = message("<key>Request</key><string>QueryType</string>");
        let answer = ask(&mut pipe, &who).await;
        assert!(
            says(&answer, "Type", "com.apple.mobile.lockdown"),
            "{answer}"
        );
        for (key, value) in [
            ("DeviceName", "Alice &amp; co"),
            ("ProductType", "iPhone14,2"),
            ("ProductVersion", "17.4.1"),
            ("UniqueDeviceID", "00008110-00F1EE7000000001"),
        ] {
            let answer = ask(&mut pipe, &get(key)).await;
            assert!(says(&answer, "Value", value), "{answer}");
            assert!(says(&answer, "Key", key), "{answer}");
        }
    }
    let connects = bench.phone.report().connects;
    assert_eq!(
        (connects.lockdown, connects.usb, connects.network),
        (2, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn all_values_can_be_asked_for_at_once_and_others_are_missing() {
    let bench = bench();
    let mut pipe = try_pipe(&bench.lab, 1, LOCKDOWN).await.unwrap();
    let all = message("<key>Request</key><string>GetValue</string>");
    let answer = ask(&mut pipe, &all).await;
    assert!(says(&answer, "ProductType", "iPhone14,2"), "{answer}");
    assert!(says(&answer, "DeviceClass", "iPhone"), "{answer}");
    let answer = ask(&mut pipe, &get("SerialNumber")).await;
    assert!(says(&answer, "Error", "MissingValue"), "{answer}");
    let session = message("<key>Request</key><string>StartSession</string>");
    let answer = ask(&mut pipe, &session).await;
    assert!(says(&answer, "Error", "InvalidRequest"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn lockdown_can_refuse_say_nothing_or_not_be_there() {
    let bench = bench();
    bench.phone.set_lockdown(Lockdown::Refuses);
    let mut pipe = try_pipe(&bench.lab, 1, LOCKDOWN).await.unwrap();
    let answer = ask(&mut pipe, &get("DeviceName")).await;
    assert!(says(&answer, "Error", "PasswordProtected"), "{answer}");
    assert!(!answer.contains("Alice"), "{answer}");

    bench.phone.set_lockdown(Lockdown::Silent);
    let mut pipe = try_pipe(&bench.lab, 1, LOCKDOWN).await.unwrap();
    pipe.write_all(&get("DeviceName")).await.unwrap();
    assert_silent(&mut pipe, Duration::from_secs(600)).await;

    bench.phone.set_lockdown(Lockdown::Absent);
    assert_eq!(try_pipe(&bench.lab, 1, LOCKDOWN).await.unwrap_err(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request_ends_the_connection() {
    let bench = bench();
    for bytes in [
        message("<key>Request</key><integer>1</integer>"),
        u32::MAX.to_be_bytes().to_vec(),
        b"\0\0\0\x04junk".to_vec(),
    ] {
        let mut pipe = try_pipe(&bench.lab, 1, LOCKDOWN).await.unwrap();
        pipe.write_all(&bytes).await.unwrap();
        assert_eq!(read_all(&mut pipe).await, b"");
    }
}

#[tokio::test(start_paused = true)]
async fn faults_of_connections_are_meant_for_the_runners() {
    let bench = bench();
    bench.phone.fault(Injection::ConnectResult { number: 4 });
    let mut pipe = try_pipe(&bench.lab, 1, LOCKDOWN).await.unwrap();
    assert_eq!(bench.phone.report().faults.len(), 1);
    bench.phone.detach();
    assert_eq!(read_all(&mut pipe).await, b"", "it breaks with the cable");
}
