//! A command that the runner was too busy to run is sent again, under the same
//! id.
//!
//! `RUNNER_BUSY`, checked at the head of the runner's own queue, proves that the
//! command did not run; no other verdict and no failure of the transport is
//! taken for leave to send a mutation again. The pauses double from 250 ms to
//! 4 s, each cut by up to half at random, so that phones which got busy
//! together do not come back together. There is no attempt once nobody waits
//! any more, nor past a ceiling counted from the first such verdict: the lane
//! is held meanwhile.
//!
//! The answer after giving up is the runner's last one. Each decline goes into
//! the command's tally, which is how the recovery below knows that the journal
//! already holds an entry of that id.

use std::time::Duration;

use fleetgate_runner::Budgets;
use rand::RngExt;
use tokio::time::{Instant, Sleep};
use tower::retry::Policy;

use crate::backoff::Backoff;
use crate::dispatch::{Answer, Dispatch, Unanswered};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// The policy for `tower::retry::Retry`; a clone is one command's.
#[derive(Debug, Clone)]
pub(crate) struct BusyRetry {
    backoff: Backoff,
    ceiling: Duration,
    /// When to give up, from the first decline on.
    until: Option<Instant>,
}

impl BusyRetry {
    /// Pauses under this clock, for `ceiling` at most.
    pub(crate) fn new(budgets: Budgets, ceiling: Duration) -> Self {
        let backoff = Backoff::new(budgets.of(FIRST_PAUSE), budgets.of(LONGEST_PAUSE));
        Self {
            backoff,
            ceiling,
            until: None,
        }
    }
}

impl Policy<Dispatch, Answer, Unanswered> for BusyRetry {
    type Future = Sleep;

    fn retry(
        &mut self,
        dispatch: &mut Dispatch,
        result: &mut Result<Answer, Unanswered>,
    ) -> Option<Sleep> {
        if !result.as_ref().is_ok_and(Answer::is_retryable) {
            return None;
        }
        dispatch.tally.decline();
        let now = Instant::now();
        let until = *self.until.get_or_insert(now + self.ceiling);
        let at = now
            + self
                .backoff
                .pause()
                .mul_f64(rand::rng().random_range(0.5..=1.0));
        (at < until && dispatch.patience.lasts_past(at)).then(|| tokio::time::sleep_until(at))
    }

    fn clone_request(&mut self, dispatch: &Dispatch) -> Option<Dispatch> {
        Some(dispatch.clone())
    }
}

#[cfg(test)]
mod tests;
