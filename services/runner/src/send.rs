//! One exchange with a runner, as the session asks for it and the device
//! carries it out, and everything it can fail with.
//!
//! The session and the device do not know each other: they meet in a
//! `tower::Service<Exchange, Response = Envelope, Error = SendError>`. What
//! matters about a failure is what it proves: [`SendError::disposition`].

use std::error::Error;
use std::fmt;
use std::future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;

use crate::envelope::InvalidReply;
use crate::request::Request;

/// Whatever a failure was caused by.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// One attempt to have a command executed.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// What to send.
    pub request: Request,
    /// Must resolve before the first byte of the request is written; the
    /// connection may be made meanwhile.
    pub clearance: Clearance,
    /// To be marked just before the first byte of the request is written.
    pub sent: Sent,
}

/// Whether the first byte of a request may have been written. Whoever gives up
/// on an exchange by dropping it learns from this what the drop proves.
#[derive(Debug, Clone, Default)]
pub struct Sent(Arc<AtomicBool>);

impl Sent {
    /// Called just before the first byte is written.
    pub fn mark(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// True once the first byte may have been written.
    pub fn is_marked(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Leave to write the first byte: for a mutation, its intent's commit.
///
/// It can be awaited by every attempt of a command; the work behind it is done
/// once.
#[derive(Clone)]
pub struct Clearance(Shared<Leave>);

type Leave = Pin<Box<dyn Future<Output = Result<(), Refused>> + Send>>;

impl Clearance {
    /// Leave that needs nothing, as for a read.
    pub fn granted() -> Self {
        Self::when(future::ready(Ok(())))
    }

    /// Leave that comes when `work` is done.
    pub fn when(work: impl Future<Output = Result<(), Refused>> + Send + 'static) -> Self {
        let leave: Leave = Box::pin(work);
        Self(leave.shared())
    }

    /// Waits for the leave.
    pub async fn cleared(&self) -> Result<(), Refused> {
        self.0.clone().await
    }
}

impl fmt::Debug for Clearance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clearance")
    }
}

/// The leave was not given: nothing may be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the command may not be sent: {0}")]
pub struct Refused(#[source] pub Cause);

/// What a failure to exchange proves about the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// It cannot have run.
    NotExecuted,
    /// It ran.
    Executed,
    /// It may have run.
    Unknown,
}

/// What one exchange can fail with.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SendError {
    /// The device is on no usbmuxd by cable.
    #[error("the device is not attached")]
    NotAttached,
    /// Nobody listens on the runner's port: it is down, or not yet up.
    #[error("{}", not_listening(*.port))]
    NotListening {
        /// The port on the device. `None`: there is none to try, since no runner
        /// is known to be up.
        port: Option<u16>,
    },
    /// usbmuxd could not be reached or did not make the connection.
    #[error("no connection through usbmuxd: {0}")]
    Connect(#[source] Cause),
    /// usbmuxd does not take what it was asked for: our own fault.
    #[error("usbmuxd does not take the request: {0}")]
    Misunderstood(#[source] Cause),
    /// The request is larger than a runner takes.
    #[error("the request is {bytes} bytes; the runner takes at most {limit}")]
    RequestTooLarge {
        /// Its size, HTTP header included.
        bytes: usize,
        /// The runner's limit.
        limit: usize,
    },
    /// The leave to send was refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The window of the attempt closed.
    #[error("no answer within {window:?} ({})", if *.sent { "sent" } else { "not yet sent" })]
    WindowClosed {
        /// How long it was open.
        window: Duration,
        /// Whether the first byte may have been written by then.
        sent: bool,
    },
    /// The connection broke after the first byte may have been written.
    #[error("the connection broke after the command was sent: {0}")]
    Broken(#[source] Cause),
    /// The reply is larger than a client takes.
    #[error("the reply is larger than {limit} bytes")]
    ReplyTooLarge {
        /// The client's limit.
        limit: usize,
    },
    /// The reply is not an envelope of the protocol.
    #[error(transparent)]
    InvalidReply(#[from] InvalidReply),
}

fn not_listening(port: Option<u16>) -> String {
    match port {
        Some(port) => format!("nothing listens on port {port} of the device"),
        None => "no runner is up on the device".to_owned(),
    }
}

impl SendError {
    /// What the failure proves.
    pub fn disposition(&self) -> Disposition {
        match self {
            Self::NotAttached
            | Self::NotListening { .. }
            | Self::Connect(_)
            | Self::Misunderstood(_)
            | Self::RequestTooLarge { .. }
            | Self::Refused(_)
            | Self::WindowClosed { sent: false, .. } => Disposition::NotExecuted,
            Self::WindowClosed { sent: true, .. }
            | Self::Broken(_)
            | Self::ReplyTooLarge { .. }
            | Self::InvalidReply(InvalidReply::NotAnEnvelope { .. }) => Disposition::Unknown,
            Self::InvalidReply(InvalidReply::Data { .. }) => Disposition::Executed,
        }
    }

    /// True if another attempt at a read may fare better.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotAttached
            | Self::NotListening { .. }
            | Self::Connect(_)
            | Self::WindowClosed { .. }
            | Self::Broken(_)
            | Self::InvalidReply(InvalidReply::NotAnEnvelope { .. }) => true,
            Self::Misunderstood(_)
            | Self::RequestTooLarge { .. }
            | Self::Refused(_)
            | Self::ReplyTooLarge { .. }
            | Self::InvalidReply(InvalidReply::Data { .. }) => false,
        }
    }
}
