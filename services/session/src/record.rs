//! What goes on record, and what the recorder may answer.
//!
//! The recorder is a `tower::Service<Record, Response = (), Error =
//! RecordError>`; the session knows no database. It answers once the entry is
//! durable.
//!
//! Typed text is part of a [`Subject`], wrapped so that it cannot be formatted.
//! A recorder stores its length.

use std::time::SystemTime;

use fleetgate_runner::send::Cause;
use fleetgate_runner::{BundleId, Command, CommandId, CommandKind, Point, Reply, Udid};

use crate::failure::Failure;
use crate::job::Receipt;
use crate::origin::Origin;

/// One entry.
#[derive(Debug, Clone)]
pub enum Record {
    /// A mutation is about to be sent.
    Intent(Intent),
    /// A command has ended.
    Concluded(Box<Conclusion>),
    /// A mutation's fate, which had been left open or unknown, has been looked
    /// into.
    Resolved(Box<Resolution>),
}

/// A mutation that is about to be sent. Its first byte waits for the entry to
/// be durable; an id that is already on record must be refused as
/// [`RecordErrorKind::Duplicate`] and the entry that is there left alone.
#[derive(Debug, Clone)]
pub struct Intent {
    /// To which device.
    pub device: Udid,
    /// What it is known by.
    pub command_id: CommandId,
    /// What exactly will be sent.
    pub command: Command,
    /// Who asked.
    pub origin: Origin,
}

/// A command that has ended.
#[derive(Debug, Clone)]
pub struct Conclusion {
    /// On which device.
    pub device: Udid,
    /// True if an [`Intent`] went before, whose fate this is. Otherwise this is
    /// all there is of the command: a read, or a mutation that was never sent.
    pub intended: bool,
    /// What was asked.
    pub subject: Subject,
    /// Who asked.
    pub origin: Origin,
    /// What became of it.
    pub receipt: Receipt,
    /// Why it failed, as a code.
    pub reason: Option<String>,
    /// Why it failed, in words, without any text that it typed.
    pub message: Option<String>,
    /// The reply to a mutation, for whoever asks for the same again. That to a
    /// read can be large, and a read can be done again.
    pub reply: Option<Reply>,
    /// The failure itself.
    pub failure: Option<Failure>,
}

/// What has been found out about a mutation whose intent is on record without a
/// fate, or with an unknown one.
///
/// To be refused as [`RecordErrorKind::Duplicate`] if its fate is on record and
/// known, or known to be unknown for good; and if it is not on record any more.
#[derive(Debug, Clone)]
pub struct Resolution {
    /// On which device.
    pub device: Udid,
    /// What became of it. Of a mutation that another session sent, attempts and
    /// times are those on record; if there was no word on its end, all that is
    /// known is what the runner's journal holds: one attempt, and no times.
    pub receipt: Receipt,
    /// Why it failed, as a code.
    pub reason: Option<String>,
    /// Why it failed, in words, without any text that it typed.
    pub message: Option<String>,
    /// The reply, for whoever asks for the same again.
    pub reply: Option<Reply>,
    /// The failure itself.
    pub failure: Option<Failure>,
    /// What it is known from.
    pub why: String,
    /// Nothing more will be found out. True of every fate but an unknown one
    /// that is still being looked into.
    pub settled_for_good: bool,
}

/// A mutation that an earlier session left without a known fate.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsettled {
    /// What it is known by.
    pub command_id: CommandId,
    /// What kind of command.
    pub kind: CommandKind,
    /// When its intent was put on record: the earliest that it can have been
    /// sent.
    pub sent_at: SystemTime,
    /// What is on record of its end: a fate that is unknown, and the facts,
    /// which stay as they are. `None` if its intent is all there is; such a one
    /// keeps the lane shut for other mutations until it has a fate.
    pub receipt: Option<Receipt>,
}

/// What was asked, as far as it is known.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// With every point in the app's own.
    Resolved(Command),
    /// Never sent, with points that were not resolved.
    Unresolved(Command<Point>),
}

impl From<Command<Point>> for Subject {
    fn from(command: Command<Point>) -> Self {
        match command.clone().resolve(None) {
            Some(resolved) => Self::Resolved(resolved),
            None => Self::Unresolved(command),
        }
    }
}

impl Subject {
    /// What kind of command.
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Resolved(command) => command.kind(),
            Self::Unresolved(command) => command.kind(),
        }
    }

    /// The app that it names.
    pub fn bundle_id(&self) -> Option<&BundleId> {
        match self {
            Self::Resolved(command) => command.bundle_id(),
            Self::Unresolved(command) => command.bundle_id(),
        }
    }

    /// `text` without what the command types.
    pub(crate) fn redact(&self, text: String) -> String {
        match self {
            Self::Resolved(command) => command.redact(text),
            Self::Unresolved(command) => command.redact(text),
        }
    }
}

/// Why something is not on record.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the ledger {}: {source}", match .kind {
    RecordErrorKind::Duplicate => "knows this command already",
    RecordErrorKind::Unavailable => "is unavailable",
})]
pub struct RecordError {
    /// What kind of refusal.
    pub kind: RecordErrorKind,
    /// What the recorder says.
    pub source: Cause,
}

/// The kinds of refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordErrorKind {
    /// The command id is on record already, or there is nothing left to settle.
    Duplicate,
    /// The entry could not be made durable, now or at all.
    Unavailable,
}
