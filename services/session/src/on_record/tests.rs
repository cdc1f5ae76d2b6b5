//! The order of intent, first byte, fate and reply, and a ledger that fails.

use std::time::Duration;

use fleetgate_runner::{Budgets, Command, Effect, Fate, Point, SendError};
use tower_test::mock::Handle;

use super::*;
use crate::testing::{
    Ledger, SECRET, broken, device, done, leave, mocked, screenshot, tap, turn, type_secret,
    verdict, withdrawn,
};

const PATIENCE: Duration = Duration::from_secs(10);

fn on_record(
    ledger: &Ledger,
) -> (
    impl Service<Turn, Response = Success, Error = Failed>,
    Handle<Dispatch, Answer>,
) {
    let (inner, below) = mocked();
    let (docket, _doubts, _ids) = Docket::new();
    let desk = Desk {
        recorder: Recorder::new(ledger.clone(), device(), PATIENCE),
        gauge: Gauge::new(Budgets::default()),
        budgets: Budgets::default(),
        docket,
    };
    (OnRecordLayer::new(desk).layer(inner), below)
}

/// What comes of a command if the layers below, given leave, end so.
async fn end(
    ledger: &Ledger,
    command: Command<Point>,
    result: Result<Answer, Unanswered>,
) -> Result<Success, Failed> {
    let (service, mut below) = on_record(ledger);
    let (outcome, ()) = tokio::join!(service.oneshot(turn("c-1", command)), async {
        let (dispatch, reply) = below.next_request().await.unwrap();
        match (dispatch.clearance.cleared().await, result) {
            (Ok(()), Ok(answer)) => reply.send_response(answer),
            (Ok(()), Err(error)) => reply.send_error(error),
            (Err(refused), _) => reply.send_error(Unanswered::Send(refused.into())),
        }
    });
    outcome
}

fn completed() -> Answer {
    Answer::Replied(done())
}

#[tokio::test(start_paused = true)]
async fn leave_to_send_a_mutation_comes_with_its_durable_intent() {
    let ledger = Ledger::new();
    ledger.set_open(false);
    let (service, mut below) = on_record(&ledger);
    let (outcome, ()) = tokio::join!(service.oneshot(turn("c-1", tap())), async {
        let (dispatch, reply) = below.next_request().await.unwrap();
        let leave = dispatch.clearance.cleared();
        let waited = tokio::time::timeout(Duration::from_secs(5), leave).await;
        assert!(waited.is_err(), "the intent is not durable yet");
        ledger.set_open(true);
        dispatch.clearance.cleared().await.unwrap();
        assert_eq!(ledger.lines(), ["intent c-1"]);
        reply.send_response(Answer::Replied(done()));
    });
    assert!(outcome.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_intent_is_committed_while_the_connection_is_made() {
    let ledger = Ledger::new();
    let (service, mut below) = on_record(&ledger);
    let (outcome, ()) = tokio::join!(service.oneshot(turn("c-1", tap())), async {
        let (_dispatch, reply) = below.next_request().await.unwrap();
        // Connecting; nobody waits for the leave yet.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(ledger.lines(), ["intent c-1"]);
        reply.send_response(Answer::Replied(done()));
    });
    assert!(outcome.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_fate_is_on_record_before_the_reply() {
    let ledger = Ledger::new();
    let (service, mut below) = on_record(&ledger);
    let mut call = std::pin::pin!(service.oneshot(turn("c-1", tap())));
    tokio::select! {
        outcome = &mut call => panic!("answered without the ledger: {outcome:?}"),
        () = async {
            let (dispatch, reply) = below.next_request().await.unwrap();
            dispatch.clearance.cleared().await.unwrap();
            ledger.set_open(false);
            reply.send_response(Answer::Replied(done()));
            tokio::time::sleep(Duration::from_secs(5)).await;
        } => {}
    }
    ledger.set_open(true);
    assert!(call.await.is_ok());
    assert_eq!(ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn every_attempt_shares_one_intent() {
    let ledger = Ledger::new();
    let (service, mut below) = on_record(&ledger);
    let (outcome, ()) = tokio::join!(service.oneshot(turn("c-1", tap())), async {
        let (dispatch, reply) = below.next_request().await.unwrap();
        for _attempt in 0..3 {
            dispatch.clone().clearance.cleared().await.unwrap();
        }
        reply.send_response(Answer::Replied(done()));
    });
    assert!(outcome.is_ok());
    assert_eq!(ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_used_id_is_refused_and_its_entry_left_alone() {
    let ledger = Ledger::new();
    end(&ledger, tap(), Ok(completed())).await.unwrap();
    let before = ledger.lines();
    let failed = end(&ledger, tap(), Ok(completed())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Duplicate));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    assert_eq!(ledger.lines(), before);
}

#[tokio::test(start_paused = true)]
async fn without_an_intent_nothing_is_sent() {
    let ledger = Ledger::new();
    ledger.refuse(1, 0);
    let failed = end(&ledger, tap(), Ok(completed())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Record(_)));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::NotSent, Effect::None)
    );
    // The acknowledgement may be all that was lost.
    assert_eq!(ledger.lines(), ["fate c-1 NotSent"]);
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_never_answers_holds_a_mutation_for_its_patience_only() {
    let ledger = Ledger::new();
    ledger.set_open(false);
    let begin = Instant::now();
    let failed = end(&ledger, tap(), Ok(completed())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Record(_)));
    assert_eq!(failed.receipt.fate, Fate::NotSent);
    assert!(begin.elapsed() <= 2 * PATIENCE + Duration::from_millis(2));
    assert!(ledger.lines().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_fails_before_the_intent_is_durable_still_concludes_it() {
    let ledger = Ledger::new();
    ledger.set_open(false);
    let (service, mut below) = on_record(&ledger);
    let (outcome, ()) = tokio::join!(service.oneshot(turn("c-1", tap())), async {
        let (_, reply) = below.next_request().await.unwrap();
        reply.send_error(Unanswered::Send(SendError::NotAttached));
        tokio::time::sleep(Duration::from_secs(1)).await;
        ledger.set_open(true);
    });
    let failed = outcome.unwrap_err();
    assert!(matches!(
        failed.failure,
        Failure::NotSent(SendError::NotAttached)
    ));
    assert_eq!(ledger.lines(), ["intent c-1", "fate c-1 NotSent"]);
}

#[tokio::test(start_paused = true)]
async fn a_fate_that_is_not_taken_is_offered_again() {
    let ledger = Ledger::new();
    ledger.refuse(0, 3);
    end(&ledger, tap(), Ok(completed())).await.unwrap();
    assert_eq!(ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_fate_that_is_never_taken_is_in_the_receipt() {
    let ledger = Ledger::new();
    ledger.refuse(0, usize::MAX);
    let begin = Instant::now();
    let failed = end(&ledger, tap(), Ok(completed())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Record(_)));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Completed, Effect::Applied)
    );
    assert!(begin.elapsed() <= PATIENCE + Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_read_is_noted_once_at_its_end() {
    let ledger = Ledger::new();
    end(&ledger, screenshot(), Ok(completed())).await.unwrap();
    assert_eq!(ledger.lines(), ["note c-1 Completed"]);
    let conclusion = ledger.conclusion();
    assert_eq!(conclusion.device, device());
    assert_eq!(conclusion.origin.principal.as_deref(), Some("alice"));
    assert!(!conclusion.intended);
    assert_eq!((conclusion.reason, conclusion.message), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_read_is_served_without_being_on_record() {
    let ledger = Ledger::new();
    ledger.refuse(0, 1);
    assert!(end(&ledger, screenshot(), Ok(completed())).await.is_ok());
    assert!(ledger.lines().is_empty());
    ledger.set_open(false);
    assert!(end(&ledger, screenshot(), Ok(completed())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_reply_to_a_mutation_is_on_record_and_that_to_a_read_is_not() {
    for (command, kept) in [(tap(), true), (screenshot(), false)] {
        let ledger = Ledger::new();
        let reply = end(&ledger, command, Ok(completed())).await.unwrap().reply;
        assert_eq!(ledger.conclusion().reply, kept.then_some(reply));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_fate_is_on_record_with_its_reason() {
    let ledger = Ledger::new();
    let lost = Err(Unanswered::Unknown {
        cause: broken(),
        journal: None,
    });
    end(&ledger, tap(), lost).await.unwrap_err();
    assert_eq!(ledger.lines(), ["intent c-1", "fate c-1 Unknown"]);
    let conclusion = ledger.conclusion();
    assert_eq!(conclusion.reason.as_deref(), Some("FATE_UNKNOWN"));
    assert!(conclusion.message.unwrap().contains("connection"));
    assert!(matches!(
        conclusion.failure,
        Some(Failure::Unknown { journal: None, .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn typed_text_is_not_in_what_the_record_says_about_it() {
    let ledger = Ledger::new();
    let mut envelope = verdict(fleetgate_runner::RunnerCode::CommandFailed);
    if let Err(error) = &mut envelope.result {
        error.message = format!("no key for {SECRET}");
    }
    end(&ledger, type_secret(), Ok(Answer::Replied(envelope)))
        .await
        .unwrap_err();
    let told = format!("{:?}", ledger.conclusion());
    assert!(
        told.contains("no key for") && !told.contains(SECRET),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_leave_there_is_neither_an_intent_nor_an_attempt() {
    let ledger = Ledger::new();
    let (service, mut below) = on_record(&ledger);
    let (giver, leave) = leave();
    giver.send_replace(Some(withdrawn("LEASE_REVOKED")));
    let turn = Turn {
        leave,
        fronted: true,
        ..turn("c-1", tap())
    };
    let failed = service.oneshot(turn).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Withdrawn(_)));
    let Receipt {
        fate,
        effect,
        reactivated,
        ..
    } = failed.receipt;
    assert_eq!((fate, effect), (Fate::NotSent, Effect::None));
    assert!(reactivated, "by the viewport that was read first");
    assert_eq!(ledger.lines(), ["note c-1 NotSent"]);
    assert!(below.next_request().await.is_none());
    assert!(giver.is_closed());
}

#[tokio::test(start_paused = true)]
async fn leave_that_is_withdrawn_once_the_intent_is_made_comes_too_late() {
    let ledger = Ledger::new();
    ledger.set_open(false);
    let (service, mut below) = on_record(&ledger);
    let (giver, leave) = leave();
    let turn = Turn {
        leave,
        ..turn("c-1", tap())
    };
    let (outcome, ()) = tokio::join!(service.oneshot(turn), async {
        let (dispatch, reply) = below.next_request().await.unwrap();
        giver.send_replace(Some(withdrawn("LEASE_REVOKED")));
        ledger.set_open(true);
        dispatch.clearance.cleared().await.unwrap();
        assert!(!giver.is_closed());
        reply.send_response(completed());
    });
    assert!(outcome.is_ok() && giver.is_closed());
}
