//! Lost replies, busy runners and our own faults, through the whole stack.
//! Exactly-once is asserted on what reached the phone.

use fleetgate_runner::{JournalEntry, JournalState, RunnerCode};
use tower::service_fn;

use super::*;
use crate::testing::{
    broken, busy, entry, job_within, journal, screenshot, snapshot, status, tap, verdict,
};

/// A tap whose reply is lost and about which the journal says `state`.
async fn lose(entry: JournalEntry) -> (Rig, Result<Success, Failed>) {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_error(broken());
    rig.sent_kind(CommandKind::CommandStatus)
        .await
        .1
        .send_response(journal(entry));
    let outcome = call.await;
    rig.assert_quiet().await;
    (rig, outcome)
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_recovered_from_the_journal() {
    let json = String::from_utf8(done().encode()).unwrap();
    let entry = JournalEntry {
        response_json: Some(json),
        ..entry("c-1", JournalState::Completed)
    };
    let (rig, outcome) = lose(entry).await;
    let receipt = outcome.unwrap().receipt;
    assert_eq!(
        (receipt.fate, receipt.effect),
        (Fate::Completed, Effect::Applied)
    );
    assert_eq!((receipt.attempts, receipt.recovered), (1, true));
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_completed_command_without_a_retained_reply_has_lost_its_result() {
    let (rig, outcome) = lose(entry("c-1", JournalState::Completed)).await;
    let receipt = outcome.unwrap().receipt;
    assert_eq!(
        (receipt.fate, receipt.effect),
        (Fate::CompletedResultLost, Effect::Applied)
    );
    assert_eq!(
        rig.ledger.lines(),
        ["intent c-1", "fate c-1 CompletedResultLost"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_command_has_the_journaled_error() {
    let error = verdict(RunnerCode::TextInputNotFocused).result.unwrap_err();
    let entry = JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    };
    let (_, outcome) = lose(entry).await;
    let failed = outcome.unwrap_err();
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Failed, Effect::None)
    );
    assert!(failed.receipt.recovered);
    assert_eq!(failed.failure.reason(), "TEXT_INPUT_NOT_FOCUSED");
}

#[tokio::test(start_paused = true)]
async fn a_command_that_the_journal_does_not_know_has_an_unknown_fate() {
    let (rig, outcome) = lose(entry("c-1", JournalState::NotAccepted)).await;
    let failed = outcome.unwrap_err();
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Unknown, Effect::Unknown)
    );
    assert_eq!(failed.failure.reason(), "FATE_UNKNOWN");
    assert_eq!(failed.retry_after(), None);
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_stays_under_way_holds_the_lane_until_its_window_closes() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    let next = rig.call(job("c-2", tap()));
    rig.sent("c-1").await.send_error(broken());
    let begin = tokio::time::Instant::now();
    let mut state = JournalState::Accepted;
    let reply = loop {
        let (exchange, reply) = sent(&mut rig.phone).await;
        if exchange.request.command.kind() == CommandKind::Tap {
            assert_eq!(exchange.request.command_id, Some(id("c-2")));
            break reply;
        }
        reply.send_response(journal(entry("c-1", state)));
        state = JournalState::Started;
    };
    assert_eq!(begin.elapsed().as_secs(), 90);
    reply.send_response(done());
    assert_eq!(call.await.unwrap_err().receipt.fate, Fate::Unknown);
    assert!(next.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_lost_is_asked_again() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_error(broken());
    for _ in 0..7 {
        let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
        reply.send_error(broken());
    }
    rig.tell("c-1", JournalState::Completed).await;
    let receipt = call.await.unwrap().receipt;
    assert_eq!(
        (receipt.fate, receipt.attempts),
        (Fate::CompletedResultLost, 1)
    );
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn recovery_goes_on_after_the_callers_deadline() {
    let mut rig = Rig::new();
    let call = rig.call(job_within("c-1", tap(), Duration::from_secs(1)));
    let reply = rig.sent("c-1").await;
    assert!(matches!(
        call.await.unwrap_err().failure,
        Failure::DeadlineExceeded
    ));
    reply.send_error(broken());
    let entry = entry("c-1", JournalState::Completed);
    rig.sent_kind(CommandKind::CommandStatus)
        .await
        .1
        .send_response(journal(entry));
    assert_eq!(rig.ledger.fate("c-1").await, Fate::CompletedResultLost);
}

#[tokio::test(start_paused = true)]
async fn a_busy_runner_costs_attempts_but_only_one_intent() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    for envelope in [busy(), busy(), done()] {
        rig.sent("c-1").await.send_response(envelope);
    }
    assert_eq!(call.await.unwrap().receipt.attempts, 3);
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_stays_busy_fails_the_command_without_effect() {
    let mut rig = Rig::new();
    let call = rig.call(job_within("c-1", tap(), Duration::from_secs(2)));
    let phone = async {
        loop {
            rig.sent("c-1").await.send_response(busy());
        }
    };
    let failed = tokio::select! {
        outcome = call => outcome.unwrap_err(),
        () = phone => unreachable!("the phone is busy for ever"),
    };
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Failed, Effect::None)
    );
    assert_eq!(failed.failure.reason(), "RUNNER_BUSY");
    assert!(failed.retry_after().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_old_busy_verdict_is_no_leave_to_send_a_third_time() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_response(busy());
    rig.sent("c-1").await.send_error(broken());
    let error = busy().result.unwrap_err();
    let entry = JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    };
    rig.sent_kind(CommandKind::CommandStatus)
        .await
        .1
        .send_response(journal(entry));
    let failed = call.await.unwrap_err();
    assert_eq!(
        (failed.receipt.fate, failed.receipt.attempts),
        (Fate::Unknown, 2)
    );
    rig.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_reply_is_lost_is_sent_again_and_not_asked_for() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", snapshot("com.a")));
    rig.sent("c-1").await.send_error(broken());
    rig.sent("c-1").await.send_response(done());
    let receipt = call.await.unwrap().receipt;
    assert_eq!((receipt.attempts, receipt.recovered), (2, false));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_exchange_costs_one_command_and_not_the_lane() {
    let exchange = service_fn(|exchange: Exchange| async move {
        if exchange.request.command.is_mutation() {
            exchange.clearance.cleared().await?;
            exchange.sent.mark();
            panic!("a bug in the exchange");
        }
        Ok(done())
    });
    let ledger = Ledger::new();
    let config = SessionConfig::default();
    let (mut session, _task) =
        Session::spawn(device(), exchange, ledger.clone(), config, Vec::new());
    let failed = session.call(job("c-1", tap())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Crashed));
    assert_eq!(
        (failed.receipt.fate, failed.receipt.effect),
        (Fate::Unknown, Effect::Unknown)
    );
    assert_eq!(ledger.lines(), ["intent c-1", "fate c-1 Unknown"]);
    assert!(session.call(job("c-2", screenshot())).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_recorder_costs_one_command_and_not_the_lane() {
    let exchange = service_fn(|_: Exchange| async { Ok(done()) });
    let recorder = service_fn(|record: Record| async move {
        assert!(
            !matches!(record, Record::Intent(_)),
            "a bug in the recorder"
        );
        Ok(())
    });
    let config = SessionConfig::default();
    let (mut session, _task) = Session::spawn(device(), exchange, recorder, config, Vec::new());
    let failed = session.call(job("c-1", tap())).await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Crashed));
    assert!(session.call(job("c-2", screenshot())).await.is_ok());
    assert!(session.call(job("s-3", status())).await.is_ok());
}
