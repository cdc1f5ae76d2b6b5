//! The Argent iOS runner protocol, version 1, without I/O.
//!
//! A runner on a phone takes one JSON object per HTTP POST and answers with one
//! JSON envelope. This crate owns what both sides of that exchange share: the
//! commands and their wire form, the envelope and its typed replies, the error
//! codes, the journal's states, the time budgets, and what a send can fail
//! with. The gateway uses it as the client, the simulator as the server.
//!
//! It refuses to do I/O, to keep time and to decide policy: what to retry, and
//! when, is the session's business.
//!
//! Invariant: what one side encodes the other decodes to an equal value
//! (durations to the millisecond, as they travel), and no input makes a decoder
//! panic.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use fleetgate_runner::{Button, Command, DeviceCommand, Envelope, Reply, Request};
//!
//! // The client asks …
//! let command = Command::Device(DeviceCommand::Button { button: Button::Home });
//! let asked = Request { command_id: Some("c-1".parse()?), command };
//! let body = asked.encode();
//!
//! // … the runner understands and answers …
//! let understood = Request::decode(&body)?;
//! assert_eq!(understood, asked);
//! let reply = Envelope::from(Ok(Reply::Done("pressed home".to_owned()))).encode();
//!
//! // … and the client knows how to read that, because it knows what it asked.
//! let answer = Envelope::decode(asked.command.kind(), &reply)?;
//! assert_eq!(answer.result?, Reply::Done("pressed home".to_owned()));
//! # Ok(())
//! # }
//! ```

pub mod budget;
pub mod code;
pub mod command;
pub mod defaults;
mod echo;
pub mod envelope;
pub mod fate;
pub mod http;
pub mod ids;
pub mod journal;
mod json;
pub mod kind;
pub mod point;
pub mod reply;
pub mod request;
pub mod send;
mod words;

pub use budget::{Budgets, CommandClass};
pub use code::{RunnerCode, RunnerError};
pub use command::{AppAction, AppCommand, Button, Command, DeviceCommand, TypedText};
pub use envelope::{Envelope, InvalidReply};
pub use fate::{Effect, Fate};
pub use ids::{BundleId, CommandId, InvalidId, Udid};
pub use journal::{JournalEntry, JournalState};
pub use kind::CommandKind;
pub use point::{AppPoint, Point, UnitPoint};
pub use reply::{
    Node, Quality, QualityState, Rect, Reply, RunnerState, RunnerStatus, Screenshot, Snapshot,
    Viewport,
};
pub use request::{InvalidRequest, Request};
pub use send::{Clearance, Disposition, Exchange, Refused, SendError, Sent};

/// The most bytes that a runner takes in one request, HTTP header included.
pub const MAX_REQUEST_BYTES: usize = 2 * 1024 * 1024;

/// The most bytes that a client takes in one reply body.
pub const MAX_REPLY_BYTES: usize = 64 * 1024 * 1024;
