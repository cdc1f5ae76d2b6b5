//! What is sent again after `RUNNER_BUSY`, and for how long.

use fleetgate_runner::{Effect, Fate, JournalState, SendError};
use tower::retry::RetryLayer;
use tower::{Layer, Service, ServiceExt};

use super::*;
use crate::testing::{broken, busy, codes_but_busy, dispatch, done, id, mocked, tap, verdict};
use crate::turn::Patience;

const CEILING: Duration = Duration::from_secs(30);

fn retry<S>(inner: S) -> impl Service<Dispatch, Response = Answer, Error = Unanswered>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered> + Clone,
{
    RetryLayer::new(BusyRetry::new(Budgets::default(), CEILING)).layer(inner)
}

#[tokio::test(start_paused = true)]
async fn a_busy_runner_is_asked_again_under_the_same_id() {
    let (inner, mut below) = mocked();
    let (result, ()) = tokio::join!(retry(inner).oneshot(dispatch(tap())), async {
        for answer in [busy(), busy(), done()] {
            let (dispatch, reply) = below.next_request().await.unwrap();
            assert_eq!(dispatch.request.command_id, Some(id("c-1")));
            reply.send_response(Answer::Replied(answer));
        }
        assert!(below.next_request().await.is_none());
    });
    assert_eq!(result.unwrap(), Answer::Replied(done()));
}

#[tokio::test(start_paused = true)]
async fn a_busy_verdict_from_the_journal_counts_as_well() {
    let (inner, mut below) = mocked();
    let (result, ()) = tokio::join!(retry(inner).oneshot(dispatch(tap())), async {
        below
            .next_request()
            .await
            .unwrap()
            .1
            .send_response(Answer::Recovered(busy()));
        below
            .next_request()
            .await
            .unwrap()
            .1
            .send_response(Answer::Replied(done()));
    });
    assert_eq!(result.unwrap(), Answer::Replied(done()));
}

#[tokio::test(start_paused = true)]
async fn no_other_verdict_is_tried_again() {
    for code in codes_but_busy() {
        let (inner, mut below) = mocked();
        let (result, ()) = tokio::join!(retry(inner).oneshot(dispatch(tap())), async {
            let answer = Answer::Replied(verdict(code.clone()));
            below.next_request().await.unwrap().1.send_response(answer);
            assert!(
                below.next_request().await.is_none(),
                "{code} was tried again"
            );
        });
        assert_eq!(result.unwrap(), Answer::Replied(verdict(code)));
    }
}

#[tokio::test(start_paused = true)]
async fn no_failure_of_the_transport_is_tried_again() {
    let failures = [
        Unanswered::Send(SendError::NotAttached),
        Unanswered::Send(broken()),
        Unanswered::Unknown {
            cause: broken(),
            journal: Some(JournalState::Failed),
        },
        Unanswered::Crashed,
    ];
    for failure in failures {
        let (inner, mut below) = mocked();
        let (result, ()) = tokio::join!(retry(inner).oneshot(dispatch(tap())), async {
            below.next_request().await.unwrap().1.send_error(failure);
            assert!(below.next_request().await.is_none());
        });
        assert!(result.is_err());
    }
}

/// Answers `RUNNER_BUSY` for ever and tells when it was asked.
async fn always_busy(dispatch: Dispatch) -> (Result<Answer, Unanswered>, Vec<Duration>) {
    let (inner, mut below) = mocked();
    let begin = Instant::now();
    tokio::join!(retry(inner).oneshot(dispatch), async {
        let mut asked = Vec::new();
        while let Some((_, reply)) = below.next_request().await {
            asked.push(begin.elapsed());
            reply.send_response(Answer::Replied(busy()));
        }
        asked
    })
}

#[tokio::test(start_paused = true)]
async fn pauses_double_to_a_cap_and_are_cut_by_up_to_half() {
    let (_, asked) = always_busy(dispatch(tap())).await;
    let pauses = asked.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    let full = [250, 500, 1000, 2000, 4000, 4000].map(Duration::from_millis);
    for (pause, full) in pauses.zip(full) {
        // A timer fires up to a millisecond late.
        let late = Duration::from_millis(1);
        assert!(
            pause >= full / 2 && pause <= full + late,
            "{pause:?} is not within {full:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_ceiling_ends_it_with_the_last_verdict() {
    let (result, asked) = always_busy(dispatch(tap())).await;
    assert_eq!(result.unwrap(), Answer::Replied(busy()));
    let last = *asked.last().unwrap();
    assert!(last < CEILING, "asked {last:?} after the first time");
    assert!(
        last + LONGEST_PAUSE * 2 > CEILING,
        "gave up after {last:?} already"
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_it_with_the_last_verdict() {
    let deadline = Duration::from_secs(2);
    let patience = Patience::until(Some(Instant::now() + deadline));
    let (result, asked) = always_busy(Dispatch {
        patience,
        ..dispatch(tap())
    })
    .await;
    assert_eq!(result.unwrap(), Answer::Replied(busy()));
    assert!(asked.len() > 1 && *asked.last().unwrap() < deadline);
}

#[tokio::test(start_paused = true)]
async fn after_giving_up_the_command_is_known_to_have_been_declined() {
    let dispatch = dispatch(tap());
    let tally = dispatch.tally.clone();
    let (_, _) = always_busy(dispatch).await;
    assert_eq!(tally.without_answer(), (Fate::Failed, Effect::None));
}
