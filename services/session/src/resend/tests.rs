//! Which reads are sent again, when, and that no mutation ever is.

use tower::retry::RetryLayer;
use tower::{Layer, Service, ServiceExt};

use super::*;
use crate::testing::{broken, dispatch, done, garbage, job_within, mocked, sent, snapshot, tap};
use crate::turn::{Patience, Turn};
use crate::window::WindowLayer;

fn resend<S>(inner: S) -> impl Service<Dispatch, Response = Envelope, Error = SendError>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
{
    RetryLayer::new(Resend::new(Budgets::default())).layer(inner)
}

fn read() -> Dispatch {
    dispatch(snapshot("com.example"))
}

#[tokio::test(start_paused = true)]
async fn a_read_is_sent_three_times_with_doubling_pauses() {
    let (inner, mut below) = mocked();
    let begin = Instant::now();
    let (result, times) = tokio::join!(resend(inner).oneshot(read()), async {
        let mut times = Vec::new();
        for error in [broken(), SendError::NotAttached, garbage()] {
            let (_, reply) = below.next_request().await.unwrap();
            times.push(begin.elapsed().as_millis());
            reply.send_error(error);
        }
        times
    });
    assert_eq!(times, [0, 300, 900]);
    assert!(
        matches!(result, Err(SendError::InvalidReply(_))),
        "the last failure is the answer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_that_gets_through_is_not_sent_again() {
    let (inner, mut below) = mocked();
    let (result, ()) = tokio::join!(resend(inner).oneshot(read()), async {
        below.next_request().await.unwrap().1.send_error(broken());
        below.next_request().await.unwrap().1.send_response(done());
        assert!(below.next_request().await.is_none());
    });
    assert_eq!(result.unwrap(), done());
}

#[tokio::test(start_paused = true)]
async fn a_mutation_passes_once_whatever_happens_to_it() {
    for error in [broken(), SendError::NotAttached, garbage()] {
        let (inner, mut below) = mocked();
        let (result, ()) = tokio::join!(resend(inner).oneshot(dispatch(tap())), async {
            below.next_request().await.unwrap().1.send_error(error);
            assert!(below.next_request().await.is_none());
        });
        assert!(result.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_would_repeat_itself_is_not_tried_again() {
    let (inner, mut below) = mocked();
    let (result, ()) = tokio::join!(resend(inner).oneshot(read()), async {
        let error = SendError::ReplyTooLarge { limit: 1 };
        below.next_request().await.unwrap().1.send_error(error);
        assert!(below.next_request().await.is_none());
    });
    assert!(matches!(result, Err(SendError::ReplyTooLarge { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_read_is_not_sent_again_once_nobody_waits() {
    let (inner, mut below) = mocked();
    let job = job_within("c-1", snapshot("com.example"), Duration::from_millis(300));
    let patience = Turn::from(job).patience;
    let read = Dispatch { patience, ..read() };
    let begin = Instant::now();
    let (result, ()) = tokio::join!(resend(inner).oneshot(read), async {
        below.next_request().await.unwrap().1.send_error(broken());
        assert!(below.next_request().await.is_none());
    });
    assert!(result.is_err());
    assert_eq!(
        begin.elapsed(),
        Duration::ZERO,
        "nor is the pause waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_joins_later_keeps_a_read_going() {
    let (inner, mut below) = mocked();
    let patience = Patience::until(Some(Instant::now() + Duration::from_millis(300)));
    let read = Dispatch {
        patience: patience.clone(),
        ..read()
    };
    let (result, ()) = tokio::join!(resend(inner).oneshot(read), async {
        let (_, reply) = below.next_request().await.unwrap();
        patience.extend(Some(Instant::now() + Duration::from_secs(1)));
        reply.send_error(broken());
        below.next_request().await.unwrap().1.send_response(done());
    });
    assert!(result.is_ok());
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_whole_window() {
    let (exchange, mut phone) = mocked();
    let inner = WindowLayer::new(Budgets::default()).layer(exchange);
    let begin = Instant::now();
    let (result, ()) = tokio::join!(resend(inner).oneshot(read()), async {
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(sent(&mut phone).await);
        }
        assert!(phone.next_request().await.is_none());
    });
    assert!(matches!(
        result,
        Err(SendError::WindowClosed { sent: true, .. })
    ));
    assert_eq!(begin.elapsed(), Duration::from_millis(3 * 45_000 + 900));
}
