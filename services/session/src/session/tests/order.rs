//! One at a time, in order, in bounded number.

use super::*;
use crate::condition::Condition;
use crate::testing::{envelope, frame, snapshot, status, tap, tap_in_the_middle};
use fleetgate_runner::{AppAction, AppCommand, Reply};
use futures_util::future::join_all;
use tower::ServiceExt;

#[tokio::test(start_paused = true)]
async fn sixty_four_callers_are_served_one_at_a_time_in_the_order_they_came() {
    let mut rig = Rig::new();
    let session = rig.session.clone();
    let calls = (0..64).map(|n| session.clone().oneshot(job(&format!("c-{n}"), tap())));
    let (outcomes, ()) = tokio::join!(join_all(calls), async {
        for n in 0..64 {
            let reply = rig.sent(&format!("c-{n}")).await;
            let second = tokio::time::timeout(Duration::from_secs(1), rig.phone.next_request());
            assert!(second.await.is_err(), "two in flight");
            reply.send_response(done());
        }
    });
    for (n, outcome) in (0_u32..).zip(outcomes) {
        let receipt = outcome.unwrap().receipt;
        assert_eq!(receipt.command_id, id(&format!("c-{n}")));
        assert_eq!(receipt.queue_wait.as_secs(), u64::from(n));
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_lane_refuses_at_once_and_records_nothing() {
    let mut rig = Rig::with(SessionConfig {
        queue_capacity: 1,
        ..SessionConfig::default()
    });
    let (_first, _reply) = rig.occupy("c-1", tap()).await;
    let _second = rig.call(job("c-2", tap()));
    let failed = rig.call(job("c-3", tap())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::LaneFull { limit: 1 }));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert!(failed.retry_after().is_some());
    assert_eq!(rig.ledger.lines(), ["intent c-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_load_tells_what_waits_and_what_is_in_flight() {
    let mut rig = Rig::new();
    assert_eq!(rig.session.load(), Load::default());
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let second = rig.call(job("c-2", tap()));
    rig.settle().await;
    assert_eq!(
        rig.session.load(),
        Load {
            queued: 1,
            in_flight: Some(id("c-1")),
            condition: Condition::Ready,
        }
    );
    reply.send_response(done());
    rig.sent("c-2").await.send_response(done());
    assert!(first.await.is_ok() && second.await.is_ok());
    rig.settle().await;
    assert_eq!(rig.session.load(), Load::default());
}

#[tokio::test(start_paused = true)]
async fn equal_snapshots_share_one_exchange_and_one_receipt() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", snapshot("com.a")).await;
    let shared = [
        rig.call(job("c-2", snapshot("com.a"))),
        rig.call(job("c-3", snapshot("com.a"))),
    ];
    rig.settle().await;
    reply.send_response(done());
    let first = first.await.unwrap();
    for call in shared {
        assert_eq!(call.await.unwrap(), first);
    }
    rig.assert_quiet().await;
    assert_eq!(rig.ledger.lines(), ["note c-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_after_a_queued_tap_is_taken_after_it() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", snapshot("com.a")).await;
    let calls = [
        first,
        rig.call(job("c-2", tap())),
        rig.call(job("c-3", snapshot("com.a"))),
    ];
    reply.send_response(done());
    rig.sent("c-2").await.send_response(done());
    rig.sent("c-3").await.send_response(done());
    for call in calls {
        assert!(call.await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_viewport_and_the_tap_that_needs_it_share_a_turn() {
    let mut rig = Rig::new();
    let aimed = rig.call(job("c-1", tap_in_the_middle()));
    let next = rig.call(job("c-2", tap()));
    let (read, reply) = rig.sent_kind(CommandKind::Viewport).await;
    let minted = read.request.command_id.unwrap();
    reply.send_response(Envelope {
        reactivated: true,
        ..envelope(Ok(Reply::Viewport(frame())))
    });
    let (tap, reply) = rig.sent_kind(CommandKind::Tap).await;
    assert_eq!(
        tap.request.command_id,
        Some(id("c-1")),
        "nothing comes between"
    );
    let Command::App(AppCommand {
        action: AppAction::Tap { at, .. },
        ..
    }) = tap.request.command
    else {
        panic!("not a tap")
    };
    assert_eq!((at.x, at.y), (200.0, 400.0));
    reply.send_response(done());
    assert!(aimed.await.unwrap().receipt.reactivated);
    assert!(rig.ledger.conclusion().receipt.reactivated);
    rig.sent("c-2").await.send_response(done());
    assert!(!next.await.unwrap().receipt.reactivated);
    let note = format!("note {minted} Completed");
    assert_eq!(
        rig.ledger.lines()[..3],
        [&*note, "intent c-1", "fate c-1 Completed"]
    );
}

#[tokio::test(start_paused = true)]
async fn status_is_answered_while_the_lane_is_stuck() {
    let mut rig = Rig::new();
    let (_stuck, _reply) = rig.occupy("c-1", tap()).await;
    let asked = rig.call(job("s-1", status()));
    let (exchange, reply) = rig.sent_kind(CommandKind::Status).await;
    assert_eq!(
        exchange.request.command_id, None,
        "the protocol has no id for it"
    );
    reply.send_response(done());
    let receipt = asked.await.unwrap().receipt;
    assert_eq!(receipt.command_id, id("s-1"));
    assert_eq!(rig.ledger.lines(), ["intent c-1", "note s-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn status_requests_are_bounded_in_number() {
    let mut rig = Rig::with(SessionConfig {
        bypass_limit: 2,
        ..SessionConfig::default()
    });
    let first = rig.call(job("s-1", status()));
    let _second = rig.call(job("s-2", status()));
    let failed = rig.call(job("s-3", status())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::LaneFull { limit: 2 }));
    // One that ends makes room for one.
    rig.sent_kind(CommandKind::Status)
        .await
        .1
        .send_response(done());
    assert!(first.await.is_ok());
    rig.settle().await;
    let _second = rig.sent_kind(CommandKind::Status).await;
    let fourth = rig.call(job("s-4", status()));
    rig.sent_kind(CommandKind::Status)
        .await
        .1
        .send_response(done());
    assert!(fourth.await.is_ok());
}
