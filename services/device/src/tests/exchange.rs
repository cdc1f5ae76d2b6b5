//! One command's way out: what is written, when, and what is proven if not.

use std::io;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fleetgate_runner::{
    AppAction, AppCommand, AppPoint, Clearance, Command, CommandId, Disposition, Envelope,
    Exchange, MAX_REQUEST_BYTES, Refused, Reply, Request, RunnerCode, SendError, Sent, TypedText,
};
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tower::{Service, ServiceExt};

use super::daemon::{ALICE, BOB, Lab, Peer, udid, until, usb};
use crate::RunnerExchange;

const PORT: u16 = 8100;
pub(super) const DONE: &[u8] = br#"{"ok":true,"data":{"message":"tapped"}}"#;

fn app(action: AppAction) -> Command {
    Command::App(AppCommand {
        bundle_id: "com.example.app".parse().unwrap(),
        action,
    })
}

pub(super) fn tap() -> Command {
    app(AppAction::Tap {
        at: AppPoint::new(10.0, 20.5).unwrap(),
        taps: NonZeroU32::MIN,
    })
}

fn typing(text: &str) -> Command {
    app(AppAction::Type {
        text: TypedText::new(text.to_owned()).unwrap(),
    })
}

pub(super) fn exchange(command: Command) -> Exchange {
    let command_id: CommandId = "c-1".parse().unwrap();
    Exchange {
        request: Request {
            command_id: Some(command_id),
            command,
        },
        clearance: Clearance::granted(),
        sent: Sent::default(),
    }
}

/// A port that stays what it is.
pub(super) fn fixed(port: u16) -> watch::Receiver<Option<u16>> {
    watch::channel(Some(port)).1
}

/// Sends to Alice while the runner's side does what the test says.
pub(super) async fn sending<T>(
    lab: &mut Lab,
    exchange: &Exchange,
    runner_side: impl AsyncFnOnce(&mut Lab) -> T,
) -> (Result<Envelope, SendError>, T) {
    let runner = RunnerExchange::new(lab.hosts.clone(), udid(ALICE), fixed(PORT));
    tokio::join!(runner.oneshot(exchange.clone()), runner_side(lab))
}

/// A runner's end of a pipe to it.
pub(super) async fn piped(lab: &mut Lab) -> Peer {
    let mut peer = lab.daemon.connecting(1, PORT).await;
    peer.result(0).await;
    peer
}

/// A clearance that comes when the sender says so.
fn pending() -> (oneshot::Sender<Result<(), Refused>>, Clearance) {
    let (grant, granted) = oneshot::channel();
    (grant, Clearance::when(async { granted.await.unwrap() }))
}

#[tokio::test(start_paused = true)]
async fn a_request_is_the_bytes_of_the_protocol_and_its_length_is_known_before() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let exchange = exchange(tap());
    let (outcome, (head, body)) = sending(&mut lab, &exchange, async |lab| {
        let mut peer = piped(lab).await;
        let request = peer.http().await;
        peer.answer(200, DONE).await;
        request
    })
    .await;
    assert_eq!(
        outcome.unwrap().result,
        Ok(Reply::Done("tapped".to_owned()))
    );
    assert!(exchange.sent.is_marked());
    assert_eq!(body, exchange.request.encode());
    assert_eq!(
        head,
        format!(
            "POST /command HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        )
    );
    assert_eq!(
        crate::post::request_len(body.len()),
        head.len() + body.len()
    );
}

#[tokio::test(start_paused = true)]
async fn the_connection_is_made_while_the_leave_to_send_is_awaited_and_not_used_before() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (grant, clearance) = pending();
    let exchange = Exchange {
        clearance,
        ..exchange(tap())
    };
    let (outcome, ()) = sending(&mut lab, &exchange, async |lab| {
        let mut peer = piped(lab).await;
        let early = timeout(Duration::from_secs(30), peer.stream.read_u8()).await;
        assert!(early.is_err(), "something was written: {early:?}");
        assert!(!exchange.sent.is_marked());
        grant.send(Ok(())).unwrap();
        peer.http().await;
        assert!(exchange.sent.is_marked());
        peer.answer(200, DONE).await;
    })
    .await;
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refused_leave_sends_nothing_and_hangs_up() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (grant, clearance) = pending();
    let exchange = Exchange {
        clearance,
        ..exchange(tap())
    };
    let (outcome, written) = sending(&mut lab, &exchange, async |lab| {
        let mut peer = piped(lab).await;
        grant
            .send(Err(Refused(Arc::new(io::Error::other("disk full")))))
            .unwrap();
        peer.hung_up().await
    })
    .await;
    let error = outcome.unwrap_err();
    assert!(matches!(error, SendError::Refused(_)), "{error:?}");
    assert_eq!(error.disposition(), Disposition::NotExecuted);
    assert_eq!(written, b"");
    assert!(!exchange.sent.is_marked());
}

#[tokio::test(start_paused = true)]
async fn a_refused_leave_does_not_wait_for_the_connection() {
    let lab = Lab::with(&[usb(1, ALICE)]).await;
    let refused = async { Err(Refused(Arc::new(io::Error::other("duplicate")))) };
    let exchange = Exchange {
        clearance: Clearance::when(refused),
        ..exchange(tap())
    };
    let runner = RunnerExchange::new(lab.hosts.clone(), udid(ALICE), fixed(PORT));
    // Nobody answers the Connect.
    let error = runner.oneshot(exchange).await.unwrap_err();
    assert!(matches!(error, SendError::Refused(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pipe_that_lost_its_phone_while_the_leave_was_awaited_is_made_anew() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (grant, clearance) = pending();
    let exchange = Exchange {
        clearance,
        ..exchange(tap())
    };
    let (outcome, ()) = sending(&mut lab, &exchange, async |lab| {
        let mut wrong = piped(lab).await;
        // The pipe is made and waits for the leave.
        timeout(Duration::from_secs(1), wrong.stream.read_u8())
            .await
            .unwrap_err();
        // usbmuxd restarts, and 1 becomes another phone.
        lab.listener.hang_up().await;
        lab.listener = lab.daemon.listening(&[usb(1, BOB), usb(2, ALICE)]).await;
        until(&lab.hosts, |view| view.hosts[0].generation == 2).await;
        grant.send(Ok(())).unwrap();
        let mut right = lab.daemon.connecting(2, PORT).await;
        right.result(0).await;
        right.http().await;
        right.answer(200, DONE).await;
        assert_eq!(wrong.hung_up().await, b"");
    })
    .await;
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_phone_without_a_runner_is_provably_not_sent_to() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let exchange = exchange(tap());
    let (outcome, ()) = sending(&mut lab, &exchange, async |lab| {
        lab.daemon.connecting(1, PORT).await.result(3).await;
    })
    .await;
    assert!(
        matches!(outcome, Err(SendError::NotListening { port: Some(PORT) })),
        "{outcome:?}"
    );
    assert!(!exchange.sent.is_marked());
}

#[tokio::test(start_paused = true)]
async fn a_request_over_the_limit_is_refused_before_anything_is_dialled() {
    let lab = Lab::with(&[usb(1, ALICE)]).await;
    let dials = lab.daemon.dials();
    let frame = exchange(typing("x")).request.encode().len() - 1;
    let fits = MAX_REQUEST_BYTES - crate::post::request_len(0) - frame - "0000000".len() + 1;
    let exchange = exchange(typing(&"x".repeat(fits + 1)));
    let runner = RunnerExchange::new(lab.hosts.clone(), udid(ALICE), fixed(PORT));
    let error = runner.oneshot(exchange.clone()).await.unwrap_err();
    assert!(
        matches!(error, SendError::RequestTooLarge { bytes, limit }
            if bytes == limit + 1 && limit == MAX_REQUEST_BYTES),
        "{error:?}"
    );
    assert_eq!(lab.daemon.dials(), dials);
    assert!(!exchange.sent.is_marked());
}

#[tokio::test(start_paused = true)]
async fn a_request_at_the_limit_is_sent_whole() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let frame = exchange(typing("x")).request.encode().len() - 1;
    let fits = MAX_REQUEST_BYTES - crate::post::request_len(0) - frame - "0000000".len() + 1;
    let exchange = exchange(typing(&"x".repeat(fits)));
    let (outcome, sent) = sending(&mut lab, &exchange, async |lab| {
        let mut peer = piped(lab).await;
        let (head, body) = peer.http().await;
        peer.answer(200, DONE).await;
        head.len() + body.len()
    })
    .await;
    outcome.unwrap();
    assert_eq!(sent, MAX_REQUEST_BYTES);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_comes_before_the_request_was_taken_whole_is_used() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let exchange = exchange(typing(&"x".repeat(1_000_000)));
    let (outcome, ()) = sending(&mut lab, &exchange, async |lab| {
        let mut peer = piped(lab).await;
        let mut head = [0; 200];
        peer.stream.read_exact(&mut head).await.unwrap();
        let body = br#"{"ok":false,"error":{"code":"INVALID_REQUEST","message":"too large"}}"#;
        peer.answer(413, body).await;
    })
    .await;
    let error = outcome.unwrap().result.unwrap_err();
    assert_eq!(error.code, RunnerCode::InvalidRequest);
}

#[tokio::test(start_paused = true)]
async fn dropping_an_exchange_hangs_up_at_every_stage() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let window = Duration::from_secs(90);
    let mut runner = RunnerExchange::new(lab.hosts.clone(), udid(ALICE), fixed(PORT));

    let exchange = exchange(tap());
    let (outcome, mut peer) = tokio::join!(
        timeout(window, runner.call(exchange.clone())),
        lab.daemon.connecting(1, PORT)
    );
    outcome.unwrap_err();
    assert_eq!(peer.hung_up().await, b"");
    assert!(!exchange.sent.is_marked());

    let (outcome, mut peer) = tokio::join!(timeout(window, runner.call(exchange.clone())), async {
        let mut peer = piped(&mut lab).await;
        peer.http().await;
        peer
    });
    outcome.unwrap_err();
    assert_eq!(peer.hung_up().await, b"");
    assert!(
        exchange.sent.is_marked(),
        "whoever dropped it can tell that it may have run"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_typed_and_what_is_answered_reach_no_log() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (outcome, ()) = sending(&mut lab, &exchange(typing("canary-typed")), async |lab| {
        let mut peer = piped(lab).await;
        peer.http().await;
        peer.answer(200, br#"{"ok":true,"data":{"message":"canary-answered"}}"#)
            .await;
    })
    .await;
    outcome.unwrap();
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains(ALICE), "it does log: {log}");
    assert!(!log.contains("canary"), "{log}");
}
