//! Callers wait as long as they like; commands go on without them.

use super::*;
use crate::testing::{job_within, screenshot, snapshot, status, tap};
use tokio::time::Instant;

const HALF: Duration = Duration::from_millis(500);

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_in_the_queue_ends_the_command_unsent() {
    let mut rig = Rig::with(SessionConfig {
        queue_capacity: 1,
        ..SessionConfig::default()
    });
    let (first, reply) = rig.occupy("c-1", tap()).await;
    let begin = Instant::now();
    let failed = rig.call(job_within("c-2", tap(), HALF)).await.unwrap_err();
    assert_eq!(begin.elapsed().as_millis(), 500);
    assert!(matches!(failed.failure, Failure::DeadlineInQueue));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert_eq!(failed.receipt.queue_wait.as_millis(), 500);
    assert_eq!(rig.ledger.fate("c-2").await, Fate::NotSent);
    assert!(!rig.ledger.conclusion().intended);
    // Its place is free, and it is not sent later.
    let third = rig.call(job("c-3", tap()));
    reply.send_response(done());
    rig.sent("c-3").await.send_response(done());
    assert!(first.await.is_ok() && third.await.is_ok());
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_in_flight_leaves_the_command_to_its_fate() {
    let mut rig = Rig::new();
    let begin = Instant::now();
    let call = rig.call(job_within("c-1", tap(), HALF));
    let reply = rig.sent("c-1").await;
    let failed = call.await.unwrap_err();
    assert_eq!(begin.elapsed().as_millis(), 500);
    assert!(matches!(failed.failure, Failure::DeadlineExceeded));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Unknown, Effect::Unknown)
    );
    assert_eq!(failed.receipt.attempts, 1);
    assert_eq!(failed.retry_after(), None);
    tokio::time::sleep(Duration::from_millis(1500)).await;
    reply.send_response(done());
    assert_eq!(rig.ledger.fate("c-1").await, Fate::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_leaves_after_the_send_leaves_the_command_to_its_fate() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    let reply = rig.sent("c-1").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(call);
    tokio::time::sleep(Duration::from_secs(2)).await;
    reply.send_response(done());
    assert_eq!(rig.ledger.fate("c-1").await, Fate::Completed);
}

#[tokio::test(start_paused = true)]
async fn callers_that_leave_the_queue_take_their_reads_along_but_not_their_mutations() {
    let mut rig = Rig::new();
    let (first, reply) = rig.occupy("c-1", tap()).await;
    drop([
        rig.call(job("c-2", screenshot())),
        rig.call(job("c-3", tap())),
        rig.call(job("c-4", screenshot())),
    ]);
    reply.send_response(done());
    rig.sent("c-3").await.send_response(done());
    assert_eq!(rig.ledger.fate("c-3").await, Fate::Completed);
    assert!(first.await.is_ok());
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn those_who_share_a_snapshot_have_deadlines_of_their_own() {
    let mut rig = Rig::new();
    let patient = rig.call(job("c-1", snapshot("com.a")));
    let reply = rig.sent("c-1").await;
    let hasty = rig.call(job_within("c-2", snapshot("com.a"), HALF));
    assert!(matches!(
        hasty.await.unwrap_err().failure,
        Failure::DeadlineExceeded
    ));
    reply.send_response(done());
    assert!(patient.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_hasty_caller_does_not_cut_short_a_snapshot_that_another_waits_for() {
    let mut rig = Rig::new();
    let hasty = rig.call(job_within("c-1", snapshot("com.a"), HALF));
    let reply = rig.sent("c-1").await;
    let patient = rig.call(job("c-2", snapshot("com.a")));
    assert!(hasty.await.is_err());
    reply.send_error(crate::testing::broken());
    rig.sent("c-1").await.send_response(done());
    assert_eq!(patient.await.unwrap().receipt.attempts, 2);
}

#[tokio::test(start_paused = true)]
async fn a_status_request_ends_at_its_deadline_and_is_noted_all_the_same() {
    let mut rig = Rig::new();
    let call = rig.call(job_within("s-1", status(), HALF));
    let (_, reply) = rig.sent_kind(CommandKind::Status).await;
    assert!(matches!(
        call.await.unwrap_err().failure,
        Failure::DeadlineExceeded
    ));
    reply.send_response(done());
    assert_eq!(rig.ledger.fate("s-1").await, Fate::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_already_is_not_worth_a_turn() {
    let mut rig = Rig::new();
    let failed = rig
        .call(job_within("c-1", tap(), Duration::ZERO))
        .await
        .unwrap_err();
    assert!(matches!(failed.failure, Failure::DeadlineInQueue));
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_is_too_slow_is_not_buried_in_notes() {
    let mut rig = Rig::with(SessionConfig {
        queue_capacity: 1,
        ..SessionConfig::default()
    });
    let (_stuck, _reply) = rig.occupy("c-1", tap()).await;
    rig.ledger.set_open(false);
    for name in ["c-2", "c-3", "c-4"] {
        let failed = rig.call(job_within(name, tap(), HALF)).await.unwrap_err();
        assert!(matches!(failed.failure, Failure::DeadlineInQueue));
    }
    rig.ledger.set_open(true);
    rig.settle().await;
    assert_eq!(rig.ledger.lines(), ["intent c-1", "note c-2 NotSent"]);
}
