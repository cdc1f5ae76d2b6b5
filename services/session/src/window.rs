//! One deadline over one whole attempt: readiness, connection, handshake and
//! HTTP exchange all spend from it.
//!
//! The window of a command strictly exceeds the runner's budget for it
//! ([`fleetgate_runner::budget::TABLE`]), so that a runner's verdict is never
//! thrown away. When it closes, the exchange is dropped, and what that proves
//! is read from the attempt's own [`Sent`] mark, which is new for each attempt
//! and counted in the command's tally, as is when it
//! was set.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use fleetgate_runner::{Budgets, Envelope, Exchange, SendError, Sent};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower::util::Oneshot;
use tower::{Layer, Service, ServiceExt};

use crate::dispatch::{Allowance, Dispatch};
use crate::tally::Tally;

/// Makes [`Window`]s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowLayer {
    budgets: Budgets,
}

impl WindowLayer {
    /// Windows from this table.
    pub(crate) fn new(budgets: Budgets) -> Self {
        Self { budgets }
    }
}

impl<S> Layer<S> for WindowLayer {
    type Service = Window<S>;

    fn layer(&self, inner: S) -> Window<S> {
        Window {
            inner,
            budgets: self.budgets,
        }
    }
}

/// Turns a [`Dispatch`] into one [`Exchange`] that ends within its window.
///
/// Always ready: the exchange's readiness is awaited within the window, so that
/// an exchange that never gets ready cannot hold the lane either.
#[derive(Debug, Clone)]
pub(crate) struct Window<S> {
    inner: S,
    budgets: Budgets,
}

impl<S> Service<Dispatch> for Window<S>
where
    S: Service<Exchange, Response = Envelope, Error = SendError> + Clone,
{
    type Response = Envelope;
    type Error = SendError;
    type Future = WindowFuture<Oneshot<S, Exchange>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, dispatch: Dispatch) -> Self::Future {
        let Dispatch {
            request,
            clearance,
            allowance,
            patience: _,
            tally,
        } = dispatch;
        let window = match allowance {
            Allowance::Command => self.budgets.budget(request.command.kind().class()).window,
            Allowance::Recovery => self.budgets.recovery_window(),
            Allowance::Readiness => self.budgets.readiness_window(),
        };
        let sent = tally.attempt();
        let exchange = Exchange {
            request,
            clearance,
            sent: sent.clone(),
        };
        WindowFuture {
            exchange: Some(self.inner.clone().oneshot(exchange)),
            closing: tokio::time::sleep(window),
            window,
            sent,
            tally,
            is_seen: false,
        }
    }
}

pin_project! {
    /// An exchange and its window.
    pub(crate) struct WindowFuture<F> {
        #[pin]
        exchange: Option<F>,
        #[pin]
        closing: Sleep,
        window: Duration,
        sent: Sent,
        tally: Tally,
        // The tally knows that it was sent.
        is_seen: bool,
    }
}

impl<F> Future for WindowFuture<F>
where
    F: Future<Output = Result<Envelope, SendError>>,
{
    type Output = Result<Envelope, SendError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(exchange) = this.exchange.as_mut().as_pin_mut() {
            let polled = exchange.poll(cx);
            if !*this.is_seen && this.sent.is_marked() {
                *this.is_seen = true;
                this.tally.see_sent();
            }
            if polled.is_ready() {
                return polled;
            }
        }
        ready!(this.closing.poll(cx));
        // Dropped first, read then: what is not marked by now never will be.
        this.exchange.set(None);
        let sent = this.sent.is_marked();
        Poll::Ready(Err(SendError::WindowClosed {
            window: *this.window,
            sent,
        }))
    }
}

#[cfg(test)]
mod tests;
