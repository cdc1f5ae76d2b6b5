//! What whoever keeps the runner running is told.

use super::*;
use crate::Vitals;
use crate::condition::Condition;
use crate::testing::{broken, screenshot, soon, tap, verdict};
use fleetgate_runner::RunnerCode;

fn refused(port: Option<u16>) -> SendError {
    SendError::NotListening { port }
}

#[tokio::test(start_paused = true)]
async fn every_change_of_condition_is_told_and_nothing_else() {
    let mut rig = Rig::new();
    let mut vitals = rig.session.vitals();
    assert_eq!(*vitals.borrow_and_update(), Vitals::default());
    let (call, reply) = rig.occupy("c-1", tap()).await;
    reply.send_response(done());
    assert!(call.await.is_ok());
    assert!(!vitals.has_changed().unwrap(), "it was ready, and it is");

    let (call, reply) = rig.occupy("c-2", tap()).await;
    reply.send_response(verdict(RunnerCode::CommandTimedOut));
    call.await.unwrap_err();
    soon(vitals.changed()).await.unwrap();
    let condition = vitals.borrow_and_update().condition;
    assert!(matches!(condition, Condition::Draining { .. }));
    let (_, reply) = rig.sent_kind(CommandKind::Status).await;
    reply.send_response(health(A_DAY, RunnerState::Wedged));
    soon(vitals.changed()).await.unwrap();
    assert_eq!(vitals.borrow_and_update().condition, Condition::Wedged);
    rig.tell_uptime(A_DAY).await;
    soon(vitals.changed()).await.unwrap();
    assert_eq!(*vitals.borrow_and_update(), Vitals::default());
}

#[tokio::test(start_paused = true)]
async fn that_a_fate_is_looked_into_is_told_and_that_it_is_settled() {
    let mut rig = Rig::new();
    let mut vitals = rig.session.vitals();
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_error(broken());
    let asked = async {
        loop {
            let (_, reply) = sent(&mut rig.phone).await;
            reply.send_error(refused(Some(8100)));
        }
    };
    let failed = tokio::select! {
        outcome = call => outcome.unwrap_err(),
        () = asked => unreachable!("it is asked for ever"),
    };
    assert_eq!(failed.receipt.fate, Fate::Unknown);
    let reconciling = vitals.wait_for(|vitals| vitals.condition == Condition::Reconciling);
    let counted = soon(reconciling).await.unwrap().unreachable;
    assert!(counted > 0, "nobody listened");
    rig.tell("c-1", JournalState::Completed).await;
    let ready = vitals.wait_for(|vitals| vitals.condition == Condition::Ready);
    soon(ready).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn attempts_that_find_nobody_or_get_no_answer_are_counted_one_by_one() {
    let mut rig = Rig::new();
    let vitals = rig.session.vitals();
    let unreachable = || vitals.borrow().unreachable;
    // Three attempts, two of which find nobody.
    let call = rig.call(job("c-1", screenshot()));
    rig.sent("c-1").await.send_error(refused(Some(8100)));
    rig.sent("c-1").await.send_error(refused(None));
    rig.sent("c-1").await.send_response(done());
    assert!(call.await.is_ok());
    assert_eq!(unreachable(), 2);
    // What fails otherwise says nothing about the runner.
    for error in [
        SendError::NotAttached,
        SendError::Connect(std::sync::Arc::new(std::fmt::Error)),
    ] {
        let call = rig.call(job(&format!("{error:?}"), tap()));
        let (_connecting, reply) = rig.phone.next_request().await.unwrap();
        reply.send_error(error);
        call.await.unwrap_err();
    }
    assert_eq!(unreachable(), 2);
    // A window that closes before anything is sent.
    let call = rig.call(job("c-2", tap()));
    let (_connecting, _never) = rig.phone.next_request().await.unwrap();
    let failed = call.await.unwrap_err();
    assert_eq!(failed.failure.reason(), "RUNNER_UNREACHABLE");
    assert_eq!(failed.receipt.fate, Fate::NotSent);
    assert_eq!(unreachable(), 3);
}
