//! How much of what a phone goes through is recorded one by one.
//!
//! A cable or a runner that flaps makes hundreds of transitions a second. The
//! ledger keeps them next to the fates of commands, and where its size is
//! bounded they would push those out. So each phone has a bucket of entries:
//! what finds it empty is left out, and summed up in one entry as soon as there
//! is room for one.
//!
//! ```text
//! told      A→B  B→A  A→B  B→A  A→C  C→A            A→B
//! recorded  A→B  B→A  └─── A→A, left out: 4 ───┘    A→B
//! ```
//!
//! Invariants: what is recorded of a phone leads from state to state as what was
//! told does; and in any time T there are at most `BURST + T / REFILL` entries of
//! a phone, but for the one that ends the history.

use std::collections::HashMap;

use fleetgate_ledger::NewTransition;
use fleetgate_runner::Udid;
use tokio::time::{Duration, Instant};

/// So many entries may follow each other at any pace. A launch makes about four,
/// and a recycle as many: this is an hour of a phone in trouble that is retried
/// with backoff, or a person who plugs one in and out as fast as they can.
const BURST: u32 = 60;

/// One more in each of these. A phone that flaps all day makes some 8640 entries
/// (a few MB), and its history is never behind by more than this.
const REFILL: Duration = Duration::from_secs(10);

/// Why a summary was made.
const LEFT_OUT: &str = "TRANSITIONS_LEFT_OUT";

/// The limits of all phones.
#[derive(Debug, Default)]
pub(super) struct Limits {
    phones: HashMap<Udid, Limit>,
}

impl Limits {
    /// Takes what a phone went through, and adds what is to be recorded of it by
    /// now.
    pub(super) fn offer(
        &mut self,
        told: NewTransition,
        now: Instant,
        out: &mut Vec<NewTransition>,
    ) {
        let limit = self.phones.entry(told.device.clone()).or_default();
        out.extend(limit.release(now));
        out.extend(limit.offer(told, now));
    }

    /// When [`Limits::release`] has something.
    pub(super) fn due(&self) -> Option<Instant> {
        self.phones.values().filter_map(Limit::due).min()
    }

    /// Adds the summaries that there is room for by now.
    pub(super) fn release(&mut self, now: Instant, out: &mut Vec<NewTransition>) {
        for limit in self.phones.values_mut() {
            out.extend(limit.release(now));
        }
        // A phone whose bucket is full is as one that was never heard of.
        self.phones.retain(|_, limit| !limit.is_fresh(now));
    }

    /// Adds all summaries, room or not: nothing follows.
    pub(super) fn finish(&mut self, now: Instant, out: &mut Vec<NewTransition>) {
        for (_, limit) in self.phones.drain() {
            out.extend(limit.left_out.map(|left_out| left_out.summary(now)));
        }
    }
}

/// One phone's.
#[derive(Debug, Default)]
struct Limit {
    /// When its bucket is full again; absent if it is.
    full_at: Option<Instant>,
    left_out: Option<LeftOut>,
}

impl Limit {
    fn offer(&mut self, told: NewTransition, now: Instant) -> Option<NewTransition> {
        if let Some(left_out) = &mut self.left_out {
            left_out.add(told);
            return None;
        }
        if self.take(now) {
            return Some(told);
        }
        self.left_out = Some(LeftOut::new(told, now));
        None
    }

    fn release(&mut self, now: Instant) -> Option<NewTransition> {
        if self.left_out.is_none() || !self.take(now) {
            return None;
        }
        self.left_out.take().map(|left_out| left_out.summary(now))
    }

    /// Takes one entry out of the bucket, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let full_at = self.full_at.map_or(now, |full_at| full_at.max(now));
        let room = full_at.duration_since(now) <= REFILL * (BURST - 1);
        if room {
            self.full_at = Some(full_at + REFILL);
        }
        room
    }

    fn due(&self) -> Option<Instant> {
        self.left_out.as_ref()?;
        // Something was left out, so that the bucket has been empty: this is
        // later than the first entry that was taken out of it.
        self.full_at?.checked_sub(REFILL * (BURST - 1))
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.left_out.is_none() && self.full_at.is_none_or(|full_at| full_at <= now)
    }
}

/// What is not recorded one by one.
#[derive(Debug)]
struct LeftOut {
    since: Instant,
    count: u64,
    /// From the first one's `from` to the last one's `to`; a single one as it is.
    whole: NewTransition,
}

impl LeftOut {
    fn new(first: NewTransition, now: Instant) -> Self {
        Self {
            since: now,
            count: 1,
            whole: first,
        }
    }

    fn add(&mut self, next: NewTransition) {
        self.count = self.count.saturating_add(1);
        self.whole.to = next.to;
    }

    fn summary(self, now: Instant) -> NewTransition {
        if self.count == 1 {
            return self.whole;
        }
        let seconds = now.duration_since(self.since).as_secs_f64();
        NewTransition {
            reason: LEFT_OUT.to_owned(),
            detail: Some(format!(
                "{} transitions in the {seconds:.1} s before this: too many to record each",
                self.count
            )),
            ..self.whole
        }
    }
}

#[cfg(test)]
mod tests;
