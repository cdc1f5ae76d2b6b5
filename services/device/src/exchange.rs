//! One command's way to a runner and back.
//!
//! ```text
//!   request too large? ---------> RequestTooLarge
//!         |
//!   connect  ||  clearance -----> NotAttached, NotListening, Connect, Refused
//!         |
//!   route still current? --no---> connect again
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
        let ((mut pipe, mut port), ()) = tokio::try_join!(self.connect(), cleared)?;
        // While the leave was waited for, the number that this pipe was made
        // with may have come to mean another phone, and the runner may have
        // come up again on another port.
        while !self.hosts.confirm(&self.device, pipe.route()).await
            || *self.port.borrow() != Some(port)
        {
            (pipe, port) = self.connect().await?;
        }
        sent.mark();
        let reply = post::send(pipe, body).await?;
        tracing::debug!(
            status = reply.status.as_u16(),
            bytes = reply.body.len(),
            "reply"
        );
        Ok(Envelope::decode(kind, &reply.body)?)
    }

    /// A pipe to the runner, and the port that it was made to.
    async fn connect(&self) -> Result<(Pipe, u16), SendError> {
        let port = *self.port.borrow();
        let port = port.ok_or(SendError::NotListening { port: None })?;
        let pipe = self.hosts.connect(&self.device, port).await?;
        Ok((pipe, port))
    }
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
