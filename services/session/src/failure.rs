//! Everything that a command can fail with, and what its caller may do about
//! it.
//!
//! A [`Failure`] says why; what became of the command is in the [`Receipt`] of
//! the [`Failed`] that carries it, and the two are independent: the ledger can
//! fail after a tap has landed.

use std::borrow::Cow;
use std::time::Duration;

use fleetgate_runner::{Effect, InvalidReply, JournalState, RunnerCode, RunnerError, SendError};

use crate::condition::Drain;
use crate::job::Receipt;
use crate::leave::Withdrawn;
use crate::record::RecordError;

/// A command that failed, and the facts about it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{} {} failed", receipt.kind, receipt.command_id)]
pub struct Failed {
    /// The facts.
    pub receipt: Receipt,
    /// Why.
    #[source]
    pub failure: Failure,
}

/// Why a command failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The runner's verdict.
    #[error(transparent)]
    Runner(RunnerError),
    /// The last attempt could not be sent. So were any before it, or the runner
    /// declined them: the command provably did not run.
    #[error("not sent: {0}")]
    NotSent(#[source] SendError),
    /// It was sent, its reply is lost, and nobody can say whether it ran.
    #[error("sent, with an unknown fate: {cause}")]
    Unknown {
        /// How the reply was lost.
        #[source]
        cause: SendError,
        /// The last word of the runner's journal, if it was asked and gave one.
        journal: Option<JournalState>,
    },
    /// A read was carried out; its reply cannot be used.
    #[error(transparent)]
    Reply(InvalidReply),
    /// It was not sent, because the viewport that its points relate to could
    /// not be read.
    #[error("the viewport could not be read: {0}")]
    Viewport(#[source] Box<Failure>),
    /// Too many commands wait for this device.
    #[error("{limit} wait for the device already")]
    LaneFull {
        /// How many may wait.
        limit: usize,
    },
    /// The caller's deadline passed before the command's turn came. It will not
    /// be sent.
    #[error("the deadline passed before the command's turn came")]
    DeadlineInQueue,
    /// The caller's deadline passed. Unless the receipt says that nothing was
    /// sent, the command goes on, and its fate can be looked up.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// The ledger did not take the intent, and nothing was sent; or it did not
    /// take the fate, and the receipt is the only place that has it.
    #[error(transparent)]
    Record(RecordError),
    /// The command id is on record already. Nothing was sent.
    #[error("the command id has been used already")]
    Duplicate,
    /// The command id is that of another command, which has not ended. This one
    /// was not sent.
    #[error("the command id belongs to a command that differs in {}", fields.join(", "))]
    IdConflict {
        /// What they differ in, by the names of the API's fields; of commands of
        /// two kinds only that.
        fields: Vec<&'static str>,
    },
    /// It did not run, and the runner is still draining work that it abandoned,
    /// which is probably why.
    #[error(
        "{failure} (abandoned work has been draining for {:.1} s or more)",
        drain.age.as_secs_f64()
    )]
    Draining {
        /// The failure as such.
        #[source]
        failure: Box<Failure>,
        /// How far the runner is.
        drain: Drain,
    },
    /// It was not sent: nothing was started, since the runner is being launched
    /// or recycled.
    #[error("{failure} (the runner is being launched or recycled)")]
    Paused {
        /// The failure as such.
        #[source]
        failure: Box<Failure>,
    },
    /// The leave to send it was withdrawn before it was. Nothing was sent.
    #[error(transparent)]
    Withdrawn(Withdrawn),
    /// There was leave to join a command and none to send one, and no command with
    /// this id is under way. Nothing was sent for this caller.
    #[error("no command with this id is under way")]
    NotUnderWay,
    /// The session is shut down.
    #[error("the gateway is draining")]
    Closed,
    /// Our own fault: something in the command's execution panicked.
    #[error("the command's execution crashed")]
    Crashed,
}

const UNLOCK: &str = "check that the phone is unlocked and the app runs";

impl Failure {
    /// The failure as a stable code: the runner's, or one of ours.
    pub fn reason(&self) -> &str {
        match self {
            Self::Runner(error) => error.code.as_str(),
            Self::NotSent(error) => send_reason(error),
            Self::Unknown { .. } => "FATE_UNKNOWN",
            Self::Reply(_) => "REPLY_UNUSABLE",
            // It is the read's fate that is unknown, not the command's.
            Self::Viewport(read) if read.is_unknown() => "VIEWPORT_UNREADABLE",
            Self::Viewport(failure) | Self::Draining { failure, .. } | Self::Paused { failure } => {
                failure.reason()
            }
            Self::LaneFull { .. } => "LANE_FULL",
            Self::DeadlineInQueue => "DEADLINE_IN_QUEUE",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Record(_) => "LEDGER_UNAVAILABLE",
            Self::Duplicate => "DUPLICATE_COMMAND_ID",
            Self::IdConflict { .. } => "COMMAND_ID_CONFLICT",
            Self::Withdrawn(withdrawn) => withdrawn.reason,
            Self::NotUnderWay => "COMMAND_NOT_UNDER_WAY",
            Self::Closed => "GATEWAY_DRAINING",
            Self::Crashed => "INTERNAL",
        }
    }

    /// What a person may do about it: the runner's advice where it gave some.
    pub fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Runner(error) => match (&error.hint, &error.code) {
                // A runner that waits in vain for a locked phone does not know
                // what for.
                (Some(hint), RunnerCode::CommandTimedOut) => {
                    return Some(format!("{hint}; {UNLOCK}").into());
                }
                (Some(hint), _) => hint,
                (None, RunnerCode::RunnerWedged) => "the runner's session must be recycled",
                (None, RunnerCode::CommandTimedOut | RunnerCode::AppNotAvailable) => UNLOCK,
                (
                    None,
                    RunnerCode::InvalidRequest
                    | RunnerCode::AppBundleIdRequired
                    | RunnerCode::AppBackgrounded
                    | RunnerCode::TextInputNotFocused
                    | RunnerCode::UnsupportedOperation
                    | RunnerCode::RunnerBusy
                    | RunnerCode::XctestRecordedFailure
                    | RunnerCode::SnapshotFailed
                    | RunnerCode::CommandFailed
                    | RunnerCode::Other(_),
                ) => return None,
            },
            Self::NotSent(error) => return send_hint(error).map(Cow::from),
            Self::Unknown { .. } => {
                "look at the screen before doing it again: it may have happened"
            }
            Self::Viewport(read) if read.is_unknown() => return None,
            Self::Viewport(read) => return read.hint(),
            Self::LaneFull { .. } | Self::DeadlineInQueue => {
                "the device is in demand: try later, or allow more time"
            }
            Self::DeadlineExceeded => "look the command up by its id: it may still go on",
            Self::Duplicate | Self::NotUnderWay => {
                "look the command up by its id, or use a new one"
            }
            Self::IdConflict { .. } => "use a new id for another command",
            Self::Draining { failure, .. } => {
                if let Self::Runner(RunnerError {
                    hint: Some(hint), ..
                }) = failure.as_ref()
                {
                    hint
                } else {
                    "the runner is still busy with a command that it gave up: unlock the phone \
                     and look at its screen, or wait"
                }
            }
            Self::Paused { .. } => {
                "the runner is being launched or recycled: commands wait for it, so try later, or \
                 allow more time"
            }
            Self::Withdrawn(withdrawn) => return withdrawn.hint.as_deref().map(Cow::from),
            Self::Reply(_) | Self::Record(_) | Self::Closed | Self::Crashed => return None,
        };
        Some(hint.into())
    }

    /// The failure of a command that was not sent while nothing was started: with
    /// that as the explanation, where it is one.
    pub(crate) fn while_paused(self) -> Self {
        match self {
            Self::LaneFull { .. } | Self::DeadlineInQueue => Self::Paused {
                failure: Box::new(self),
            },
            Self::Runner(_)
            | Self::NotSent(_)
            | Self::Unknown { .. }
            | Self::Reply(_)
            | Self::Viewport(_)
            | Self::DeadlineExceeded
            | Self::Record(_)
            | Self::Duplicate
            | Self::IdConflict { .. }
            | Self::Draining { .. }
            | Self::Paused { .. }
            | Self::Withdrawn(_)
            | Self::NotUnderWay
            | Self::Closed
            | Self::Crashed => self,
        }
    }

    /// True if nobody can say what became of what was sent.
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

impl Failed {
    /// When the same thing may be asked for again, under a new command id;
    /// `None` unless that is provably safe and may help.
    ///
    /// It is safe for a read, and for a mutation that provably did nothing.
    pub fn retry_after(&self) -> Option<Duration> {
        let safe = !self.receipt.kind.is_mutation() || self.receipt.effect == Effect::None;
        if safe {
            pause_that_may_help(&self.failure)
        } else {
            None
        }
    }
}

const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(5);
/// About what a runner's session takes to be recycled.
const MUCH_LATER: Duration = Duration::from_secs(30);

fn pause_that_may_help(failure: &Failure) -> Option<Duration> {
    match failure {
        Failure::Runner(error) => match error.code {
            RunnerCode::RunnerBusy => Some(LATER),
            RunnerCode::RunnerWedged => Some(MUCH_LATER),
            RunnerCode::InvalidRequest
            | RunnerCode::AppBundleIdRequired
            | RunnerCode::AppNotAvailable
            | RunnerCode::AppBackgrounded
            | RunnerCode::TextInputNotFocused
            | RunnerCode::UnsupportedOperation
            | RunnerCode::XctestRecordedFailure
            | RunnerCode::SnapshotFailed
            | RunnerCode::CommandTimedOut
            | RunnerCode::CommandFailed
            | RunnerCode::Other(_) => None,
        },
        Failure::NotSent(error) | Failure::Unknown { cause: error, .. } => {
            error.is_transient().then_some(LATER)
        }
        Failure::Viewport(failure) => pause_that_may_help(failure),
        Failure::LaneFull { .. }
        | Failure::DeadlineInQueue
        | Failure::DeadlineExceeded
        | Failure::Record(_) => Some(SOON),
        Failure::Closed => Some(LATER),
        Failure::Draining { failure, drain } => {
            pause_that_may_help(failure).map(|_short| drain.pause())
        }
        // Not as long as a launch may take: what is asked for meanwhile waits.
        Failure::Paused { failure } => pause_that_may_help(failure).map(|_short| LATER),
        Failure::Reply(_)
        | Failure::Duplicate
        | Failure::IdConflict { .. }
        | Failure::Withdrawn(_)
        | Failure::NotUnderWay
        | Failure::Crashed => None,
    }
}

fn send_reason(error: &SendError) -> &'static str {
    match error {
        SendError::NotAttached => "DEVICE_UNATTACHED",
        SendError::NotListening { .. } => "RUNNER_NOT_LISTENING",
        SendError::Connect(_) => "MUX_UNAVAILABLE",
        SendError::Misunderstood(_) => "MUX_REFUSED",
        SendError::RequestTooLarge { .. } => "REQUEST_TOO_LARGE",
        SendError::Refused(_) => "LEDGER_UNAVAILABLE",
        SendError::WindowClosed { .. } => "RUNNER_UNREACHABLE",
        SendError::Broken(_) => "CONNECTION_BROKEN",
        SendError::ReplyTooLarge { .. } => "REPLY_TOO_LARGE",
        SendError::InvalidReply(_) => "REPLY_UNUSABLE",
    }
}

fn send_hint(error: &SendError) -> Option<&'static str> {
    match error {
        SendError::NotAttached => Some("check the phone's cable, and that the host trusts it"),
        SendError::NotListening { port: Some(_) } => Some("the runner is down or not yet up"),
        SendError::NotListening { port: None } => {
            Some("the runner is being launched, or none is known of")
        }
        SendError::Connect(_) => Some("check the host's usbmuxd"),
        SendError::RequestTooLarge { .. } => Some("split the command, for instance a long text"),
        SendError::WindowClosed { .. } => Some("check the phone's cable and the runner"),
        SendError::Misunderstood(_)
        | SendError::Refused(_)
        | SendError::Broken(_)
        | SendError::ReplyTooLarge { .. }
        | SendError::InvalidReply(_) => None,
    }
}

#[cfg(test)]
mod tests;
