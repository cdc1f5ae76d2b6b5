//! Everything that bytes, documents and numbers of this protocol can be
//! refused for.

use std::sync::Arc;

use crate::frame::Header;

/// A stream that cannot be cut into packets. There is no way to go on with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length does not even cover the header.
    #[error("a packet of {length} bytes cannot hold its own header")]
    TooShort {
        /// What the length field says.
        length: u32,
    },
    /// The length is over the decoder's cap.
    #[error("a packet of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// What the length field says.
        length: u32,
        /// The most that is taken.
        limit: usize,
    },
}

/// A whole packet whose content is not what this protocol puts there. The
/// stream itself is intact.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InvalidMessage {
    /// Not a packet that holds a property list.
    #[error("the packet holds no property list: version {}, message {}", .0.version, .0.message)]
    NotPlist(Header),
    /// Neither an XML nor a binary property list.
    #[error("unreadable property list: {0}")]
    Unreadable(#[source] Arc<plist::Error>),
    /// More deeply nested, or larger once unfolded, than any real message.
    #[error("the property list is too deep or too large")]
    Excessive,
    /// The property list is not a dictionary.
    #[error("the property list is not a dictionary")]
    NotDictionary,
    /// A key is absent, or its value is of the wrong type or out of range.
    #[error("the key `{0}` is missing or unusable")]
    Key(&'static str),
    /// A port that cannot be.
    #[error(transparent)]
    Port(#[from] InvalidPort),
    /// The answer to something else.
    #[error("expected the answer to request {expected}, got that to {got}")]
    Tag {
        /// The request's tag.
        expected: u32,
        /// The answer's tag.
        got: u32,
    },
    /// A dictionary that answers no known request.
    #[error("not an answer to any request (MessageType {})", .message_type.as_deref().unwrap_or("absent"))]
    NotAReply {
        /// Its `MessageType`.
        message_type: Option<String>,
    },
}

/// Not a TCP port, or not one in the form that this protocol uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a port: expected 1 to 65535")]
pub struct InvalidPort(pub u64);

/// A message that cannot be put on the wire.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Unencodable {
    /// The property list could not be written.
    #[error("the property list cannot be written: {0}")]
    Plist(#[source] Arc<plist::Error>),
    /// It does not fit into one packet.
    #[error("a message of {bytes} bytes does not fit into a packet")]
    TooLarge {
        /// The size of its property list.
        bytes: usize,
    },
}
