//! However an execution ends, it ends with an outcome.
//!
//! A panic below, or a shutdown whose grace has run out, would otherwise drop
//! the command without a fate. Here both become an [`Unanswered`], so that what
//! lies above always has something to put on record. What such an end proves is
//! the tally's business.

use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tower::{Layer, Service, ServiceExt};

use crate::dispatch::{Answer, Dispatch, Unanswered};

/// Makes [`Contain`]s.
#[derive(Debug, Clone)]
pub(crate) struct ContainLayer {
    abandon: CancellationToken,
}

impl ContainLayer {
    /// Executions end when `abandon` is cancelled.
    pub(crate) fn new(abandon: CancellationToken) -> Self {
        Self { abandon }
    }
}

impl<S> Layer<S> for ContainLayer {
    type Service = Contain<S>;

    fn layer(&self, inner: S) -> Contain<S> {
        Contain {
            inner,
            abandon: self.abandon.clone(),
        }
    }
}

/// Turns panics and abandonment into errors. Always ready: the inner service's
/// readiness is awaited where its panics are caught.
#[derive(Debug, Clone)]
pub(crate) struct Contain<S> {
    inner: S,
    abandon: CancellationToken,
}

impl<S> Service<Dispatch> for Contain<S>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Answer;
    type Error = Unanswered;
    type Future = BoxFuture<'static, Result<Answer, Unanswered>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unanswered>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, dispatch: Dispatch) -> Self::Future {
        let inner = self.inner.clone();
        // Unwind safety: everything below is dropped with the panic but the
        // tally, which is right after every one of its steps.
        let execution = AssertUnwindSafe(async { inner.oneshot(dispatch).await }).catch_unwind();
        let contained = self.abandon.clone().run_until_cancelled_owned(execution);
        Box::pin(contained.map(|outcome| match outcome {
            Some(Ok(result)) => result,
            Some(Err(_panic)) => Err(Unanswered::Crashed),
            None => Err(Unanswered::Abandoned),
        }))
    }
}

#[cfg(test)]
mod tests;
