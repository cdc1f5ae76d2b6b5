//! How a device's runner fares, as far as the lane can tell from what it hears.
//!
//! ```text
//!             COMMAND_TIMED_OUT, RUNNER_BUSY          RUNNER_WEDGED
//!   READY ───────────────────────────────► DRAINING ───────────────► WEDGED
//!     ▲                                       │                        │
//!     └──── a queued command is executed, or `status` says idle ───────┘
//!           (a runner that has restarted is idle)
//! ```
//!
//! Pure: whoever hears something tells it to the [`Gauge`], which shares what is
//! known.
//!
//! A command that overran its budget is abandoned and goes on in the runner;
//! until that has ended, nothing else is executed. Whether it ever ends cannot
//! be known, so that a pause is offered in proportion to how long it has taken
//! already, and never past the moment when the runner gives up on itself.
//!
//! [`Gauge`]: crate::gauge::Gauge

use std::time::Duration;

use fleetgate_runner::{Reply, RunnerCode, RunnerState};
use tokio::time::Instant;

use crate::failure::{Failed, Failure};
use crate::job::Success;

/// How a device's runner fares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Condition {
    /// As far as is known, it executes what it is sent.
    #[default]
    Ready,
    /// Mutations wait until it is known what became of others, which an earlier
    /// session left or whose reply was lost. Reads are carried out.
    Reconciling,
    /// It is busy with a command that it has abandoned, and executes no other.
    Draining {
        /// Since when, as far as is known.
        since: Instant,
    },
    /// It has given up on that, and needs to be recycled.
    Wedged,
}

/// How long abandoned work has been draining, and how long it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// How long it has, as far as is known.
    pub age: Duration,
    /// How long it may until the runner calls itself wedged.
    pub left: Duration,
}

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Drain {
    /// A pause after which it is worth asking again.
    pub fn pause(&self) -> Duration {
        (self.age / 2)
            .min(LONGEST_PAUSE)
            .min(self.left)
            .max(SHORTEST_PAUSE)
    }
}

/// What was heard of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It executed a command that it had taken in turn.
    Executed,
    /// It says that nothing keeps it.
    Idle,
    /// It has abandoned a command just now.
    Abandoned,
    /// It is kept by one.
    Busy,
    /// It has given up on that.
    Wedged,
}

impl Sign {
    /// What a command's end tells, if anything.
    pub(crate) fn of(outcome: &Result<Success, Failed>) -> Option<Self> {
        match outcome {
            Ok(Success { reply, .. }) => match reply {
                Reply::Status(status) => Self::of_state(&status.state),
                // There are runners that take pictures while they are stuck.
                Reply::CommandStatus(_) | Reply::Screenshot(_) => None,
                Reply::Viewport(_) | Reply::Done(_) | Reply::Snapshot(_) => Some(Self::Executed),
            },
            Err(Failed { receipt, failure }) => match failure {
                Failure::Runner(_) if receipt.kind.bypasses_queue() => None,
                Failure::Runner(error) => Self::of_verdict(&error.code),
                // Says nothing about the runner, or was heard already.
                Failure::NotSent(_)
                | Failure::Unknown { .. }
                | Failure::Reply(_)
                | Failure::Viewport(_)
                | Failure::LaneFull { .. }
                | Failure::DeadlineInQueue
                | Failure::DeadlineExceeded
                | Failure::Record(_)
                | Failure::Duplicate
                | Failure::IdConflict { .. }
                | Failure::Draining { .. }
                | Failure::Paused { .. }
                | Failure::Withdrawn(_)
                | Failure::NotUnderWay
                | Failure::Closed
                | Failure::Crashed => None,
            },
        }
    }

    /// What the state in a runner's status tells.
    pub(crate) fn of_state(state: &RunnerState) -> Option<Self> {
        match state {
            RunnerState::Idle => Some(Self::Idle),
            RunnerState::Busy => Some(Self::Busy),
            RunnerState::Wedged => Some(Self::Wedged),
            RunnerState::Other(_) => None,
        }
    }

    fn of_verdict(code: &RunnerCode) -> Option<Self> {
        match code {
            RunnerCode::CommandTimedOut => Some(Self::Abandoned),
            RunnerCode::RunnerBusy => Some(Self::Busy),
            RunnerCode::RunnerWedged => Some(Self::Wedged),
            RunnerCode::AppNotAvailable
            | RunnerCode::AppBackgrounded
            | RunnerCode::TextInputNotFocused
            | RunnerCode::UnsupportedOperation
            | RunnerCode::XctestRecordedFailure
            | RunnerCode::SnapshotFailed
            | RunnerCode::CommandFailed => Some(Self::Executed),
            // Refused for what it is, maybe before anything was tried.
            RunnerCode::InvalidRequest | RunnerCode::AppBundleIdRequired | RunnerCode::Other(_) => {
                None
            }
        }
    }
}

impl Condition {
    /// The condition after a sign.
    pub(crate) fn after(self, sign: Sign, now: Instant) -> Self {
        match (sign, self) {
            (Sign::Executed | Sign::Idle, _) => Self::Ready,
            // What was abandoned before has ended, or this would not have run.
            (Sign::Abandoned, _) => Self::Draining { since: now },
            (Sign::Busy, Self::Draining { since }) => Self::Draining { since },
            (Sign::Busy, Self::Ready | Self::Reconciling | Self::Wedged) => {
                Self::Draining { since: now }
            }
            (Sign::Wedged, _) => Self::Wedged,
        }
    }

    /// True while nothing that is sent is executed.
    pub(crate) fn is_stuck(self) -> bool {
        match self {
            Self::Ready | Self::Reconciling => false,
            Self::Draining { .. } | Self::Wedged => true,
        }
    }
}

#[cfg(test)]
mod tests;
