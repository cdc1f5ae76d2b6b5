//! What became of the mutations that the runner may still be executing, or that
//! an earlier session left without a fate. Until that is known the lane is shut
//! for other mutations; reads pass.
//!
//! ```text
//!   held: at the session's start, or when a mutation ends unknown
//!        │
//!        ▼
//!      ASK each of them ◄────────── pause ──────────┐
//!        │                                          │ its time is not over
//!        ├─ under way, no usable answer ────────────┘
//!        │        └─ its time is over ───► UNKNOWN so far ──┐
//!        ├─ nothing, by the same runner ─► UNKNOWN so far ──┼─► the resolver goes on
//!        ├─ nothing, by another one ─────► UNKNOWN for good
//!        └─ ended ───────────────────────► its fate
//!                                            │
//!        each of them on record, or the ledger unavailable
//!                                            │
//!                                            ▼
//!                                      the lane opens
//! ```
//!
//! A pause is cut short when it is heard that the device has another runner.
//!
//! How long each has is said in [`hold`](crate::hold). That nothing is known of
//! an intent proves nothing: the request may have been sent. So its fate is
//! unknown, and never "not sent". A fate that is on record as unknown and stays
//! so is not put on record again.
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
use crate::hold::Held;
use crate::record::{Record, RecordError};
use crate::resolver::Resolver;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl<S, R> Resolver<S, R>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    /// Lets go of each of these as soon as it may, and takes those over that
    /// stay unknown.
    pub(crate) async fn reconcile(&mut self, mut open: Vec<Held>) {
        let (first, longest) = (FIRST_PAUSE, LONGEST_PAUSE);
        let mut backoff = Backoff::new(self.budgets.of(first), self.budgets.of(longest));
        loop {
            let runners = self.gauge.runners();
            let mut looked_into = Vec::new();
            open = self.round(open, &mut looked_into).await;
            let now = Instant::now();
            for mut held in open.extract_if(.., |held| held.until <= now) {
                let why = "the runner did not say in time what became of it";
                self.leave_unknown(&mut held.doubt, why);
                looked_into.push(held);
            }
            // After the questions, so that a slow ledger does not use up the
            // time for them. None of them lets go before all are on record.
            let mut over = Vec::new();
            for held in looked_into {
                let (doubt, hold) = held.into_parts();
                self.conclude(doubt).await;
                over.push(hold);
            }
            drop(over);
            let Some(first) = open.iter().map(|held| held.until).min() else {
                return;
            };
            let pause = tokio::time::sleep_until(first.min(Instant::now() + backoff.pause()));
            tokio::select! {
                () = pause => {}
                () = self.gauge.until_more_runners_than(runners) => {}
            }
        }
    }

    /// Asks for each of these once; those to ask for again. A runner that does
    /// not answer about one of them is not asked about the rest.
    async fn round(&mut self, open: Vec<Held>, looked_into: &mut Vec<Held>) -> Vec<Held> {
        let mut again = Vec::new();
        let mut silent = false;
        for mut held in open {
            let finding = if silent {
                Finding::Silence
            } else {
                let asked = tokio::time::timeout_at(held.until, self.examine(&held.doubt)).await;
                asked.unwrap_or(Finding::Silence)
            };
            match finding {
                Finding::Silence => {
                    silent = true;
                    again.push(held);
                }
                Finding::UnderWay => {
                    held.is_under_way();
                    again.push(held);
                }
                Finding::Unproven => {
                    let why = "the runner's journal does not say what became of it";
                    self.leave_unknown(&mut held.doubt, why);
                    looked_into.push(held);
                }
                finding @ (Finding::Settled(_) | Finding::Lost(_)) => {
                    self.find(&mut held.doubt, finding);
                    looked_into.push(held);
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
