//! One command's way to a runner and back.
//!
//! ```text
//!   request too large? ---------> RequestTooLarge
//!         |
//!   connect  ||  clearance -----> NotAttached, NotListening, Connect, Refused
//!         |
//!   route and port still
//!   the same? --no--------------> connect again
//!         |
//!   sent.mark() ================= before: it cannot have run. after: it may have
//!         |
//!   POST, reply ----------------> Broken, ReplyTooLarge, InvalidReply
//!         |
//!      Envelope
//! ```
//!
//! It is one future without tasks of its own: dropping it at any point closes
//! the socket, and [`fleetgate_runner::Sent`] tells what that proves.

use std::task::{Context, Poll};

use bytes::Bytes;
use fleetgate_runner::{Envelope, Exchange, MAX_REQUEST_BYTES, SendError, Udid};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tower::Service;
use tracing::Instrument;

use crate::hosts::Hosts;
use crate::pipe::Pipe;
use crate::post;

/// Exchanges commands with the runner on one phone.
#[derive(Debug, Clone)]
pub struct RunnerExchange {
    hosts: Hosts,
    device: Udid,
    port: watch::Receiver<Option<u16>>,
}

impl RunnerExchange {
    /// Exchanges with the runner that listens on that port of `device` which
    /// `port` holds at the time; while it holds none, no runner is up.
    ///
    /// Each time that something is stored in `port` stands for another runner,
    /// even if it is what was there before: a connection that was made to the
    /// runner before is not written to any more.
    pub fn new(hosts: Hosts, device: Udid, port: watch::Receiver<Option<u16>>) -> Self {
        Self {
            hosts,
            device,
            port,
        }
    }

    async fn exchange(self, exchange: Exchange) -> Result<Envelope, SendError> {
        let Exchange {
            request,
            clearance,
            sent,
        } = exchange;
        let kind = request.command.kind();
        let body = Bytes::from(request.encode());
        let bytes = post::request_len(body.len());
        if bytes > MAX_REQUEST_BYTES {
            return Err(SendError::RequestTooLarge {
                bytes,
                limit: MAX_REQUEST_BYTES,
            });
        }
        // A connection has no effect on the phone, so it need not wait for the
        // leave; the first byte of the request does.
        let cleared = async { clearance.cleared().await.map_err(SendError::Refused) };
        let (mut runner, ()) = tokio::try_join!(self.connect(), cleared)?;
        // While the leave was waited for, the number that this pipe was made
        // with may have come to mean another phone, and the runner may have
        // come up again. The port is looked at last: nothing is awaited between
        // that and the first byte.
        while !self.hosts.confirm(&self.device, runner.pipe.route()).await
            || is_stored_anew(&runner.port)
        {
            runner = self.connect().await?;
        }
        sent.mark();
        let reply = post::send(runner.pipe, body).await?;
        tracing::debug!(
            status = reply.status.as_u16(),
            bytes = reply.body.len(),
            "reply"
        );
        Ok(Envelope::decode(kind, &reply.body)?)
    }

    /// Why there is nobody to connect to: no runner, or not even a phone.
    fn nobody(&self) -> SendError {
        let view = self.hosts.view();
        let view = view.borrow();
        let presence = view.devices.get(&self.device);
        if presence.is_some_and(|presence| presence.by_cable) {
            SendError::NotListening { port: None }
        } else {
            SendError::NotAttached
        }
    }

    /// A pipe to the runner that is up. Follows the runner to another port while
    /// the connection is being made.
    async fn connect(&self) -> Result<ToRunner, SendError> {
        let mut port = self.port.clone();
        loop {
            let number = *port.borrow_and_update();
            let number = number.ok_or_else(|| self.nobody())?;
            let made = tokio::select! {
                biased;
                made = self.hosts.connect(&self.device, number) => made,
                () = stored(&mut port) => continue,
            };
            match made {
                Err(SendError::NotListening { .. }) if is_stored_anew(&port) => {}
                Ok(pipe) => return Ok(ToRunner { pipe, port }),
                Err(error) => return Err(error),
            }
        }
    }
}

/// A pipe, and the port that it was made to as it was then.
struct ToRunner {
    pipe: Pipe,
    port: watch::Receiver<Option<u16>>,
}

/// Waits until the runner's port is stored anew.
async fn stored(port: &mut watch::Receiver<Option<u16>>) {
    if port.changed().await.is_err() {
        // Whoever knew of runners is gone, and the port stays what it is.
        std::future::pending::<()>().await;
    }
}

/// Whether it has been since it was read: there is another runner then, even
/// if it has the same port.
fn is_stored_anew(port: &watch::Receiver<Option<u16>>) -> bool {
    port.has_changed().unwrap_or(false)
}

impl Service<Exchange> for RunnerExchange {
    type Response = Envelope;
    type Error = SendError;
    type Future = BoxFuture<'static, Result<Envelope, SendError>>;

    /// Always ready: every call has a connection of its own.
    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), SendError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, exchange: Exchange) -> Self::Future {
        let span = tracing::debug_span!(
            "runner_exchange",
            device.id = %self.device,
            fleetgate.command.kind = %exchange.request.command.kind(),
        );
        Box::pin(self.clone().exchange(exchange).instrument(span))
    }
}
