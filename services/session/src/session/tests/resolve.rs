//! Fates that become known after their callers have been told.

use super::*;
use crate::testing::{SECRET, broken, screenshot, tap, type_secret, verdict};
use fleetgate_runner::{JournalEntry, RunnerCode};

/// A session with a tap of unknown fate, of which the runner knows nothing.
async fn doubtful() -> Rig {
    doubtful_after(Duration::ZERO).await
}

/// The same, with a reply that was lost only after a while.
async fn doubtful_after(time: Duration) -> Rig {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", tap()));
    let reply = rig.sent("c-1").await;
    tokio::time::sleep(time).await;
    reply.send_error(broken());
    rig.tell("c-1", JournalState::NotAccepted).await;
    assert_eq!(call.await.unwrap_err().receipt.fate, Fate::Unknown);
    rig
}

#[tokio::test(start_paused = true)]
async fn an_unknown_fate_is_settled_once_the_journal_knows_it() {
    let mut rig = doubtful().await;
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(A_DAY).await;
    rig.tell("c-1", JournalState::Started).await;
    rig.tell("c-1", JournalState::Completed).await;
    rig.settle().await;
    assert_eq!(
        rig.ledger.lines(),
        [
            "intent c-1",
            "fate c-1 Unknown",
            "resolved c-1 CompletedResultLost for good"
        ]
    );
    let resolution = rig.ledger.resolution();
    assert_eq!(resolution.device, device());
    assert_eq!(resolution.why, "the runner's journal has it");
    assert_eq!(resolution.receipt.attempts, 1);
    assert_eq!((resolution.reason, resolution.message), (None, None));
    let more = tokio::time::timeout(A_DAY, rig.phone.next_request());
    assert!(more.await.is_err(), "nothing is left to ask for");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_the_journal_knows_is_told_with_its_reason() {
    let mut rig = doubtful().await;
    let error = verdict(RunnerCode::AppNotAvailable).result.unwrap_err();
    let failed = JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    };
    let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
    reply.send_response(journal(failed));
    rig.settle().await;
    let resolution = rig.ledger.resolution();
    let receipt = &resolution.receipt;
    assert_eq!((receipt.fate, receipt.effect), (Fate::Failed, Effect::None));
    assert!(receipt.recovered && resolution.settled_for_good);
    assert_eq!(resolution.reason.as_deref(), Some("APP_NOT_AVAILABLE"));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_has_restarted_settles_a_fate_as_unknown_for_good() {
    let mut rig = doubtful_after(Duration::from_secs(20)).await;
    rig.tell("c-1", JournalState::NotAccepted).await;
    rig.tell_uptime(Duration::from_secs(5)).await;
    rig.settle().await;
    assert_eq!(
        rig.ledger.lines()[2..],
        ["resolved c-1 Unknown for good"],
        "and at once"
    );
    let resolution = rig.ledger.resolution();
    assert!(resolution.why.contains("restarted"));
    assert_eq!(resolution.reason.as_deref(), Some("FATE_UNKNOWN"));
    let more = tokio::time::timeout(A_DAY, rig.phone.next_request());
    assert!(more.await.is_err(), "nothing is left to ask for");
}

#[tokio::test(start_paused = true)]
async fn commands_do_not_wait_for_questions() {
    let mut rig = doubtful().await;
    let (_, question) = rig.sent_kind(CommandKind::CommandStatus).await;
    let call = rig.call(job("c-2", tap()));
    rig.sent("c-2").await.send_response(done());
    assert!(call.await.is_ok());
    question.send_error(broken());
}

#[tokio::test(start_paused = true)]
async fn sixty_four_other_ids_later_the_journal_has_nothing_more_to_say() {
    let mut rig = doubtful().await;
    let (_, question) = rig.sent_kind(CommandKind::CommandStatus).await;
    for n in 0..64 {
        let name = format!("r-{n}");
        let call = rig.call(job(&name, screenshot()));
        rig.sent(&name).await.send_response(done());
        call.await.unwrap();
    }
    question.send_response(journal(entry("c-1", JournalState::NotAccepted)));
    rig.tell_uptime(A_DAY).await;
    rig.settle().await;
    assert_eq!(
        rig.ledger.lines().last().unwrap(),
        "resolved c-1 Unknown for good"
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_phone_is_asked_ever_less_often_and_not_for_longer_than_a_session_lasts() {
    let mut rig = doubtful().await;
    let begin = tokio::time::Instant::now();
    let mut questions = 0;
    let mut last = begin;
    while let Ok((_, reply)) =
        tokio::time::timeout(Duration::from_hours(2), sent(&mut rig.phone)).await
    {
        questions += 1;
        last = tokio::time::Instant::now();
        reply.send_error(broken());
    }
    let given_up = last - begin;
    assert!(
        given_up >= A_DAY && given_up < A_DAY + Duration::from_secs(600),
        "{given_up:?}"
    );
    // Each question is a read, with up to three attempts.
    assert!(questions < 1000, "{questions}");
    assert_eq!(
        rig.ledger.lines().last().unwrap(),
        "resolved c-1 Unknown for good"
    );
}

#[tokio::test(start_paused = true)]
async fn a_fate_that_the_ledger_did_not_take_is_offered_again_and_not_asked_for() {
    let mut rig = Rig::new();
    rig.ledger.refuse(0, usize::MAX);
    let call = rig.call(job("c-1", tap()));
    rig.sent("c-1").await.send_response(done());
    let failed = call.await.unwrap_err();
    assert!(matches!(failed.failure, Failure::Record(_)));
    assert_eq!(failed.receipt.fate, Fate::Completed);
    tokio::time::sleep(Duration::from_secs(60)).await;
    rig.ledger.refuse(0, 0);
    let quiet = tokio::time::timeout(Duration::from_secs(600), rig.phone.next_request());
    assert!(quiet.await.is_err(), "there is nothing to ask");
    assert_eq!(
        rig.ledger.lines(),
        ["intent c-1", "resolved c-1 Completed for good"]
    );
    assert!(rig.ledger.resolution().reply.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_the_runner_says_about_a_text_is_withheld() {
    let mut rig = Rig::new();
    let call = rig.call(job("c-1", type_secret()));
    rig.sent("c-1").await.send_error(broken());
    rig.tell("c-1", JournalState::NotAccepted).await;
    call.await.unwrap_err();
    let mut error = verdict(RunnerCode::CommandFailed).result.unwrap_err();
    error.message = format!("could not type {SECRET}");
    let failed = JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    };
    let (_, reply) = rig.sent_kind(CommandKind::CommandStatus).await;
    reply.send_response(journal(failed));
    rig.settle().await;
    let told = format!("{:?}", rig.ledger.resolution());
    assert!(
        told.contains("withheld") && !told.contains(SECRET),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn questions_end_with_the_session() {
    let mut rig = doubtful().await;
    let (_, _question) = rig.sent_kind(CommandKind::CommandStatus).await;
    let begin = tokio::time::Instant::now();
    rig.task.shutdown(Duration::from_secs(10)).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(rig.ledger.lines(), ["intent c-1", "fate c-1 Unknown"]);
}
