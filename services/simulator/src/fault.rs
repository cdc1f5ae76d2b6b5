//! Scripted faults: what goes wrong, with which command, how often.
//!
//! A fault is data. It is queued on a phone, from a scenario file, a test or
//! the control API, and taken from the queue when a command reaches the stage
//! at which it applies. The first queued fault that fits is the one that is
//! used, at most one per stage, so that `journal_evicted` and
//! `reply_lost_after_execution` can befall the same command while two queued
//! `busy` faults befall one attempt after the other.
//!
//! | stage | where it is | faults |
//! |---|---|---|
//! | connect | usbmuxd was asked for a connection | `connect_result`, `drop_connection`, `half_open`, `usbmuxd_restart`, `replug` |
//! | arrival | the request was read | `reply_lost_before_execution`, `reply_lost_during_execution` |
//! | gate | the head of the runner's queue | `busy` |
//! | execution | the command runs | `slow`, `never_ends`, `error`, `echo_text`, `activation_fails`, `recorded_failure`, `suppressed_issue`, `long_message`, `snapshot_failed`, `snapshot_flaky`, `killed` |
//! | journal | the command has ended | `journal_evicted` |
//! | reply | the reply is written | `reply_lost_after_execution`, `garbage_reply`, `not_json`, `not_an_envelope`, `reply_body`, `partial_reply`, `truncated_reply`, `oversize_reply` |
//!
//! A fault without `on` fits every command of the runner's queue; `status`,
//! which bypasses the queue, only meets reply faults that name it. Faults of
//! the connect stage come before the command is known, so they cannot name
//! one; they befall connections to runners, and none to lockdown.
//!
//! Invariant: a fault applies `times` times and is gone.

use std::collections::VecDeque;
use std::time::Duration;

use fleetgate_runner::{CommandKind, RunnerCode};
use serde::{Deserialize, Serialize};

/// One scripted fault. In a scenario file:
/// `{ on = "tap", times = 2, inject = "busy" }` or
/// `{ inject = { slow = { by = "2s" } } }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The command that it waits for; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<CommandKind>,
    /// How many times it applies.
    #[serde(default = "once")]
    pub times: u32,
    /// How many commands that it would fit it lets pass first.
    #[serde(default)]
    pub skip: u32,
    /// What goes wrong.
    pub inject: Injection,
}

fn once() -> u32 {
    1
}

/// What goes wrong. Durations are the phone's: a lab's time scale shortens
/// them like every other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Injection {
    /// usbmuxd answers the Connect with this number.
    ConnectResult {
        /// The result; 3 is a refused connection.
        number: u32,
    },
    /// The connection is made and closed before anything is read from it.
    DropConnection,
    /// The connection is made, and neither side hears anything on it.
    HalfOpen,
    /// usbmuxd restarts instead of answering the Connect.
    UsbmuxdRestart {
        /// Hand out device ids from 1 again, so that an old id names another
        /// phone.
        #[serde(default)]
        reuse_ids: bool,
    },
    /// The phone is unplugged and plugged in again: the id that was asked for
    /// is stale, and Connect results in 2.
    Replug,
    /// The request is read and forgotten: not journaled, not run, no reply.
    ReplyLostBeforeExecution,
    /// The request is taken into the queue, and the connection closes at once:
    /// together with `slow`, the journal says `started` for a while.
    ReplyLostDuringExecution,
    /// `RUNNER_BUSY`, as if abandoned work were draining.
    Busy,
    /// The command takes this much longer; more than its budget, and it is
    /// abandoned and still has its effect later.
    Slow {
        /// How much longer.
        #[serde(with = "humantime_serde")]
        by: Duration,
    },
    /// The command hangs without having its effect: it is abandoned, the
    /// runner is busy and, after its threshold, wedged.
    NeverEnds,
    /// The command ends with this error.
    Error {
        /// The code on the wire.
        code: RunnerCode,
        /// In words.
        #[serde(default)]
        message: String,
        /// What the runner suggests.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
        /// Whether the command has its effect first.
        #[serde(default)]
        after_effect: bool,
    },
    /// `type` fails with `COMMAND_FAILED`, and its message repeats the text.
    EchoText,
    /// A backgrounded app does not come to the front: `APP_NOT_AVAILABLE`
    /// after 15 seconds.
    ActivationFails,
    /// XCTest records a failure while the command runs.
    RecordedFailure,
    /// XCTest mutes an issue while the command runs.
    SuppressedIssue,
    /// The message of a mutation's success is padded with dots to this length;
    /// past 16 KiB the journal does not retain its reply.
    LongMessage {
        /// The length of the message.
        bytes: usize,
    },
    /// Both captures of a snapshot throw.
    SnapshotFailed,
    /// The first capture of a snapshot throws, its retry succeeds.
    SnapshotFlaky,
    /// The runner dies while the command runs.
    Killed {
        /// Whether the command has its effect first.
        #[serde(default)]
        after_effect: bool,
        /// A new runner comes up here, with an empty journal; none if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restart_on: Option<u16>,
    },
    /// The command's id leaves the journal as soon as the command has ended.
    JournalEvicted,
    /// The command runs, and the connection closes without a reply.
    ReplyLostAfterExecution,
    /// The reply is not even HTTP.
    GarbageReply,
    /// The reply is HTTP 200 with a body that is not JSON.
    NotJson,
    /// The reply is JSON without a boolean `ok`.
    NotAnEnvelope,
    /// The reply is HTTP 200 with this body, whatever the command was and did.
    ReplyBody {
        /// The body.
        body: String,
    },
    /// The header and the first bytes of the body, then silence.
    PartialReply,
    /// The header and the first bytes of the body, then the end.
    TruncatedReply,
    /// The reply is good, and padded with white space to this size.
    OversizeReply {
        /// The size of the body.
        bytes: usize,
    },
}

/// The point of a command's way at which a fault applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Connect,
    Arrival,
    Gate,
    Execution,
    Journal,
    Reply,
}

impl Injection {
    pub(crate) fn stage(&self) -> Stage {
        match self {
            Self::ConnectResult { .. }
            | Self::DropConnection
            | Self::HalfOpen
            | Self::UsbmuxdRestart { .. }
            | Self::Replug => Stage::Connect,
            Self::ReplyLostBeforeExecution | Self::ReplyLostDuringExecution => Stage::Arrival,
            Self::Busy => Stage::Gate,
            Self::Slow { .. }
            | Self::NeverEnds
            | Self::Error { .. }
            | Self::EchoText
            | Self::ActivationFails
            | Self::RecordedFailure
            | Self::SuppressedIssue
            | Self::LongMessage { .. }
            | Self::SnapshotFailed
            | Self::SnapshotFlaky
            | Self::Killed { .. } => Stage::Execution,
            Self::JournalEvicted => Stage::Journal,
            Self::ReplyLostAfterExecution
            | Self::GarbageReply
            | Self::NotJson
            | Self::NotAnEnvelope
            | Self::ReplyBody { .. }
            | Self::PartialReply
            | Self::TruncatedReply
            | Self::OversizeReply { .. } => Stage::Reply,
        }
    }

    /// The one command that it makes sense for, if there is only one.
    fn only_on(&self) -> Option<CommandKind> {
        match self {
            Self::SnapshotFailed | Self::SnapshotFlaky => Some(CommandKind::Snapshot),
            Self::EchoText => Some(CommandKind::Type),
            Self::ConnectResult { .. }
            | Self::DropConnection
            | Self::HalfOpen
            | Self::UsbmuxdRestart { .. }
            | Self::Replug
            | Self::ReplyLostBeforeExecution
            | Self::ReplyLostDuringExecution
            | Self::Busy
            | Self::Slow { .. }
            | Self::NeverEnds
            | Self::Error { .. }
            | Self::ActivationFails
            | Self::RecordedFailure
            | Self::SuppressedIssue
            | Self::LongMessage { .. }
            | Self::Killed { .. }
            | Self::JournalEvicted
            | Self::ReplyLostAfterExecution
            | Self::GarbageReply
            | Self::NotJson
            | Self::NotAnEnvelope
            | Self::ReplyBody { .. }
            | Self::PartialReply
            | Self::TruncatedReply
            | Self::OversizeReply { .. } => None,
        }
    }
}

/// Why a fault could never apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFault {
    /// It applies before the command is known, and names one.
    #[error("this fault befalls a connection, before its command is known: `on` cannot be given")]
    NamesACommand,
    /// It fits another command only.
    #[error("this fault can only befall {only}, not {on}")]
    WrongCommand {
        /// What it fits.
        only: CommandKind,
        /// What it names.
        on: CommandKind,
    },
    /// It names `status`, which only reply faults can befall.
    #[error("{on} bypasses the runner's queue: only faults of the reply can befall it")]
    NeverQueued {
        /// What it names.
        on: CommandKind,
    },
    /// It applies no times.
    #[error("`times` must be at least 1")]
    Never,
}

impl From<Injection> for Fault {
    fn from(inject: Injection) -> Self {
        Self {
            on: None,
            times: 1,
            skip: 0,
            inject,
        }
    }
}

impl Fault {
    /// Only with this command.
    #[must_use]
    pub fn on(self, kind: CommandKind) -> Self {
        Self {
            on: Some(kind),
            ..self
        }
    }

    /// This many times, instead of once.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Only after this many commands that it would have fitted.
    #[must_use]
    pub fn skip(self, skip: u32) -> Self {
        Self { skip, ..self }
    }

    /// Refuses a fault that could never apply.
    pub fn check(&self) -> Result<(), InvalidFault> {
        if self.times == 0 {
            return Err(InvalidFault::Never);
        }
        let Some(on) = self.on else { return Ok(()) };
        let stage = self.inject.stage();
        match self.inject.only_on() {
            _ if stage == Stage::Connect => Err(InvalidFault::NamesACommand),
            Some(only) if only != on => Err(InvalidFault::WrongCommand { only, on }),
            Some(_) | None if on.bypasses_queue() && stage != Stage::Reply => {
                Err(InvalidFault::NeverQueued { on })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn fits(&self, stage: Stage, kind: Option<CommandKind>) -> bool {
        if self.inject.stage() != stage {
            return false;
        }
        let named = self.on.or(self.inject.only_on());
        match (named, kind) {
            (None, None) => true,
            (None, Some(kind)) => !kind.bypasses_queue(),
            (Some(_), None) => false,
            (Some(named), Some(kind)) => named == kind,
        }
    }
}

/// The faults that wait on one phone.
#[derive(Debug, Default)]
pub(crate) struct FaultQueue {
    waiting: VecDeque<Fault>,
}

impl FaultQueue {
    pub(crate) fn push(&mut self, fault: Fault) {
        if fault.times > 0 {
            self.waiting.push_back(fault);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// The faults that still wait, each with what is left of it.
    pub(crate) fn waiting(&self) -> Vec<Fault> {
        self.waiting.iter().cloned().collect()
    }

    /// What befalls a command that reaches `stage`, if anything does.
    pub(crate) fn take(&mut self, stage: Stage, kind: Option<CommandKind>) -> Option<Injection> {
        let at = self
            .waiting
            .iter()
            .position(|fault| fault.fits(stage, kind))?;
        let fault = self.waiting.get_mut(at)?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.times -= 1;
        let inject = fault.inject.clone();
        if fault.times == 0 {
            self.waiting.remove(at);
        }
        Some(inject)
    }
}

#[cfg(test)]
mod tests;
