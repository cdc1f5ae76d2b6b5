//! One mutation whose fate is unknown, and what may still be found out about it.
//! Pure: the resolver asks, and is told here what the answers are worth.
//!
//! ```text
//!   the journal says          the runner's uptime, others since     finding
//!   completed, failed         -                                     settled
//!   accepted, started         -                                     under way
//!   nothing (notAccepted, …)  up for less than since the send       lost
//!                             64 other ids sent since               lost
//!                             otherwise                             unproven
//!   (no answer)               -                                     silence
//!   anything but an end       24 hours since the send               lost
//! ```
//!
//! *Lost* is an unknown fate for good. It claims nothing about the command, so
//! that it is no harm where it comes too early, as it may where the phone's
//! clock stood still for a while, or a wall clock was set.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fleetgate_runner::{CommandKind, Effect, Fate, SendError};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::dispatch::Answer;
use crate::failure::{Failed, Failure};
use crate::job::Receipt;
use crate::record::{Resolution, Unsettled};
use crate::testimony::Testimony;

/// How many ids the runner's journal holds.
pub(crate) const JOURNAL_ENTRIES: u64 = 64;

/// How long a runner's session lasts at most.
const SESSION: Duration = Duration::from_hours(24);

/// A mutation of unknown fate.
#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    /// What is known of it.
    pub(crate) receipt: Receipt,
    /// Why no more is.
    pub(crate) failure: Failure,
    /// When it was sent.
    pub(crate) sent: Moment,
    /// The runner may have declined an attempt.
    pub(crate) declined: bool,
    /// How many ids the runner had been sent by this session before.
    pub(crate) ids_before: u64,
    /// Its fate is on record, as unknown.
    pub(crate) has_fate: bool,
    /// What has been found out and is not on record yet.
    pub(crate) found: Option<Box<Resolution>>,
}

/// A moment that may lie before the monotonic clock's begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    later: Instant,
    by: Duration,
}

impl Moment {
    /// By the wall clock. What seems to lie ahead is now.
    fn of(time: SystemTime) -> Self {
        Self {
            later: Instant::now(),
            by: time.elapsed().unwrap_or_default(),
        }
    }

    /// The time since, at `now`.
    pub(crate) fn until(self, now: Instant) -> Duration {
        now.saturating_duration_since(self.later)
            .saturating_add(self.by)
    }
}

impl From<Instant> for Moment {
    fn from(instant: Instant) -> Self {
        Self {
            later: instant,
            by: Duration::ZERO,
        }
    }
}

/// The gateway that had sent it was gone before its fate was on record.
#[derive(Debug, thiserror::Error)]
#[error("the gateway ended before the command's fate was on record")]
struct LeftOpen;

/// The gateway that had sent it put its fate on record as unknown.
#[derive(Debug, thiserror::Error)]
#[error("an earlier gateway did not learn the command's fate")]
struct LeftUnknown;

impl From<Unsettled> for Doubt {
    fn from(unsettled: Unsettled) -> Self {
        let Unsettled {
            command_id,
            kind,
            sent_at,
            receipt,
        } = unsettled;
        let has_fate = receipt.is_some();
        let receipt = receipt.unwrap_or(Receipt {
            command_id,
            kind,
            fate: Fate::Unknown,
            effect: Effect::Unknown,
            reactivated: false,
            warning: None,
            attempts: 1,
            recovered: false,
            queue_wait: Duration::ZERO,
            device_time: Duration::ZERO,
        });
        let cause = SendError::Broken(if has_fate {
            Arc::new(LeftUnknown)
        } else {
            Arc::new(LeftOpen)
        });
        Self {
            receipt,
            failure: Failure::Unknown {
                cause,
                journal: None,
            },
            sent: Moment::of(sent_at),
            // Nobody knows how often it was tried.
            declined: true,
            ids_before: 0,
            has_fate,
            found: None,
        }
    }
}

/// What the runner was heard to say about a doubt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Evidence {
    /// When it was asked.
    pub(crate) asked: Instant,
    /// What its journal says; `None` without a usable answer.
    pub(crate) testimony: Option<Testimony>,
    /// How long it has been up by the gateway's clock, if it was asked and
    /// answered.
    pub(crate) uptime: Option<Duration>,
    /// How many ids it has been sent by this session.
    pub(crate) ids: u64,
}

/// What the evidence comes to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Finding {
    /// The command has ended so.
    Settled(Answer),
    /// Nothing more will be found out, for this reason.
    Lost(&'static str),
    /// It has not ended.
    UnderWay,
    /// The runner does not say, and may later.
    Unproven,
    /// The runner does not answer.
    Silence,
}

impl Doubt {
    /// What kind of command.
    pub(crate) fn kind(&self) -> CommandKind {
        self.receipt.kind
    }

    /// False long after anything could be found out, whether the ledger has
    /// taken it or not: it offers what is open to the next session.
    pub(crate) fn is_worth_keeping(&self, now: Instant) -> bool {
        self.sent.until(now) < SESSION.saturating_mul(2)
    }

    /// The fate as it stands, for the record.
    pub(crate) fn unresolved(&self) -> Failed {
        Failed {
            receipt: self.receipt.clone(),
            failure: self.failure.clone(),
        }
    }

    /// Judges the evidence. An uptime may fall short by `slack` before it
    /// counts as that of another runner.
    pub(crate) fn judge(&self, evidence: Evidence, slack: Duration) -> Finding {
        let Evidence {
            asked,
            testimony,
            uptime,
            ids,
        } = evidence;
        let age = self.sent.until(asked);
        let restarted = uptime.is_some_and(|uptime| uptime.saturating_add(slack) < age);
        let others = ids.saturating_sub(self.ids_before);
        match testimony {
            Some(Testimony::Ended(answer)) => Finding::Settled(answer),
            Some(Testimony::Nothing(_)) if restarted => {
                Finding::Lost("the runner has restarted since, and its journal with it")
            }
            Some(Testimony::Nothing(_)) if others >= JOURNAL_ENTRIES => Finding::Lost(
                "the runner's journal does not have it, and would not any more if it ever had",
            ),
            Some(Testimony::Nothing(_) | Testimony::UnderWay(_)) | None if age >= SESSION => {
                Finding::Lost("the runner's session of that time has ended")
            }
            Some(Testimony::Nothing(_)) => Finding::Unproven,
            Some(Testimony::UnderWay(_)) => Finding::UnderWay,
            None => Finding::Silence,
        }
    }
}

/// When a doubt is looked into next.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    /// When.
    pub(crate) due: Instant,
    backoff: Backoff,
}

impl Schedule {
    /// At once, and then after pauses from `first` to `longest`.
    pub(crate) fn new(now: Instant, first: Duration, longest: Duration) -> Self {
        Self {
            due: now,
            backoff: Backoff::new(first, longest),
        }
    }

    /// After the next pause.
    pub(crate) fn postpone(&mut self, now: Instant) {
        self.due = now + self.backoff.pause();
    }
}

#[cfg(test)]
mod tests;
