//! A session that waits for somebody who recycles a wedged runner.

use super::*;
use crate::condition::Condition;
use crate::testing::{busy, job_within, screenshot, soon, status, tap, verdict};
use fleetgate_runner::RunnerCode;
use tokio::time::Instant;

fn status_of(uptime: Duration, state: RunnerState) -> RunnerStatus {
    RunnerStatus {
        uptime,
        state,
        suppressed_issues: 0,
        recorded_failures: 0,
    }
}

fn holding() -> Rig {
    Rig::with(SessionConfig {
        hold_when_wedged: true,
        ..SessionConfig::default()
    })
}

/// A session that has just heard from its runner that it is wedged.
async fn wedged() -> Rig {
    let mut rig = holding();
    let (call, reply) = rig.occupy("c-0", tap()).await;
    reply.send_response(verdict(RunnerCode::RunnerWedged));
    let failed = call.await.unwrap_err();
    assert_eq!(failed.failure.reason(), "RUNNER_WEDGED");
    assert_eq!(failed.receipt.fate, Fate::Failed);
    assert_eq!(rig.session.load().condition, Condition::Wedged);
    rig
}

#[tokio::test(start_paused = true)]
async fn nothing_starts_until_the_runner_is_seen_to_be_well() {
    let mut rig = wedged().await;
    let tap = rig.call(job("c-1", tap()));
    let read = rig.call(job("c-2", screenshot()));
    // All that is sent is the question how it fares.
    for state in [
        RunnerState::Wedged,
        RunnerState::Busy,
        RunnerState::Other("odd".to_owned()),
        RunnerState::Busy,
    ] {
        let (_, reply) = rig.sent_kind(CommandKind::Status).await;
        reply.send_response(health(A_DAY, state));
    }
    assert_eq!(rig.session.load().queued, 2);
    let (_, reply) = rig.sent_kind(CommandKind::Status).await;
    reply.send_response(health(A_DAY, RunnerState::Idle));
    rig.sent("c-1").await.send_response(done());
    rig.sent("c-2").await.send_response(done());
    assert!(tap.await.is_ok() && read.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_word_from_beside_the_session_opens_it_at_once() {
    let mut rig = wedged().await;
    let call = rig.call(job("c-1", tap()));
    rig.settle().await;
    let begin = Instant::now();
    rig.session.hear(&status_of(A_DAY, RunnerState::Wedged));
    rig.settle().await;
    assert_eq!(rig.session.load().queued, 1);
    rig.session.hear(&status_of(A_DAY, RunnerState::Idle));
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
    assert!(begin.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn another_runner_is_not_wedged_whatever_it_calls_its_state() {
    let mut rig = wedged().await;
    rig.session.hear(&status_of(A_DAY, RunnerState::Wedged));
    let call = rig.call(job("c-1", tap()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let odd = RunnerState::Other("odd".to_owned());
    rig.session.hear(&status_of(Duration::ZERO, odd));
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_status_request_of_a_caller_tells_as_much() {
    let mut rig = wedged().await;
    let call = rig.call(job("c-1", tap()));
    let asked = rig.call(job("s-2", status()));
    let (_, reply) = rig.sent_kind(CommandKind::Status).await;
    reply.send_response(health(A_DAY, RunnerState::Idle));
    assert!(asked.await.is_ok());
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_picture_that_was_in_flight_proves_nothing_about_the_wedge() {
    let mut rig = holding();
    let (picture, reply) = rig.occupy("c-1", screenshot()).await;
    let next = rig.call(job("c-2", tap()));
    rig.session.hear(&status_of(A_DAY, RunnerState::Wedged));
    reply.send_response(done_with_picture());
    assert!(picture.await.is_ok());
    rig.settle().await;
    assert_eq!(rig.session.load().condition, Condition::Wedged);
    assert_eq!(rig.session.load().queued, 1);
    rig.session.hear(&status_of(A_DAY, RunnerState::Idle));
    rig.sent("c-2").await.send_response(done());
    assert!(next.await.is_ok());
}

fn done_with_picture() -> Envelope {
    let png = Vec::new().into();
    envelope(Ok(Reply::Screenshot(fleetgate_runner::Screenshot { png })))
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_meanwhile_says_that_a_recycle_is_waited_for() {
    let mut rig = wedged().await;
    let call = rig.call(job_within("c-1", tap(), Duration::from_secs(1)));
    let failed = soon(call).await.unwrap_err();
    assert_eq!(failed.failure.reason(), "DEADLINE_IN_QUEUE");
    assert!(matches!(failed.failure, Failure::Paused { .. }));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_shut_down_meanwhile_ends_after_its_grace() {
    let mut rig = wedged().await;
    let call = rig.call(job("c-1", tap()));
    rig.settle().await;
    let (begin, grace) = (Instant::now(), Duration::from_secs(1));
    rig.task.shutdown(grace).await;
    assert_eq!(begin.elapsed(), grace);
    let failed = call.await.unwrap_err();
    assert_eq!(failed.failure.reason(), "GATEWAY_DRAINING");
    assert_eq!(failed.receipt.fate, Fate::NotSent);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_nobody_recycles_for_sends_all_the_same() {
    let mut rig = Rig::new();
    for name in ["c-0", "c-1"] {
        let (call, reply) = rig.occupy(name, tap()).await;
        reply.send_response(verdict(RunnerCode::RunnerWedged));
        assert_eq!(call.await.unwrap_err().failure.reason(), "RUNNER_WEDGED");
    }
}

/// Busy for two minutes, then wedged, then recycled: as whoever keeps the
/// runner running sees it.
#[tokio::test(start_paused = true)]
async fn a_busy_runner_that_wedges_is_recycled_under_those_who_wait() {
    let two_minutes = Duration::from_secs(120);
    let mut rig = Rig::with(SessionConfig {
        hold_when_wedged: true,
        busy_ceiling: 2 * two_minutes,
        ..SessionConfig::default()
    });
    let mut vitals = rig.session.vitals();
    let (stuck, reply) = rig.occupy("c-0", tap()).await;
    let begin = Instant::now();
    reply.send_response(verdict(RunnerCode::CommandTimedOut));
    let failed = stuck.await.unwrap_err();
    assert_eq!(
        (failed.failure.reason(), failed.receipt.fate),
        ("COMMAND_TIMED_OUT", Fate::Failed)
    );
    soon(vitals.changed()).await.unwrap();
    let condition = vitals.borrow_and_update().condition;
    assert!(matches!(condition, Condition::Draining { .. }));

    // Only busy is tried again, and within the deadline.
    let three = Duration::from_secs(3);
    let hasty = rig.call(job_within("c-1", tap(), three));
    let patient = rig.call(job("c-2", tap()));
    let mut attempts = Vec::new();
    let reply = loop {
        let (exchange, reply) = sent(&mut rig.phone).await;
        assert!(begin.elapsed() < 2 * two_minutes, "it has given up");
        let Some(name) = exchange.request.command_id else {
            reply.send_response(health(A_DAY, RunnerState::Busy));
            continue;
        };
        attempts.push((name.clone(), begin.elapsed()));
        if begin.elapsed() < two_minutes {
            reply.send_response(busy());
        } else {
            assert_eq!(name, id("c-2"));
            break reply;
        }
    };
    // Which of the two it is told, of an attempt at the deadline itself, is left
    // open.
    hasty.await.unwrap_err();
    let first = attempts.iter().filter(|(name, _)| *name == id("c-1"));
    assert!(first.clone().count() > 1);
    assert!(first.map(|(_, at)| *at).all(|at| at <= three));

    let waits = [
        rig.call(job("c-3", tap())),
        rig.call(job("c-4", screenshot())),
    ];
    let mut late = rig.call(job_within("c-5", tap(), Duration::from_secs(20)));
    reply.send_response(verdict(RunnerCode::RunnerWedged));
    let failed = patient.await.unwrap_err();
    assert_eq!(failed.failure.reason(), "RUNNER_WEDGED");
    assert_eq!(failed.receipt.effect, Effect::None);
    let wedged = vitals.wait_for(|vitals| vitals.condition == Condition::Wedged);
    soon(wedged).await.unwrap();

    // Whoever sees that ends the runner once nothing is in flight.
    let pause = rig.session.pause();
    soon(rig.session.idle()).await;
    let failed = loop {
        tokio::select! {
            biased;
            outcome = &mut late => break outcome.unwrap_err(),
            (exchange, reply) = sent(&mut rig.phone) => {
                assert_eq!(exchange.request.command.kind(), CommandKind::Status);
                reply.send_response(health(A_DAY, RunnerState::Wedged));
            }
        }
    };
    assert_eq!(failed.failure.reason(), "DEADLINE_IN_QUEUE");
    rig.session
        .hear(&status_of(Duration::from_secs(1), RunnerState::Idle));
    assert_eq!(vitals.borrow_and_update().condition, Condition::Ready);
    rig.settle().await;
    assert_eq!(rig.session.load().queued, 2, "not before the pause ends");
    drop(pause);
    for (call, name) in waits.into_iter().zip(["c-3", "c-4"]) {
        rig.sent(name).await.send_response(done());
        assert!(call.await.is_ok());
    }
    assert_eq!(vitals.borrow().unreachable, 0);
}
