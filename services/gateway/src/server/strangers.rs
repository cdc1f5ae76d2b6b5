//! Connections on which nobody has been let in: how long they stay.
//!
//! A connection takes one of so many places, and to take one needs no
//! credentials. So one that only strangers use is ended:
//!
//! ```text
//! opened ─► STRANGER ── a call is let in ──► KNOWN: it stays
//!              │ ▲ └── what everybody may ask (health) ──► BUSY ─┐
//!              │ └────────────────────── that has ended ──────────┘
//!              └─ for so long ──► told to go ── LEAVE ──► cut
//! ```
//!
//! Invariant: a connection of which nobody is known has a call under way, or
//! ends.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, Either};
use futures_util::{FutureExt, TryFutureExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::access::Caller;

/// How long a stranger that is told to go may take to do so.
pub(super) const LEAVE: Duration = Duration::from_secs(1);

/// Whose a connection is. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing(Arc<watch::Sender<Noted>>);

#[derive(Debug, Clone, Copy, Default)]
struct Noted {
    /// Whether a caller was let in.
    is_known: bool,
    /// How many calls of strangers are under way.
    calls: usize,
}

impl Noted {
    fn is_idle(self) -> bool {
        !self.is_known && self.calls == 0
    }
}

/// A stranger's call, until it is dropped.
#[derive(Debug)]
struct Under(Standing);

impl Standing {
    /// Ends when the connection has been of no use for so long; never once a
    /// caller is known.
    pub(super) async fn overstays(&self, patience: Duration) {
        let mut noted = self.0.subscribe();
        loop {
            // The sender is this one's own.
            noted.wait_for(|noted| noted.is_idle()).await.ok();
            if timeout(patience, noted.changed()).await.is_err() {
                return;
            }
        }
    }

    /// Whether the connection may be cut.
    pub(super) fn is_idle(&self) -> bool {
        self.0.borrow().is_idle()
    }

    fn know(&self) {
        self.0
            .send_if_modified(|noted| !std::mem::replace(&mut noted.is_known, true));
    }

    fn call(&self) -> Under {
        self.0.send_modify(|noted| noted.calls += 1);
        Under(self.clone())
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.0.0.send_modify(|noted| noted.calls -= 1);
    }
}

/// Adds [`Noting`] to a service that only those calls reach that are let in.
#[derive(Debug, Clone)]
pub(super) struct StandingLayer(pub(super) Standing);

impl<S> Layer<S> for StandingLayer {
    type Service = Noting<S>;

    fn layer(&self, inner: S) -> Noting<S> {
        let standing = self.0.clone();
        Noting { inner, standing }
    }
}

/// A service that notes whether its callers are known.
#[derive(Debug, Clone)]
pub(super) struct Noting<S> {
    inner: S,
    standing: Standing,
}

impl<S, B> Service<Request<B>> for Noting<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, BoxFuture<'static, Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.extensions().get::<Caller>().is_some() {
            self.standing.know();
            return Either::Left(self.inner.call(request));
        }
        let under = self.standing.call();
        let reply = self.inner.call(request);
        Either::Right(reply.map_ok(|reply| until_its_end(reply, under)).boxed())
    }
}

/// Keeps a call under way for as long as its reply is.
fn until_its_end(reply: Response<Body>, under: Under) -> Response<Body> {
    reply.map(|body| {
        Body::new(body.map_frame(move |frame: Frame<_>| {
            let _under = &under;
            frame
        }))
    })
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_call_overstays() {
        let began = Instant::now();
        Standing::default().overstays(PATIENCE).await;
        assert_eq!(began.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn one_whose_caller_is_known_never_does() {
        let standing = Standing::default();
        let mut overstays = Box::pin(standing.overstays(PATIENCE));
        assert!(overstays.as_mut().now_or_never().is_none());
        standing.know();
        standing.know();
        let day = Duration::from_hours(24);
        timeout(day, overstays).await.unwrap_err();
        assert!(!standing.is_idle());
    }

    #[tokio::test(start_paused = true)]
    async fn what_everybody_may_ask_counts_while_it_is_under_way() {
        let standing = Standing::default();
        let began = Instant::now();
        let under = standing.call();
        let mut overstays = Box::pin(standing.overstays(PATIENCE));
        assert!(overstays.as_mut().now_or_never().is_none());
        advance(2 * PATIENCE).await;
        assert!(overstays.as_mut().now_or_never().is_none());
        drop(under);
        overstays.await;
        assert_eq!(began.elapsed(), 3 * PATIENCE);
    }
}
