//! Ends that are no answers.

use std::future::pending;

use fleetgate_runner::SendError;
use tower::service_fn;

use super::*;
use crate::testing::{dispatch, done, mocked, tap};

#[tokio::test(start_paused = true)]
async fn an_outcome_is_passed_on() {
    let (inner, mut below) = mocked();
    let contain = ContainLayer::new(CancellationToken::new()).layer(inner);
    let (result, ()) = tokio::join!(contain.oneshot(dispatch(tap())), async {
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
async fn a_panic_is_an_outcome_and_the_next_command_goes_through() {
    let inner = service_fn(|dispatch: Dispatch| async move {
        assert!(
            !dispatch.request.command.is_mutation(),
            "a bug in the exchange"
        );
        Err::<Answer, _>(Unanswered::Send(SendError::NotAttached))
    });
    let contain = ContainLayer::new(CancellationToken::new()).layer(inner);
    let result = contain.clone().oneshot(dispatch(tap())).await;
    assert!(matches!(result, Err(Unanswered::Crashed)));
    let result = contain.oneshot(dispatch(crate::testing::status())).await;
    assert!(matches!(
        result,
        Err(Unanswered::Send(SendError::NotAttached))
    ));
}

#[tokio::test(start_paused = true)]
async fn abandonment_ends_what_is_under_way_and_lets_nothing_begin() {
    let inner = service_fn(|_: Dispatch| pending::<Result<Answer, Unanswered>>());
    let abandon = CancellationToken::new();
    let contain = ContainLayer::new(abandon.clone()).layer(inner);
    let (result, ()) = tokio::join!(contain.oneshot(dispatch(tap())), async { abandon.cancel() });
    assert!(matches!(result, Err(Unanswered::Abandoned)));

    let (inner, mut below) = mocked();
    let contain = ContainLayer::new(abandon).layer(inner);
    assert!(matches!(
        contain.oneshot(dispatch(tap())).await,
        Err(Unanswered::Abandoned)
    ));
    assert!(
        below.next_request().await.is_none(),
        "nothing may begin any more"
    );
}
