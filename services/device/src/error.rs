//! What can go wrong on the way to a phone, before any byte for its runner.

use std::io;
use std::sync::Arc;

use fleetgate_runner::SendError;
use fleetgate_usbmux::{FrameError, InvalidMessage, InvalidPort, ResultCode, Unencodable};

/// Why usbmuxd made no connection. None of these can have reached a runner.
#[derive(Debug, thiserror::Error)]
pub enum MuxError {
    /// usbmuxd could not be dialled.
    #[error("usbmuxd cannot be dialled: {0}")]
    Dial(#[source] io::Error),
    /// The connection to usbmuxd failed.
    #[error("the connection to usbmuxd failed: {0}")]
    Io(#[source] io::Error),
    /// usbmuxd closed the connection, and with it a packet it had begun if any.
    #[error("usbmuxd closed the connection{}", if *.mid_packet { " in the middle of a packet" } else { "" })]
    Closed {
        /// Whether a packet was cut off.
        mid_packet: bool,
    },
    /// usbmuxd did not answer in time.
    #[error("usbmuxd did not answer in time")]
    Silent,
    /// What usbmuxd sends cannot be cut into packets.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// usbmuxd's answer cannot be understood.
    #[error(transparent)]
    Message(#[from] InvalidMessage),
    /// The request cannot be written down.
    #[error(transparent)]
    Unencodable(#[from] Unencodable),
    /// usbmuxd refused.
    #[error("usbmuxd refused with result {} ({result:?})", .result.number())]
    Refused {
        /// Its number.
        result: ResultCode,
    },
    /// usbmuxd answered something else than what was asked.
    #[error("usbmuxd answered another question than the one it was asked")]
    UnexpectedReply,
    /// No port of a phone.
    #[error(transparent)]
    Port(#[from] InvalidPort),
    /// Nobody knows which phones a usbmuxd has.
    #[error("the usbmuxd of host {host} is unreachable: {last_error}")]
    Unreachable {
        /// What people call it.
        host: Arc<str>,
        /// What went wrong when it was last tried.
        last_error: String,
    },
    /// The phone's number lost its meaning while the connection was made.
    #[error("the device or its usbmuxd was reconnected meanwhile")]
    Superseded,
    /// The owner stopped the work with this usbmuxd.
    #[error("the work with this usbmuxd was stopped")]
    Stopped,
}

impl MuxError {
    /// True if usbmuxd denies that it knows a phone of that number.
    pub(crate) fn denies_number(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                result: ResultCode::BadDevice
            }
        )
    }

    /// True if a failure of one connection says nothing about the next.
    pub(crate) fn is_fleeting(&self) -> bool {
        match self {
            Self::Io(_) | Self::Closed { .. } | Self::Superseded => true,
            Self::Dial(_)
            | Self::Silent
            | Self::Frame(_)
            | Self::Message(_)
            | Self::Unencodable(_)
            | Self::Refused { .. }
            | Self::UnexpectedReply
            | Self::Port(_)
            | Self::Unreachable { .. }
            | Self::Stopped => false,
        }
    }
}

impl From<MuxError> for SendError {
    fn from(error: MuxError) -> Self {
        Self::Connect(Arc::new(error))
    }
}
