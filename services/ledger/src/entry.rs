//! What can be written.
//!
//! The types say which facts belong together; that an id is new, or intended
//! and not yet concluded, only the database can know.

use std::time::{Duration, SystemTime};

use fleetgate_runner::{BundleId, CommandId, CommandKind, Effect, Fate, Udid};
use serde_json::{Map, Value};

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
}

impl Entry {
    pub(crate) fn command_id(&self) -> &CommandId {
        match &self.change {
            Change::Intend(intent) => &intent.command_id,
            Change::Conclude(fate) => &fate.command_id,
            Change::Record(record) => &record.command.command_id,
        }
    }

    /// The command that it brings into the ledger.
    pub(crate) fn command(&self) -> Option<&NewIntent> {
        match &self.change {
            Change::Intend(intent) => Some(intent),
            Change::Conclude(_) => None,
            Change::Record(record) => Some(&record.command),
        }
    }

    /// The fate that it brings into the ledger.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match &self.change {
            Change::Intend(_) => None,
            Change::Conclude(fate) => Some(&fate.outcome),
            Change::Record(record) => Some(&record.outcome),
        }
    }

    /// True if its parameters hold what was typed.
    pub(crate) fn holds_text(&self) -> bool {
        self.command()
            .is_some_and(|command| command.parameters.contains_key("text"))
    }
}
