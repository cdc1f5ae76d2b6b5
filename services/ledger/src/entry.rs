//! What can be written.
//!
//! The types say which facts belong together; that an id is new, or intended
//! and not yet concluded, only the database can know.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fleetgate_runner::{BundleId, CommandId, CommandKind, Effect, Fate, Udid};
use serde_json::{Map, Value};

use crate::error::LedgerError;
use crate::leases::{LeaseStamp, NewLeaseWrite};
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
    /// The address that it was asked for from.
    pub caller: Option<String>,
    /// Who asked for it.
    pub principal: Option<String>,
    /// The lease that it is carried out under, if it needs one.
    pub lease: Option<LeaseStamp>,
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
    /// Likewise leases.
    Lease(NewLeaseWrite),
}

impl Change {
    /// The command that it is about.
    pub(crate) fn command_id(&self) -> Option<&CommandId> {
        match self {
            Self::Intend(intent) => Some(&intent.command_id),
            Self::Conclude(fate) => Some(&fate.command_id),
            Self::Record(record) => Some(&record.command.command_id),
            Self::Resolve(resolution) => Some(&resolution.command_id),
            Self::Operate(_) | Self::Move(_) | Self::Set(..) | Self::Lease(_) => None,
        }
    }

    /// Why it must not come near a file, if it must not: it holds typed text, or a
    /// number that the database has no room for.
    pub(crate) fn refusal(&self) -> Option<LedgerError> {
        match self {
            Self::Intend(intent) => intent.refusal(),
            Self::Record(record) => record.command.refusal(),
            Self::Operate(operation) | Self::Set(_, operation) => operation.refusal(),
            Self::Lease(write) => {
                let epochs = write.rows.iter().filter_map(|lease| lease.epoch);
                let operations = write.operations.iter();
                operations
                    .filter_map(NewOperation::refusal)
                    .chain(epochs.filter_map(too_high))
                    .next()
            }
            Self::Conclude(_) | Self::Resolve(_) | Self::Move(_) => None,
        }
    }
}

impl NewIntent {
    fn refusal(&self) -> Option<LedgerError> {
        if [&self.parameters, &self.asked].into_iter().any(holds_text) {
            return Some(LedgerError::Unredacted {
                command_id: self.command_id.clone(),
            });
        }
        self.lease.as_ref().and_then(|lease| too_high(lease.epoch))
    }
}

impl NewOperation {
    fn refusal(&self) -> Option<LedgerError> {
        holds_text(&self.detail).then(|| LedgerError::UnredactedOperation {
            what: self.what.clone(),
        })
    }
}

fn holds_text(fields: &Map<String, Value>) -> bool {
    fields.contains_key("text")
}

fn too_high(epoch: u64) -> Option<LedgerError> {
    let error = i64::try_from(epoch).err()?;
    Some(LedgerError::Rejected {
        source: Arc::new(error),
    })
}
