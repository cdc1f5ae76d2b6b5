//! The runner's HTTP, as far as it goes.

use std::time::Duration;

use fleetgate_simulator::{Lab, Scenario};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::wire::{Bench, assert_silent, pipe, post, read_all, read_reply};

async fn answer_to(bench: &Bench, request: &[u8]) -> (u16, String) {
    let mut pipe = pipe(&bench.lab, 1).await;
    pipe.write_all(request).await.unwrap();
    let reply = read_reply(&mut pipe).await;
    (reply.status, reply.code().to_owned())
}

#[tokio::test(start_paused = true)]
async fn only_the_length_and_the_body_of_a_request_matter() {
    let bench = Bench::new();
    let mut pipe = pipe(&bench.lab, 1).await;
    let body = r#"{"command":"status"}"#;
    let request =
        format!("BREW /pot HTCPCP/1.0\r\ncontent-LENGTH: 3\r\nContent-Length: 20\r\n\r\n{body}");
    for byte in request.as_bytes() {
        pipe.write_all(&[*byte]).await.unwrap();
    }
    assert_eq!(read_reply(&mut pipe).await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_header_block_without_a_usable_length_is_a_400() {
    let bench = Bench::new();
    for header in [
        "Host: x",
        "Content-Length: -1",
        "Content-Length: ten",
        "Content-Length:",
    ] {
        let request = format!("POST / HTTP/1.1\r\n{header}\r\n\r\n");
        let answer = answer_to(&bench, request.as_bytes()).await;
        assert_eq!(answer, (400, "INVALID_REQUEST".to_owned()), "{header}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_declared_length_over_2_mib_is_a_413_before_any_body() {
    let bench = Bench::new();
    let request = b"POST / HTTP/1.1\r\nContent-Length: 2097153\r\n\r\n";
    assert_eq!(
        answer_to(&bench, request).await,
        (413, "INVALID_REQUEST".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn bytes_over_2_mib_are_a_413_even_without_an_end_of_the_header() {
    let lab = Lab::start(Scenario::fleet(1));
    let pipe = pipe(&lab, 1).await;
    let (mut from, mut to) = tokio::io::split(pipe);
    let writing = async {
        // The runner may close before it has read it all.
        let endless = vec![b'x'; 2 * 1024 * 1024 + 1];
        drop(to.write_all(&endless).await);
    };
    let (reply, ()) = tokio::join!(read_reply(&mut from), writing);
    assert_eq!((reply.status, reply.code()), (413, "INVALID_REQUEST"));
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_cannot_be_decoded_is_a_400() {
    let bench = Bench::new();
    for body in [
        "not json",
        "[]",
        r#"{"command":"fly"}"#,
        r#"{"commandId":"c1"}"#,
        r#"{"command":"tap","appBundleId":"a.b","x":"1","y":2}"#,
        r#"{"command":"status","numberOfTaps":"many"}"#,
    ] {
        let answer = answer_to(&bench, &post(body)).await;
        assert_eq!(answer, (400, "INVALID_REQUEST".to_owned()), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_well_typed_request_that_lacks_something_is_a_500_and_journaled() {
    let bench = Bench::new();
    let reply = bench
        .exchange(json!({"command": "tap", "commandId": "c1", "appBundleId": "a.b", "x": 1}))
        .await;
    assert_eq!((reply.status, reply.code()), (500, "INVALID_REQUEST"));
    let entry = bench.journal("c1").await;
    assert_eq!(entry["state"], "failed");
    assert_eq!(entry["command"], "tap");
    assert_eq!(entry["errorCode"], "INVALID_REQUEST");
    assert_eq!(bench.phone.effects(), []);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_closes_before_its_request_is_whole_gets_no_reply() {
    let bench = Bench::new();
    let mut pipe = pipe(&bench.lab, 1).await;
    pipe.write_all(b"POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
        .await
        .unwrap();
    pipe.shutdown().await.unwrap();
    assert_eq!(read_all(&mut pipe).await, b"");
    assert_eq!(bench.phone.arrivals(), []);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_says_nothing_is_waited_for() {
    let bench = Bench::new();
    let mut pipe = pipe(&bench.lab, 1).await;
    assert_silent(&mut pipe, Duration::from_secs(3600)).await;
    pipe.write_all(&post(r#"{"command":"status"}"#))
        .await
        .unwrap();
    assert_eq!(read_reply(&mut pipe).await.status, 200);
}
