//! The watchdog gate in front of the runner's main thread.
//!
//! A command that overruns its budget is abandoned: its caller is answered,
//! its work goes on. While such work is still running the gate is shut, and
//! every command that reaches it is turned away without having run.
//!
//! ```text
//!            overran            oldest older than
//!   open ──────────────▶ busy ─────────────────────▶ wedged
//!    ▲     its budget     │      the threshold          │
//!    └────────────────────┴─────────────────────────────┘
//!              the last abandoned work has ended
//! ```
//!
//! Pure: it is told the time. Invariant: the gate is open exactly when no
//! abandoned work is running.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// One command's work on the main thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorkId(u64);

/// What the gate says to the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may run.
    Open,
    /// Abandoned work is draining, for so long.
    Busy(Duration),
    /// Abandoned work is stuck, for so long.
    Wedged(Duration),
}

/// The gate's memory: the work that runs, and since when it is abandoned.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    next: u64,
    running: BTreeMap<WorkId, Option<Instant>>,
}

impl Gate {
    /// Work has begun.
    pub(crate) fn begin(&mut self) -> WorkId {
        let work = WorkId(self.next);
        self.next += 1;
        self.running.insert(work, None);
        work
    }

    /// Work has overrun its budget; no effect if it has just ended.
    pub(crate) fn abandon(&mut self, work: WorkId, now: Instant) {
        if let Some(since) = self.running.get_mut(&work) {
            *since = Some(now);
        }
    }

    /// Work has ended. True if that opens the gate.
    pub(crate) fn end(&mut self, work: WorkId) -> bool {
        let was_abandoned = self.running.remove(&work).flatten().is_some();
        was_abandoned && self.running.values().flatten().next().is_none()
    }

    /// What a command that comes to the gate now is told.
    pub(crate) fn verdict(&self, now: Instant, threshold: Duration) -> Verdict {
        match self.running.values().flatten().min() {
            None => Verdict::Open,
            Some(&oldest) => match now.saturating_duration_since(oldest) {
                stuck if stuck > threshold => Verdict::Wedged(stuck),
                draining => Verdict::Busy(draining),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLD: Duration = Duration::from_secs(120);

    #[test]
    fn work_within_its_budget_does_not_shut_the_gate() {
        let mut gate = Gate::default();
        gate.begin();
        assert_eq!(gate.verdict(Instant::now(), THRESHOLD), Verdict::Open);
    }

    #[test]
    fn abandoned_work_makes_it_busy_then_wedged_and_its_end_opens_it() {
        let mut gate = Gate::default();
        let work = gate.begin();
        let start = Instant::now();
        gate.abandon(work, start);
        assert_eq!(
            gate.verdict(start + THRESHOLD, THRESHOLD),
            Verdict::Busy(THRESHOLD)
        );
        let later = THRESHOLD + Duration::from_millis(1);
        assert_eq!(
            gate.verdict(start + later, THRESHOLD),
            Verdict::Wedged(later)
        );
        assert!(gate.end(work), "that opens it");
        assert_eq!(gate.verdict(start + later, THRESHOLD), Verdict::Open);
    }

    #[test]
    fn the_oldest_abandoned_work_decides() {
        let mut gate = Gate::default();
        let (old, young) = (gate.begin(), gate.begin());
        let start = Instant::now();
        gate.abandon(young, start + THRESHOLD);
        gate.abandon(old, start);
        let now = start + THRESHOLD * 2;
        assert_eq!(gate.verdict(now, THRESHOLD), Verdict::Wedged(THRESHOLD * 2));
        assert!(!gate.end(old), "the young one keeps it shut");
        assert_eq!(gate.verdict(now, THRESHOLD), Verdict::Busy(THRESHOLD));
    }

    #[test]
    fn work_that_ended_in_time_cannot_be_abandoned_any_more() {
        let mut gate = Gate::default();
        let work = gate.begin();
        assert!(!gate.end(work), "it was open");
        gate.abandon(work, Instant::now());
        assert_eq!(gate.verdict(Instant::now(), THRESHOLD), Verdict::Open);
    }
}
