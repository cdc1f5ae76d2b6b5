//! A runner that is not up, comes up, and comes up again elsewhere.

use std::time::Duration;

use fleetgate_runner::{Clearance, Disposition, Exchange, SendError};
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use super::daemon::{ALICE, Lab, udid, usb};
use super::exchange::{DONE, exchange, tap};
use crate::RunnerExchange;

fn runner(lab: &Lab, port: &watch::Sender<Option<u16>>) -> RunnerExchange {
    RunnerExchange::new(lab.hosts.clone(), udid(ALICE), port.subscribe())
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_not_up_is_said_at_once_and_nothing_is_dialled() {
    let lab = Lab::with(&[usb(1, ALICE)]).await;
    let (dials, began) = (lab.daemon.dials(), Instant::now());
    let exchange = exchange(tap());
    let port = watch::Sender::new(None);
    let error = runner(&lab, &port)
        .oneshot(exchange.clone())
        .await
        .unwrap_err();
    assert!(
        matches!(error, SendError::NotListening { port: None }),
        "{error:?}"
    );
    assert_eq!(error.disposition(), Disposition::NotExecuted);
    assert!(!exchange.sent.is_marked());
    assert_eq!(
        (lab.daemon.dials(), began.elapsed()),
        (dials, Duration::ZERO)
    );
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_came_up_again_while_the_leave_was_awaited_is_connected_to_anew() {
    // On another port, and on the one that it had before.
    for second in [8200, 8100] {
        let mut lab = Lab::with(&[usb(1, ALICE)]).await;
        let port = watch::Sender::new(Some(8100));
        let (grant, granted) = oneshot::channel();
        let exchange = Exchange {
            clearance: Clearance::when(async { granted.await.unwrap() }),
            ..exchange(tap())
        };
        let (outcome, ()) = tokio::join!(runner(&lab, &port).oneshot(exchange), async {
            let mut old = lab.daemon.connecting(1, 8100).await;
            old.result(0).await;
            timeout(Duration::from_secs(1), old.stream.read_u8())
                .await
                .unwrap_err();
            port.send_replace(None);
            port.send_replace(Some(second));
            grant.send(Ok(())).unwrap();
            let mut new = lab.daemon.connecting(1, second).await;
            new.result(0).await;
            new.http().await;
            new.answer(200, DONE).await;
            assert_eq!(
                old.hung_up().await,
                b"",
                "nothing may reach the runner before"
            );
        });
        outcome.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_went_down_while_the_leave_was_awaited_is_not_sent_to() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let port = watch::Sender::new(Some(8100));
    let (grant, granted) = oneshot::channel();
    let exchange = Exchange {
        clearance: Clearance::when(async { granted.await.unwrap() }),
        ..exchange(tap())
    };
    let sent = exchange.sent.clone();
    let (outcome, ()) = tokio::join!(runner(&lab, &port).oneshot(exchange), async {
        let mut old = lab.daemon.connecting(1, 8100).await;
        old.result(0).await;
        timeout(Duration::from_secs(1), old.stream.read_u8())
            .await
            .unwrap_err();
        port.send_replace(None);
        grant.send(Ok(())).unwrap();
        assert_eq!(old.hung_up().await, b"");
    });
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, SendError::NotListening { port: None }),
        "{error:?}"
    );
    assert!(!sent.is_marked());
}

#[tokio::test(start_paused = true)]
async fn a_connect_follows_the_runner_to_another_port() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let port = watch::Sender::new(Some(8100));
    let exchange = exchange(tap());
    let (outcome, ()) = tokio::join!(runner(&lab, &port).oneshot(exchange), async {
        // Hanging, and then refused after the runner came up elsewhere.
        let mut hanging = lab.daemon.connecting(1, 8100).await;
        port.send_replace(Some(8200));
        let mut refused = lab.daemon.connecting(1, 8200).await;
        assert!(hanging.hung_up().await.is_empty());
        port.send_replace(Some(8300));
        let answer = fleetgate_usbmux::Reply::Result(3.into());
        let answer = answer.encode(refused.tag).unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut refused.stream, &answer)
            .await
            .ok();
        let mut up = lab.daemon.connecting(1, 8300).await;
        up.result(0).await;
        up.http().await;
        up.answer(200, DONE).await;
    });
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_the_port_that_still_stands_names_it() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let port = watch::Sender::new(Some(8100));
    let runner = runner(&lab, &port);
    // Nobody will ever say more.
    drop(port);
    let (outcome, ()) = tokio::join!(runner.oneshot(exchange(tap())), async {
        lab.daemon.connecting(1, 8100).await.result(3).await;
    });
    let error = outcome.unwrap_err();
    assert!(
        matches!(error, SendError::NotListening { port: Some(8100) }),
        "{error:?}"
    );
}
