//! At a session's start: what became of the mutations that an earlier one left
//! without a fate. Until that is known the lane is shut for other mutations;
//! reads pass.
//!
//! ```text
//!   left without a fate
//!        │
//!        ▼
//!      ASK each of them ◄────────── pause ──────────┐
//!        │                                          │ patience left
//!        ├─ under way, no usable answer ────────────┘
//!        │        └─ patience ended ──► UNKNOWN so far ──┐
//!        ├─ nothing, by the same runner ► UNKNOWN so far ┼─► the resolver goes on
//!        ├─ nothing, by another one ────► UNKNOWN for good
//!        └─ ended ──────────────────────► its fate
//!                                            │
//!        each of them on record, or the ledger unavailable
//!                                            │
//!                                            ▼
//!                                      the lane opens
//! ```
//!
//! That nothing is known of an intent proves nothing: the request may have been
//! sent. So its fate is unknown, and never "not sent".
//!
//! Invariant: the lane opens, however this ends. What the ledger does not take
//! is the resolver's to try again.

use std::time::Duration;

use fleetgate_runner::{Envelope, SendError};
use tokio::time::Instant;
use tower::Service;

use crate::backoff::Backoff;
use crate::dispatch::Dispatch;
use crate::doubt::{Doubt, Finding};
use crate::record::{Record, RecordError};
use crate::resolver::Resolver;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl<S, R> Resolver<S, R>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    /// Gives each of these a fate, and takes those over that stay unknown.
    pub(crate) async fn reconcile(&mut self, left_open: Vec<Doubt>, patience: Duration) {
        let until = Instant::now() + patience;
        let (first, longest) = (FIRST_PAUSE, LONGEST_PAUSE);
        let mut backoff = Backoff::new(self.budgets.of(first), self.budgets.of(longest));
        let (mut open, mut looked_into) = (left_open, Vec::new());
        loop {
            open = self.round(open, &mut looked_into, until).await;
            let now = Instant::now();
            if open.is_empty() || now >= until {
                break;
            }
            tokio::time::sleep_until(until.min(now + backoff.pause())).await;
        }
        for mut doubt in open {
            let why = "the runner did not say in time what became of it";
            self.leave_unknown(&mut doubt, why);
            looked_into.push(doubt);
        }
        // Last, so that a slow ledger does not use up the time for questions.
        for doubt in looked_into {
            self.conclude(doubt).await;
        }
    }

    /// Asks for each of these once; those to ask for again. A runner that does
    /// not answer about one of them is not asked about the rest.
    async fn round(
        &mut self,
        open: Vec<Doubt>,
        looked_into: &mut Vec<Doubt>,
        until: Instant,
    ) -> Vec<Doubt> {
        let mut again = Vec::new();
        let mut silent = false;
        for mut doubt in open {
            let finding = if silent {
                Finding::Silence
            } else {
                let asked = tokio::time::timeout_at(until, self.examine(&doubt)).await;
                asked.unwrap_or(Finding::Silence)
            };
            match finding {
                Finding::Silence => {
                    silent = true;
                    again.push(doubt);
                }
                Finding::UnderWay => again.push(doubt),
                Finding::Unproven => {
                    let why = "the runner's journal does not say what became of it";
                    self.leave_unknown(&mut doubt, why);
                    looked_into.push(doubt);
                }
                finding @ (Finding::Settled(_) | Finding::Lost(_)) => {
                    self.find(&mut doubt, finding);
                    looked_into.push(doubt);
                }
            }
        }
        again
    }

    /// Puts what was found on record and keeps what is left to do for later.
    async fn conclude(&mut self, mut doubt: Doubt) {
        // Others that could not be put on record wait already: the ledger is
        // not waited for once more before the lane opens.
        let done = !self.is_behind() && self.enter(&mut doubt).await;
        if !done {
            self.take(doubt).await;
        }
    }
}
