//! A read whose transport failed is sent again: three attempts in all, after
//! 300 ms and 600 ms, each with a window of its own, and none once nobody waits
//! any more.
//!
//! Only failures that another attempt may get past count
//! ([`SendError::is_transient`]). A mutation passes through exactly once: its
//! request is never cloned here, so there is nothing to send a second time.

use std::time::Duration;

use fleetgate_runner::{Budgets, Envelope, SendError};
use tokio::time::{Instant, Sleep};
use tower::retry::Policy;

use crate::backoff::Backoff;
use crate::dispatch::Dispatch;

const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(300);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The policy for `tower::retry::Retry`; a clone is one command's.
#[derive(Debug, Clone)]
pub(crate) struct Resend {
    left: u32,
    backoff: Backoff,
}

impl Resend {
    /// Pauses under this clock.
    pub(crate) fn new(budgets: Budgets) -> Self {
        let backoff = Backoff::new(budgets.of(FIRST_PAUSE), budgets.of(LONGEST_PAUSE));
        Self {
            left: ATTEMPTS - 1,
            backoff,
        }
    }
}

impl Policy<Dispatch, Envelope, SendError> for Resend {
    type Future = Sleep;

    fn retry(
        &mut self,
        dispatch: &mut Dispatch,
        result: &mut Result<Envelope, SendError>,
    ) -> Option<Sleep> {
        let transient = result.as_ref().is_err_and(SendError::is_transient);
        if !transient || self.left == 0 {
            return None;
        }
        let at = Instant::now() + self.backoff.pause();
        if !dispatch.patience.lasts_past(at) {
            return None;
        }
        self.left -= 1;
        Some(tokio::time::sleep_until(at))
    }

    fn clone_request(&mut self, dispatch: &Dispatch) -> Option<Dispatch> {
        (!dispatch.request.command.is_mutation()).then(|| dispatch.clone())
    }
}

#[cfg(test)]
mod tests;
