//! How an attempt ends, and what its end proves.

use std::future::{Pending, pending};

use fleetgate_runner::CommandKind;

use tokio::time::Instant;

use super::*;
use crate::testing::{dispatch, done, mocked, screenshot, sent, snapshot, tap, type_secret};

fn window<S>(inner: S) -> Window<S> {
    WindowLayer::new(Budgets::default()).layer(inner)
}

fn closed(result: &Result<Envelope, SendError>) -> (Duration, bool) {
    let Err(SendError::WindowClosed { window, sent }) = result else {
        panic!("not a closed window: {result:?}")
    };
    (*window, *sent)
}

#[tokio::test(start_paused = true)]
async fn a_reply_within_the_window_is_passed_on() {
    let (inner, mut phone) = mocked();
    let attempt = window(inner).oneshot(dispatch(tap()));
    let (result, ()) = tokio::join!(attempt, async {
        let (_, reply) = sent(&mut phone).await;
        tokio::time::sleep(Duration::from_secs(89)).await;
        reply.send_response(done());
    });
    assert_eq!(result.unwrap(), done());
}

#[tokio::test(start_paused = true)]
async fn each_class_of_commands_has_the_window_of_the_table() {
    for (command, secs) in [
        (type_secret(), 60),
        (tap(), 90),
        (snapshot("com.example"), 45),
        (screenshot(), 45),
    ] {
        let (inner, _phone) = mocked();
        let begin = Instant::now();
        let (window, sent) = closed(&window(inner).oneshot(dispatch(command)).await);
        assert_eq!((window, sent), (Duration::from_secs(secs), false));
        assert_eq!(begin.elapsed().as_secs(), secs);
    }
}

#[tokio::test(start_paused = true)]
async fn a_recovery_question_has_the_recovery_window() {
    let (inner, _phone) = mocked();
    let question = Dispatch {
        allowance: Allowance::Recovery,
        ..dispatch(tap())
    };
    let (window, _) = closed(&window(inner).oneshot(question).await);
    assert_eq!(window, Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_window_that_closes_after_the_first_byte_says_so() {
    let (inner, mut phone) = mocked();
    let attempt = window(inner).oneshot(dispatch(tap()));
    let (result, _reply) = tokio::join!(attempt, async { sent(&mut phone).await.1 });
    assert!(closed(&result).1);
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_counted_and_gets_a_mark_of_its_own() {
    let (inner, mut phone) = mocked();
    let mut window = window(inner);
    let dispatch = dispatch(tap());
    let first = window.call(dispatch.clone());
    let second = window.call(dispatch.clone());
    let (first, second, _replies) = tokio::join!(first, second, async {
        let unmarked = phone.next_request().await.unwrap();
        (unmarked, sent(&mut phone).await)
    });
    assert!(!closed(&first).1);
    assert!(closed(&second).1);
    assert_eq!(dispatch.tally.count(), 2);
}

/// An exchange that writes its first byte at the last moment: when dropped.
#[derive(Clone)]
struct AtTheLastMoment;

struct MarksWhenDropped(Sent);

impl Service<Exchange> for AtTheLastMoment {
    type Response = Envelope;
    type Error = SendError;
    type Future = MarksWhenDropped;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, exchange: Exchange) -> MarksWhenDropped {
        MarksWhenDropped(exchange.sent)
    }
}

impl Future for MarksWhenDropped {
    type Output = Result<Envelope, SendError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

impl Drop for MarksWhenDropped {
    fn drop(&mut self) {
        self.0.mark();
    }
}

#[tokio::test(start_paused = true)]
async fn the_mark_is_read_after_the_exchange_is_gone() {
    let result = window(AtTheLastMoment).oneshot(dispatch(tap())).await;
    assert!(closed(&result).1);
}

#[derive(Clone)]
struct NeverReady;

impl Service<Exchange> for NeverReady {
    type Response = Envelope;
    type Error = SendError;
    type Future = Pending<Result<Envelope, SendError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Pending
    }

    fn call(&mut self, _: Exchange) -> Self::Future {
        pending()
    }
}

#[tokio::test(start_paused = true)]
async fn an_exchange_that_is_never_ready_cannot_outlast_the_window() {
    let (_, sent) = closed(&window(NeverReady).oneshot(dispatch(tap())).await);
    assert!(!sent);
}

#[tokio::test(start_paused = true)]
async fn windows_follow_the_clock_of_the_budgets() {
    let budgets = Budgets::scaled(0.01);
    let window = WindowLayer::new(budgets).layer(NeverReady);
    let (length, _) = closed(&window.oneshot(dispatch(tap())).await);
    assert_eq!(length, budgets.budget(CommandKind::Tap.class()).window);
    assert_eq!(length, Duration::from_millis(900));
}
