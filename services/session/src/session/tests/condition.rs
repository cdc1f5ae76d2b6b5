//! A runner that is stuck: what callers and onlookers are told.

use super::*;
use crate::condition::Condition;
use crate::testing::{busy, job_within, tap, verdict};
use fleetgate_runner::RunnerCode;

/// A session whose runner has just abandoned a command.
async fn draining() -> Rig {
    let mut rig = Rig::new();
    let (call, reply) = rig.occupy("c-0", tap()).await;
    reply.send_response(verdict(RunnerCode::CommandTimedOut));
    call.await.unwrap_err();
    rig
}

fn is_draining(rig: &Rig) -> bool {
    matches!(rig.session.load().condition, Condition::Draining { .. })
}

#[tokio::test(start_paused = true)]
async fn after_a_timeout_the_device_drains_until_the_runner_executes_again() {
    let mut rig = draining().await;
    assert!(is_draining(&rig));
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
    assert_eq!(rig.session.load().condition, Condition::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_fails_while_the_runner_drains_says_so() {
    let mut rig = draining().await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let call = rig.call(job_within("c-1", tap(), Duration::from_millis(100)));
    rig.sent("c-1").await.send_response(busy());
    let failed = call.await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Draining { .. }));
    assert_eq!(failed.failure.reason(), "RUNNER_BUSY");
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Failed, Effect::None)
    );
    assert!(failed.failure.to_string().contains("draining for 1.5 s"));
    assert!(failed.failure.hint().unwrap().contains("unlock the phone"));
    assert_eq!(failed.retry_after(), Some(Duration::from_secs(1)));
    assert_eq!(
        rig.ledger.conclusion().reason.as_deref(),
        Some("RUNNER_BUSY")
    );
}

#[tokio::test(start_paused = true)]
async fn a_stuck_runner_is_asked_how_it_fares_until_it_is_idle() {
    let mut rig = draining().await;
    for state in [RunnerState::Busy, RunnerState::Wedged, RunnerState::Busy] {
        let (_, reply) = rig.sent_kind(CommandKind::Status).await;
        reply.send_response(health(A_DAY, state.clone()));
        rig.settle().await;
        let condition = rig.session.load().condition;
        assert_eq!(condition == Condition::Wedged, state == RunnerState::Wedged);
    }
    rig.tell_uptime(Duration::from_secs(1)).await;
    rig.settle().await;
    assert_eq!(rig.session.load().condition, Condition::Ready);
    let more = tokio::time::timeout(A_DAY, rig.phone.next_request());
    assert!(more.await.is_err(), "it is left alone once it is well");
}

#[tokio::test(start_paused = true)]
async fn a_wedged_runner_marks_the_device() {
    let mut rig = draining().await;
    let call = rig.call(job("c-1", tap()));
    let reply = rig.sent("c-1").await;
    reply.send_response(verdict(RunnerCode::RunnerWedged));
    let failed = call.await.unwrap_err();
    assert_eq!(failed.failure.reason(), "RUNNER_WEDGED");
    assert!(failed.failure.hint().unwrap().contains("recycled"));
    assert_eq!(rig.session.load().condition, Condition::Wedged);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_behind_a_drain_is_explained_by_it() {
    let mut rig = draining().await;
    let (_first, _reply) = rig.occupy("c-1", tap()).await;
    let waits = rig.call(job_within("c-2", tap(), Duration::from_secs(1)));
    let failed = waits.await.unwrap_err();
    assert_eq!(failed.failure.reason(), "DEADLINE_IN_QUEUE");
    assert!(matches!(failed.failure, Failure::Draining { .. }));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
}
