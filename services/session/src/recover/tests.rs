//! Every word of the journal, and every way to get none.

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

#[tokio::test(start_paused = true)]
async fn a_question_without_a_usable_answer_is_asked_again() {
    let (result, ()) = lose(dispatch(tap()), broken(), async |below| {
        tell(below, Err(SendError::NotAttached)).await;
        tell(below, Ok(verdict(RunnerCode::InvalidRequest))).await;
        tell(below, Ok(done())).await;
        tell(
            below,
            Ok(journal(entry("another", JournalState::Completed))),
        )
        .await;
        tell(below, Ok(journal(entry("c-1", JournalState::Completed)))).await;
    })
    .await;
    assert_eq!(result.unwrap(), Answer::ResultLost);
}

#[tokio::test(start_paused = true)]
async fn silence_is_an_unknown_fate_when_the_window_closes_and_not_before() {
    let begin = Instant::now();
    let (result, questions) = lose_for_good(Vec::new()).await;
    assert_eq!(unknown(&result), None);
    assert_eq!(begin.elapsed(), window());
    assert!(questions > 10, "asked {questions} times only");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_is_over_does_not_keep_its_caller_for_the_whole_window() {
    let begin = Instant::now();
    let (inner, mut below) = mocked();
    let recover = RecoverLostLayer::new(Budgets::default()).layer(inner);
    let (result, ()) = tokio::join!(recover.oneshot(dispatch(tap())), async {
        below.next_request().await.unwrap().1.send_error(broken());
        tell(&mut below, Ok(journal(entry("c-1", JournalState::Started)))).await;
        while let Some((_, reply)) = below.next_request().await {
            reply.send_error(SendError::NotListening { port: Some(8100) });
        }
    });
    assert_eq!(unknown(&result), Some(JournalState::Started));
    let held = begin.elapsed();
    assert!((GONE..GONE + 2 * LONGEST_PAUSE).contains(&held), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_seems_to_be_over_and_answers_is_believed() {
    let (result, ()) = lose(dispatch(tap()), broken(), async |below| {
        let refused = || Err(SendError::NotListening { port: Some(8100) });
        let begin = Instant::now();
        // Never without a break for long enough.
        while begin.elapsed() < 3 * GONE {
            tell(below, refused()).await;
            tell(below, refused()).await;
            tell(below, Err(SendError::NotAttached)).await;
        }
        tell(below, Ok(journal(entry("c-1", JournalState::Completed)))).await;
    })
    .await;
    assert_eq!(result.unwrap(), Answer::ResultLost);
}

#[tokio::test(start_paused = true)]
async fn the_last_word_of_a_runner_that_falls_silent_is_kept() {
    let (result, _) = lose_for_good(vec![JournalState::Accepted, JournalState::Started]).await;
    assert_eq!(unknown(&result), Some(JournalState::Started));
}

/// A tap whose reply is lost, and a runner that says this and no more; how often
/// it was asked.
async fn lose_for_good(words: Vec<JournalState>) -> (Result<Answer, Unanswered>, usize) {
    let (inner, mut below) = mocked();
    let recover = RecoverLostLayer::new(Budgets::default()).layer(inner);
    tokio::join!(recover.oneshot(dispatch(tap())), async {
        below.next_request().await.unwrap().1.send_error(broken());
        let mut questions = 0;
        let mut words = words.into_iter();
        while let Some((_, reply)) = below.next_request().await {
            questions += 1;
            match words.next() {
                Some(state) => reply.send_response(journal(entry("c-1", state))),
                None => reply.send_error(SendError::NotAttached),
            }
        }
        questions
    })
}

fn window() -> Duration {
    Budgets::default().budget(CommandKind::Tap.class()).window
}

#[tokio::test(start_paused = true)]
async fn a_command_under_way_is_asked_for_until_it_ends() {
    let (result, ()) = lose(dispatch(tap()), broken(), async |below| {
        tell(below, Ok(journal(entry("c-1", JournalState::Accepted)))).await;
        tell(below, Ok(journal(entry("c-1", JournalState::Started)))).await;
        tell(below, Ok(journal(entry("c-1", JournalState::Completed)))).await;
    })
    .await;
    assert_eq!(result.unwrap(), Answer::ResultLost);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_stays_under_way_is_unknown_when_its_window_closes() {
    let begin = Instant::now();
    let (inner, mut below) = mocked();
    let recover = RecoverLostLayer::new(Budgets::default()).layer(inner);
    let (result, times) = tokio::join!(recover.oneshot(dispatch(tap())), async {
        let (_, reply) = below.next_request().await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        reply.send_error(broken());
        let mut times = Vec::new();
        while let Some((_, reply)) = below.next_request().await {
            times.push(begin.elapsed());
            reply.send_response(journal(entry("c-1", JournalState::Started)));
        }
        times
    });
    assert_eq!(unknown(&result), Some(JournalState::Started));
    assert_eq!(
        *times.last().unwrap(),
        window(),
        "the window is measured from the send"
    );
    assert!(
        times
            .windows(2)
            .all(|pair| pair[1].abs_diff(pair[0]) <= LONGEST_PAUSE + Duration::from_millis(1))
    );
}

#[tokio::test(start_paused = true)]
async fn a_window_that_has_closed_leaves_time_for_one_question() {
    let (inner, mut below) = mocked();
    let recover = RecoverLostLayer::new(Budgets::default()).layer(inner);
    let (result, ()) = tokio::join!(recover.oneshot(dispatch(tap())), async {
        let (_, reply) = below.next_request().await.unwrap();
        let window = Duration::from_secs(90);
        tokio::time::sleep(window).await;
        reply.send_error(SendError::WindowClosed { window, sent: true });
        tell(&mut below, Ok(journal(entry("c-1", JournalState::Started)))).await;
        assert!(below.next_request().await.is_none());
    });
    assert!(matches!(
        result,
        Err(Unanswered::Unknown {
            cause: SendError::WindowClosed { .. },
            journal: Some(JournalState::Started)
        })
    ));
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
