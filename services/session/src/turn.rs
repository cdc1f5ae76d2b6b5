//! One command on its way through the lane, and how long it is worth trying.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleetgate_runner::{AppPoint, Command, CommandId, Effect, Fate, Point};
use tokio::time::Instant;
use tracing::Span;

use crate::job::{Job, Receipt};
use crate::leave::Leave;
use crate::origin::Origin;
use crate::tally::Tally;

/// A command whose turn it is, or will be.
#[derive(Debug, Clone)]
pub(crate) struct Turn<P = AppPoint> {
    /// What it is known by.
    pub(crate) command_id: CommandId,
    /// What to do.
    pub(crate) command: Command<P>,
    /// Who asked.
    pub(crate) origin: Origin,
    /// By whose leave.
    pub(crate) leave: Leave,
    /// How long it is worth trying.
    pub(crate) patience: Patience,
    /// When it began to wait.
    pub(crate) since: Instant,
    /// How long it waited, once it does no more.
    pub(crate) queue_wait: Duration,
    /// The app was brought to the front for it already, by the look at the
    /// viewport that came before.
    pub(crate) fronted: bool,
    /// What has been tried.
    pub(crate) tally: Tally,
    /// The span that it is carried out in, below its first caller's.
    pub(crate) span: Span,
}

impl From<Job> for Turn<Point> {
    fn from(job: Job) -> Self {
        let kind = job.command.kind();
        let span = tracing::info_span!(
            "command",
            fleetgate.command.id = %job.command_id,
            fleetgate.command.kind = kind.as_str(),
            fleetgate.command.fate = tracing::field::Empty,
        );
        Self {
            command_id: job.command_id,
            command: job.command,
            origin: job.origin,
            leave: job.leave,
            patience: Patience::until(job.deadline),
            since: Instant::now(),
            queue_wait: Duration::ZERO,
            fronted: false,
            tally: Tally::default(),
            span,
        }
    }
}

impl<P> Turn<P> {
    /// The wait is over.
    pub(crate) fn begin(self, now: Instant) -> Self {
        Self {
            queue_wait: now.saturating_duration_since(self.since),
            ..self
        }
    }

    /// The same turn for a command in another form.
    pub(crate) fn with<Q>(self, command: Command<Q>) -> Turn<Q> {
        Turn {
            command_id: self.command_id,
            command,
            origin: self.origin,
            leave: self.leave,
            patience: self.patience,
            since: self.since,
            queue_wait: self.queue_wait,
            fronted: self.fronted,
            tally: self.tally,
            span: self.span,
        }
    }

    /// A receipt with nothing but its fate and what is known here.
    pub(crate) fn receipt(&self, fate: Fate, effect: Effect) -> Receipt {
        Receipt {
            command_id: self.command_id.clone(),
            kind: self.command.kind(),
            fate,
            effect,
            reactivated: self.fronted,
            warning: None,
            attempts: self.tally.count(),
            recovered: false,
            queue_wait: self.queue_wait,
            device_time: Duration::ZERO,
        }
    }
}

/// Until when another attempt is worth making: the latest deadline of all who
/// wait for one command. Clones share it, since a caller may join a command
/// that is already under way.
#[derive(Debug, Clone)]
pub(crate) struct Patience(Arc<Mutex<Option<Instant>>>);

impl Patience {
    /// Until `deadline`; `None` is for ever.
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        Self(Arc::new(Mutex::new(deadline)))
    }

    /// Another caller waits, until `deadline`.
    pub(crate) fn extend(&self, deadline: Option<Instant>) {
        let mut latest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *latest = latest.zip(deadline).map(|(one, other)| one.max(other));
    }

    /// True if somebody still waits at `instant`.
    pub(crate) fn lasts_past(&self, instant: Instant) -> bool {
        let latest = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        latest.is_none_or(|latest| instant < latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_lasts_until_the_latest_deadline_and_for_ever_once_somebody_has_none() {
        let now = Instant::now();
        let later = |secs| now + Duration::from_secs(secs);
        let patience = Patience::until(Some(later(1)));
        assert!(patience.lasts_past(now) && !patience.lasts_past(later(1)));
        patience.extend(Some(later(3)));
        patience.extend(Some(later(2)));
        assert!(patience.lasts_past(later(2)) && !patience.lasts_past(later(3)));
        patience.extend(None);
        assert!(patience.lasts_past(later(1_000_000)));
        patience.extend(Some(later(4)));
        assert!(
            patience.lasts_past(later(1_000_000)),
            "for ever cannot be shortened"
        );
    }
}
