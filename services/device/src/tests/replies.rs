//! What a runner's side can do once the request is out, and what that proves.

use std::time::Duration;

use fleetgate_runner::{
    Command, DeviceCommand, Disposition, InvalidReply, MAX_REPLY_BYTES, SendError,
};
use tokio::io::AsyncWriteExt;
use tokio::time::{sleep, timeout};

use super::daemon::{ALICE, Lab, usb};
use super::exchange::{DONE, exchange, piped, sending, tap};

/// The outcome of a tap that is answered with these bytes, then a close.
async fn answered_with(bytes: &[u8]) -> SendError {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let exchange = exchange(tap());
    let (outcome, ()) = sending(&mut lab, &exchange, async |lab| {
        let mut peer = piped(lab).await;
        peer.http().await;
        peer.raw(bytes).await;
    })
    .await;
    assert!(exchange.sent.is_marked());
    outcome.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_after_the_request_leaves_the_fate_unknown() {
    let cases: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"ok\":true",
        b"\x00\x01garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
    ];
    for bytes in cases {
        let error = answered_with(bytes).await;
        assert!(
            matches!(error, SendError::Broken(_)),
            "{bytes:?}: {error:?}"
        );
        assert_eq!(error.disposition(), Disposition::Unknown);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_envelope_proves_nothing_whatever_its_status() {
    for body in ["", "<html>", "{}", r#"{"ok":"yes"}"#] {
        for status in [200, 500] {
            let length = body.len();
            let reply = format!("HTTP/1.1 {status} OK\r\nContent-Length: {length}\r\n\r\n{body}");
            let error = answered_with(reply.as_bytes()).await;
            assert!(
                matches!(
                    error,
                    SendError::InvalidReply(InvalidReply::NotAnEnvelope { .. })
                ),
                "{error:?}"
            );
            assert_eq!(error.disposition(), Disposition::Unknown);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_envelope_decides_and_not_the_status() {
    let failure =
        br#"{"ok":false,"error":{"code":"RUNNER_BUSY","message":"busy"},"reactivated":true}"#;
    for (status, body, ok) in [(500, DONE, true), (200, &failure[..], false)] {
        let mut lab = Lab::with(&[usb(1, ALICE)]).await;
        let (outcome, ()) = sending(&mut lab, &exchange(tap()), async |lab| {
            let mut peer = piped(lab).await;
            peer.http().await;
            peer.answer(status, body).await;
        })
        .await;
        let envelope = outcome.unwrap();
        assert_eq!((envelope.result.is_ok(), envelope.reactivated), (ok, !ok));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_without_a_length_ends_with_the_connection() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (outcome, ()) = sending(&mut lab, &exchange(tap()), async |lab| {
        let mut peer = piped(lab).await;
        peer.http().await;
        peer.raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
            .await;
        peer.raw(DONE).await;
    })
    .await;
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_declares_too_much_is_refused_at_once() {
    let length = MAX_REPLY_BYTES + 1;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    let error = answered_with(head.as_bytes()).await;
    assert!(
        matches!(
            error,
            SendError::ReplyTooLarge {
                limit: MAX_REPLY_BYTES
            }
        ),
        "{error:?}"
    );
    assert_eq!(error.disposition(), Disposition::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_only_turns_out_to_be_too_much_is_cut_off() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let screenshot = Command::Device(DeviceCommand::Screenshot);
    let (outcome, written) = sending(&mut lab, &exchange(screenshot), async |lab| {
        let mut peer = piped(lab).await;
        peer.http().await;
        peer.raw(b"HTTP/1.1 200 OK\r\n\r\n").await;
        let chunk = vec![b' '; 1024 * 1024];
        let mut written = 0;
        // Endless, were it not for the limit.
        while peer.stream.write_all(&chunk).await.is_ok() {
            written += chunk.len();
        }
        written
    })
    .await;
    assert!(
        matches!(outcome, Err(SendError::ReplyTooLarge { .. })),
        "{outcome:?}"
    );
    assert!(
        written <= MAX_REPLY_BYTES + 2 * 1024 * 1024,
        "{written} bytes were taken"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_drips_is_read_to_its_end() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (outcome, ()) = sending(&mut lab, &exchange(tap()), async |lab| {
        let mut peer = piped(lab).await;
        peer.http().await;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", DONE.len());
        for byte in [head.as_bytes(), DONE].concat() {
            peer.raw(&[byte]).await;
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_half_open_connection_is_awaited_until_the_window_closes() {
    let halves: [&[u8]; 2] = [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0123456789",
    ];
    for half in halves {
        let mut lab = Lab::with(&[usb(1, ALICE)]).await;
        let exchange = exchange(tap());
        let window = Duration::from_secs(90);
        let outcome = timeout(
            window,
            sending(&mut lab, &exchange, async |lab| {
                let mut peer = piped(lab).await;
                peer.http().await;
                peer.raw(half).await;
                // Silence, with the connection open.
                std::future::pending::<()>().await;
            }),
        );
        outcome.await.unwrap_err();
        assert!(exchange.sent.is_marked());
    }
}
