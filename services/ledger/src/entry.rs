//! What can be written.
//!
//! The types say which facts belong together; that an id is new, or intended
//! and not yet concluded, only the database can know.

use std::time::{Duration, SystemTime};

use fleetgate_runner::{BundleId, CommandId, CommandKind, Effect, Fate, Udid};
use serde_json::{Map, Value};

use crate::settings::DeviceSettings;

/// The longest reply that is kept, in bytes.
pub const MAX_KEPT_REPLY: usize = 16 * 1024;

/// A command that is about to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct NewIntent {
    /// Its id, never recorded before.
    pub command_id: CommandId,
    /// The phone.
    pub device: Udid,
    /// Which command.
    pub kind: CommandKind,
    /// The app that it names.
    pub app_bundle_id: Option<BundleId>,
    /// Its parameters as `Command::recorded` gives them: without typed text.
    pub parameters: Map<String, Value>,
    /// What the caller asked for, in the caller's form and without typed text:
    /// what a repetition is compared with.
    pub asked: Map<String, Value>,
    /// Who asked for it.
    pub caller: Option<String>,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What became of it.
    pub fate: Fate,
    /// What it did to the device.
    pub effect: Effect,
    /// The runner's error code or the gateway's reason; absent on success.
    pub reason: Option<String>,
    /// The error in words.
    pub message: Option<String>,
    /// The runner's warning.
    pub warning: Option<String>,
    /// What the caller was told to do about it.
    pub hint: Option<String>,
    /// Whether the runner brought the app to the front first.
    pub reactivated: bool,
    /// How many times the command was offered to the runner.
    pub attempts: u32,
    /// Whether the fate was learnt from the runner's journal.
    pub recovered: bool,
    /// From admission to the head of the device's queue. Kept in microseconds.
    pub queue_wait: Duration,
    /// From the head of the queue to the verdict. Kept in microseconds.
    pub device_time: Duration,
    /// The reply, of a mutation only. Its text means nothing to the ledger.
    pub reply: Option<KeptReply>,
}

/// A reply, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptReply {
    pub(crate) bytes: i64,
    pub(crate) text: Option<String>,
}

impl KeptReply {
    /// Keeps `text`, or only how long it is if it exceeds [`MAX_KEPT_REPLY`].
    pub fn of(text: String) -> Self {
        Self {
            bytes: i64::try_from(text.len()).unwrap_or(i64::MAX),
            text: Some(text).filter(|text| text.len() <= MAX_KEPT_REPLY),
        }
    }

    /// The whole of it; `None` if it was too long to be kept, and in a page of
    /// commands, which holds none.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// How long it was.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or_default()
    }

    /// Whether it was too long to be kept.
    pub fn too_long(&self) -> bool {
        self.bytes() > MAX_KEPT_REPLY as u64
    }
}

/// The fate of a command that was intended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFate {
    /// The command.
    pub command_id: CommandId,
    /// What became of it.
    pub outcome: Outcome,
}

/// A command that is recorded once, at its end: a read, or a mutation that was
/// never sent.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRecord {
    /// The command.
    pub command: NewIntent,
    /// What became of it.
    pub outcome: Outcome,
}

/// What was learnt later of a command whose fate was open or UNKNOWN.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewResolution {
    /// The command.
    pub command_id: CommandId,
    /// What became of it, as far as is known now.
    pub outcome: Outcome,
    /// How that was learnt.
    pub why: String,
    /// Whether nothing more can be learnt: an UNKNOWN for good.
    pub is_final: bool,
}

/// What was done other than by a command: to the ledger, to the gateway, or to a
/// phone by an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct NewOperation {
    /// Who did it.
    pub who: String,
    /// What it was.
    pub what: String,
    /// What it was done to.
    pub target: Option<String>,
    /// Whatever else is to be known of it: without typed text.
    pub detail: Map<String, Value>,
}

/// What a phone went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTransition {
    /// The phone.
    pub device: Udid,
    /// The state that it left, by its name in the API without the prefix:
    /// `READY`.
    pub from: String,
    /// The state that it came into; the same if it stayed in it.
    pub to: String,
    /// Why: a code, such as `PLUGGED`.
    pub reason: String,
    /// More about it, in words: without typed text.
    pub detail: Option<String>,
}

/// One thing to write, and when it was handed in.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) at: SystemTime,
    pub(crate) change: Change,
}

#[derive(Debug)]
pub(crate) enum Change {
    Intend(NewIntent),
    Conclude(NewFate),
    Record(NewRecord),
    Resolve(NewResolution),
    Operate(NewOperation),
    Move(NewTransition),
    /// Settings are on record by their operation alone.
    Set(DeviceSettings, NewOperation),
}

impl Change {
    /// The command that it is about.
    pub(crate) fn command_id(&self) -> Option<&CommandId> {
        match self {
            Self::Intend(intent) => Some(&intent.command_id),
            Self::Conclude(fate) => Some(&fate.command_id),
            Self::Record(record) => Some(&record.command.command_id),
            Self::Resolve(resolution) => Some(&resolution.command_id),
            Self::Operate(_) | Self::Move(_) | Self::Set(..) => None,
        }
    }

    /// The command that it brings into the ledger if that holds typed text.
    pub(crate) fn unredacted(&self) -> Option<&CommandId> {
        let command = match self {
            Self::Intend(intent) => intent,
            Self::Record(record) => &record.command,
            Self::Conclude(_)
            | Self::Resolve(_)
            | Self::Operate(_)
            | Self::Move(_)
            | Self::Set(..) => return None,
        };
        let holds_text = [&command.parameters, &command.asked]
            .iter()
            .any(|fields| fields.contains_key("text"));
        holds_text.then_some(&command.command_id)
    }
}
