//! Every word of the journal, and what needs none.

use std::sync::Arc;

use fleetgate_runner::{
    Command, CommandKind, DeviceCommand, InvalidReply, JournalEntry, Request, RunnerCode,
};
use tower::ServiceExt;
use tower_test::mock::Handle;

use super::*;
use crate::dispatch::Allowance;
use crate::testing::{
    broken, busy, dispatch, done, entry, garbage, id, journal, mocked, snapshot, tap, verdict,
};

mod patience;

type Below = Handle<Dispatch, Envelope>;

/// A tap whose reply is lost with `cause`, while `phone` plays what is below.
async fn lose<T>(
    dispatch: Dispatch,
    cause: SendError,
    phone: impl AsyncFnOnce(&mut Below) -> T,
) -> (Result<Answer, Unanswered>, T) {
    let (inner, mut below) = mocked();
    let recover = RecoverLostLayer::new(Budgets::default()).layer(inner);
    tokio::join!(recover.oneshot(dispatch), async {
        below.next_request().await.unwrap().1.send_error(cause);
        let told = phone(&mut below).await;
        assert!(below.next_request().await.is_none(), "asked once too often");
        told
    })
}

/// The same, with a journal that gives one answer.
async fn lose_and_ask(answer: Result<Envelope, SendError>) -> Result<Answer, Unanswered> {
    let (result, ()) = lose(dispatch(tap()), broken(), async |below| {
        tell(below, answer).await;
    })
    .await;
    result
}

/// Checks that the next request is the question, and answers it.
async fn tell(below: &mut Below, answer: Result<Envelope, SendError>) {
    let (question, reply) = below.next_request().await.unwrap();
    let of = id("c-1");
    let expected = Command::Device(DeviceCommand::CommandStatus { of });
    assert_eq!(
        question.request,
        Request {
            command_id: None,
            command: expected
        }
    );
    assert_eq!(question.allowance, Allowance::Recovery);
    match answer {
        Ok(envelope) => reply.send_response(envelope),
        Err(error) => reply.send_error(error),
    }
}

fn unknown(result: &Result<Answer, Unanswered>) -> Option<JournalState> {
    let Err(Unanswered::Unknown {
        cause: SendError::Broken(_),
        journal,
    }) = result
    else {
        panic!("not an unknown fate with its cause: {result:?}")
    };
    *journal
}

#[tokio::test(start_paused = true)]
async fn completed_with_a_retained_reply_is_that_reply() {
    let retained = Envelope {
        reactivated: true,
        warning: Some("hm".to_owned()),
        ..done()
    };
    let json = String::from_utf8(retained.encode()).unwrap();
    let entry = JournalEntry {
        response_json: Some(json),
        ..entry("c-1", JournalState::Completed)
    };
    let result = lose_and_ask(Ok(journal(entry))).await;
    assert_eq!(result.unwrap(), Answer::Recovered(retained));
}

#[tokio::test(start_paused = true)]
async fn completed_without_a_usable_reply_is_a_lost_result() {
    for retained in [None, Some("{".to_owned())] {
        let entry = JournalEntry {
            response_json: retained,
            ..entry("c-1", JournalState::Completed)
        };
        assert_eq!(
            lose_and_ask(Ok(journal(entry))).await.unwrap(),
            Answer::ResultLost
        );
    }
}

#[tokio::test(start_paused = true)]
async fn failed_is_the_journaled_error() {
    let error = verdict(RunnerCode::TextInputNotFocused).result.unwrap_err();
    let entry = JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    };
    let result = lose_and_ask(Ok(journal(entry))).await;
    assert_eq!(
        result.unwrap(),
        Answer::Recovered(verdict(RunnerCode::TextInputNotFocused))
    );
}

#[tokio::test(start_paused = true)]
async fn failed_with_a_retained_envelope_still_says_that_the_app_came_to_the_front() {
    let whole = Envelope {
        reactivated: true,
        ..verdict(RunnerCode::CommandFailed)
    };
    let entry = JournalEntry {
        response_json: Some(String::from_utf8(whole.encode()).unwrap()),
        ..entry("c-1", JournalState::Failed)
    };
    assert_eq!(
        lose_and_ask(Ok(journal(entry))).await.unwrap(),
        Answer::Recovered(whole)
    );
}

#[tokio::test(start_paused = true)]
async fn failed_without_a_reason_is_a_failure_all_the_same() {
    let answer = lose_and_ask(Ok(journal(entry("c-1", JournalState::Failed))))
        .await
        .unwrap();
    let Answer::Recovered(envelope) = answer else {
        panic!("not recovered: {answer:?}")
    };
    assert_eq!(envelope.result.unwrap_err().code, RunnerCode::CommandFailed);
}

#[tokio::test(start_paused = true)]
async fn not_accepted_proves_nothing() {
    let entry = entry("c-1", JournalState::NotAccepted);
    let journal = unknown(&lose_and_ask(Ok(journal(entry))).await);
    assert_eq!(journal, Some(JournalState::NotAccepted));
}

#[tokio::test(start_paused = true)]
async fn a_word_from_a_newer_runner_proves_nothing() {
    let entry = JournalEntry {
        state: None,
        ..entry("c-1", JournalState::Completed)
    };
    assert_eq!(unknown(&lose_and_ask(Ok(journal(entry))).await), None);
}

fn failed_busy() -> Envelope {
    let error = busy().result.unwrap_err();
    journal(JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    })
}

#[tokio::test(start_paused = true)]
async fn busy_in_the_journal_is_a_verdict_on_a_first_attempt() {
    let result = lose_and_ask(Ok(failed_busy())).await;
    assert_eq!(result.unwrap(), Answer::Recovered(busy()));
}

#[tokio::test(start_paused = true)]
async fn busy_in_the_journal_proves_nothing_about_a_later_attempt() {
    let dispatch = dispatch(tap());
    dispatch.tally.decline();
    let (result, ()) = lose(dispatch, broken(), async |below| {
        tell(below, Ok(failed_busy())).await;
    })
    .await;
    assert_eq!(unknown(&result), Some(JournalState::Failed));
}

#[tokio::test(start_paused = true)]
async fn any_other_entry_is_a_later_attempts_own() {
    let dispatch = dispatch(tap());
    dispatch.tally.decline();
    let error = verdict(RunnerCode::RunnerWedged).result.unwrap_err();
    let entry = JournalEntry {
        error: Some(error),
        ..entry("c-1", JournalState::Failed)
    };
    let (result, ()) = lose(dispatch, broken(), async |below| {
        tell(below, Ok(journal(entry))).await;
    })
    .await;
    assert_eq!(
        result.unwrap(),
        Answer::Recovered(verdict(RunnerCode::RunnerWedged))
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_not_executed_is_not_asked_for() {
    let causes = [
        SendError::NotAttached,
        SendError::NotListening { port: Some(1) },
        SendError::WindowClosed {
            window: Duration::ZERO,
            sent: false,
        },
        SendError::Connect(Arc::new(std::io::Error::other("no"))),
    ];
    for cause in causes {
        let (result, ()) = lose(dispatch(tap()), cause, async |_| {}).await;
        assert!(matches!(result, Err(Unanswered::Send(_))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_is_not_asked_for() {
    let read = dispatch(snapshot("com.example"));
    let (result, ()) = lose(read, garbage(), async |_| {}).await;
    assert!(matches!(
        result,
        Err(Unanswered::Send(SendError::InvalidReply(_)))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_success_with_unusable_data_needs_no_question() {
    let cause = InvalidReply::Data {
        kind: CommandKind::Tap,
        detail: "odd".to_owned(),
    };
    let (result, ()) = lose(dispatch(tap()), cause.into(), async |_| {}).await;
    assert_eq!(result.unwrap(), Answer::ResultLost);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_arrives_needs_no_question() {
    let (inner, mut below) = mocked();
    let recover = RecoverLostLayer::new(Budgets::default()).layer(inner);
    let (result, ()) = tokio::join!(recover.oneshot(dispatch(tap())), async {
        below.next_request().await.unwrap().1.send_response(done());
        assert!(below.next_request().await.is_none());
    });
    assert_eq!(result.unwrap(), Answer::Replied(done()));
}
