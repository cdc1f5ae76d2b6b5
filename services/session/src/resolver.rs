//! What became of a mutation whose fate is unknown is asked for as long as it
//! can be found out, long after its caller has been told.
//!
//! ```text
//!               raised by the lane, or left by an earlier session
//!                                  │
//!                                  ▼            open: after a pause that doubles
//!                               WAITING ◄───────────────────────────────┐
//!                                  │ due                                │
//!                                  ▼                                    │
//!                               ASKED: the journal, then the uptime ────┤
//!                                  │                                    │
//!                  settled or lost │                                    │
//!                                  ▼                                    │
//!   gone ◄── on record ───────── FOUND ── the ledger does not take it ──┘
//! ```
//!
//! It is a task beside the lane, which never waits for it. It asks `status`
//! questions only, one at a time and with a pause between two; it remembers as
//! many mutations as the runner's journal has entries, and none for longer than
//! a runner's session lasts ([`Doubt::judge`]). Where the device has another
//! runner than before, nobody waits for a pause to end: what that one does not
//! know is lost. It ends with the session: what is still open then is on record as
//! unknown, for the next session to take up.
//!
//! Of a command that types, the runner's words are not kept: they may quote the
//! text, and to cut that out would take keeping it.

use std::collections::VecDeque;
use std::time::Duration;

use fleetgate_runner::{Budgets, Envelope, SendError};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tower::Service;

use crate::dispatch::Dispatch;
use crate::docket::Ids;
use crate::doubt::{Doubt, Evidence, Finding, JOURNAL_ENTRIES, Schedule};
use crate::gauge::Gauge;
use crate::hold::{Held, Raised};
use crate::inquiry::Inquiry;
use crate::record::{Record, RecordError, RecordErrorKind, Resolution};
use crate::recorder::Recorder;
use crate::settle::resettle;
use crate::testimony::Testimony;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Between two questions, whatever they are about.
const SHORTEST_GAP: Duration = Duration::from_millis(500);
/// By how much an uptime may fall short.
const SLACK: Duration = Duration::from_secs(1);

/// Looks into unknown fates.
#[derive(Debug)]
pub(crate) struct Resolver<S, R> {
    inquiry: Inquiry<S>,
    recorder: Recorder<R>,
    pub(crate) budgets: Budgets,
    pub(crate) gauge: Gauge,
    ids: Ids,
    /// How many runners had been seen when all were last due at once.
    runners: u64,
    /// Oldest first.
    open: VecDeque<(Schedule, Doubt)>,
    /// When the next question may be asked.
    not_before: Instant,
}

impl<S, R> Resolver<S, R>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    /// With nothing to look into.
    pub(crate) fn new(
        inquiry: Inquiry<S>,
        recorder: Recorder<R>,
        budgets: Budgets,
        gauge: Gauge,
        ids: Ids,
    ) -> Self {
        Self {
            inquiry,
            recorder,
            budgets,
            ids,
            runners: gauge.runners(),
            gauge,
            open: VecDeque::new(),
            not_before: Instant::now(),
        }
    }

    /// Works until a mutation keeps the lane shut, which is returned, or the
    /// lane is gone. May be dropped at any time: what it does is a question or an
    /// entry that a later session repeats.
    pub(crate) async fn run(&mut self, doubts: &mut mpsc::Receiver<Raised>) -> Option<Held> {
        loop {
            tokio::select! {
                biased;
                raised = doubts.recv() => match raised? {
                    Raised::Held(held) => return Some(held),
                    // Boxed, as what follows: this waits for as long as the device
                    // lives, and seldom for anything.
                    Raised::Over(doubt) => Box::pin(self.take(doubt)).await,
                },
                () = self.gauge.until_more_runners_than(self.runners) => self.hasten(),
                () = until(self.next_due()) => Box::pin(self.look()).await,
            }
        }
    }

    /// The device has a runner that has not been asked about any of these.
    fn hasten(&mut self) {
        self.runners = self.gauge.runners();
        let schedule = self.schedule();
        for (due, _) in &mut self.open {
            due.clone_from(&schedule);
        }
    }

    fn schedule(&self) -> Schedule {
        Schedule::new(
            Instant::now(),
            self.budgets.of(FIRST_PAUSE),
            self.budgets.of(LONGEST_PAUSE),
        )
    }

    /// Another mutation to look into. Where there are too many, the runner's
    /// journal has long lost the oldest.
    pub(crate) async fn take(&mut self, doubt: Doubt) {
        self.open.push_back((self.schedule(), doubt));
        while self.open.len() as u64 > JOURNAL_ENTRIES {
            if let Some((_, mut oldest)) = self.open.pop_front() {
                // What was found out about it stays what was found out.
                if oldest.found.is_none() {
                    let lost = Finding::Lost("too many others are looked into since");
                    self.find(&mut oldest, lost);
                }
                self.enter(&mut oldest).await;
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let due = self.open.iter().map(|(schedule, _)| schedule.due).min()?;
        Some(due.max(self.not_before))
    }

    /// Looks into whichever is due first.
    async fn look(&mut self) {
        let first = self
            .open
            .iter()
            .enumerate()
            .min_by_key(|(_, (schedule, _))| schedule.due);
        let Some(at) = first.map(|(at, _)| at) else {
            return;
        };
        let Some((mut schedule, mut doubt)) = self.open.remove(at) else {
            return;
        };
        if doubt.found.is_none() {
            let finding = self.examine(&doubt).await;
            self.find(&mut doubt, finding);
        }
        let done = self.enter(&mut doubt).await;
        let now = Instant::now();
        self.not_before = now + self.budgets.of(SHORTEST_GAP);
        if !done && doubt.is_worth_keeping(now) {
            schedule.postpone(now);
            self.open.insert(at.min(self.open.len()), (schedule, doubt));
        }
    }

    /// Asks the runner about a mutation: for its journal's entry, and if that
    /// says nothing, whether it is still the same runner.
    pub(crate) async fn examine(&mut self, doubt: &Doubt) -> Finding {
        let asked = Instant::now();
        let entry = self.inquiry.entry(&doubt.receipt.command_id).await;
        let testimony = entry
            .ok()
            .map(|entry| Testimony::of(doubt.kind(), entry, doubt.declined));
        let uptime = match &testimony {
            Some(Testimony::Nothing(_)) => self.inquiry.status().await.map(|status| {
                self.gauge.hear_status(&status);
                status.uptime
            }),
            Some(Testimony::Ended(_) | Testimony::UnderWay(_)) | None => None,
        };
        let evidence = Evidence {
            asked,
            testimony,
            uptime: uptime.map(|uptime| self.budgets.of(uptime)),
            ids: self.ids.count(),
        };
        doubt.judge(evidence, self.budgets.of(SLACK))
    }

    /// Makes a finding into an entry for the record.
    pub(crate) fn find(&self, doubt: &mut Doubt, finding: Finding) {
        let (outcome, why) = match finding {
            Finding::UnderWay | Finding::Unproven | Finding::Silence => return,
            Finding::Settled(answer) => (
                resettle(&doubt.receipt, answer),
                "the runner's journal has it",
            ),
            Finding::Lost(why) => (Err(doubt.unresolved()), why),
        };
        let for_good = true;
        doubt.found = Some(Box::new(self.recorder.resolution(&outcome, why, for_good)));
    }

    /// Makes what is known into an entry for the record: an unknown fate, into
    /// which is looked further. Nothing where the record says that already.
    pub(crate) fn leave_unknown(&self, doubt: &mut Doubt, why: &str) {
        if doubt.has_fate || doubt.found.is_some() {
            return;
        }
        let (outcome, for_good) = (Err(doubt.unresolved()), false);
        doubt.found = Some(Box::new(self.recorder.resolution(&outcome, why, for_good)));
    }

    /// True if something that was found is not on record.
    pub(crate) fn is_behind(&self) -> bool {
        self.open.iter().any(|(_, doubt)| doubt.found.is_some())
    }

    /// Puts what was found on record, if anything was. True once there is
    /// nothing left to do about this mutation.
    pub(crate) async fn enter(&mut self, doubt: &mut Doubt) -> bool {
        let Some(found) = &doubt.found else {
            return false;
        };
        let for_good = found.settled_for_good;
        let (id, fate) = (&found.receipt.command_id, found.receipt.fate.as_str());
        match self.recorder.resolve(Resolution::clone(found)).await {
            Ok(()) => {
                tracing::info!(fleetgate.command.id = %id, fate, for_good, why = found.why, "resolved");
                doubt.found = None;
                doubt.has_fate = true;
                for_good
            }
            Err(error) => match error.kind {
                // Somebody else has settled it.
                RecordErrorKind::Duplicate => true,
                RecordErrorKind::Unavailable => {
                    tracing::warn!(%error, fleetgate.command.id = %id, "a fate is not on record");
                    false
                }
            },
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
