//! How long the journal is asked, and when no more.

use super::*;

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
