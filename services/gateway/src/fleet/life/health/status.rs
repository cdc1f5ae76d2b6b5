//! What a runner says of itself: that it is another one, that it drifts, that it
//! is old.

use std::time::Duration;

use fleetgate_runner::RunnerStatus;

use super::{Drifting, LEEWAY, Tally};
use crate::fleet::life::{Drift, Life, Phase, Plan, Reason, Then};

impl Life {
    /// A runner told how it fares.
    pub(super) fn heard(&mut self, status: &RunnerStatus) {
        if self.phase != Phase::Up {
            return;
        }
        let &RunnerStatus {
            uptime,
            suppressed_issues: suppressed,
            recorded_failures: recorded,
            state: _,
        } = status;
        let before = self.health.tally;
        if let Some(before) = before.filter(|before| uptime < before.uptime) {
            let why = format!("up for {uptime:?}, after {:?}", before.uptime);
            if !self.restarted(why) {
                return;
            }
        }
        let tally = match self.health.tally {
            Some(tally) if tally.suppressed == suppressed => Tally { uptime, ..tally },
            // It has suppressed an issue since, or at some time.
            Some(_) => Tally {
                uptime,
                suppressed,
                recorded_then: recorded,
            },
            None => Tally {
                uptime,
                suppressed,
                recorded_then: if suppressed == 0 { 0 } else { recorded },
            },
        };
        let has_moved = before.is_some_and(|before| before.suppressed < suppressed);
        self.health.tally = Some(tally);
        if has_moved {
            self.end_alarm();
        }
        self.look_for_drift(recorded.saturating_sub(tally.recorded_then));
        self.look_at_age(uptime);
    }

    /// Another runner is up in the place of the one that was: nothing of that
    /// one's counts any more. One of ours that does nothing but restart has
    /// failed; says whether it has not.
    pub(in crate::fleet::life) fn restarted(&mut self, why: String) -> bool {
        self.restarts = self.restarts.saturating_add(1);
        let is_ours = matches!(self.plan, Plan::Command { .. });
        if is_ours && self.restarts > self.policy.health.quarantine_after.get() {
            let told = format!("{} restarts in a row; the last: {why}", self.restarts);
            self.failed(Reason::RunnerRestarted, Some(told));
            return false;
        }
        self.note(Reason::RunnerRestarted, Some(why));
        self.health.is_aged = false;
        self.health.forget_counts();
        self.stable_at = Some(self.now + self.policy.health.stable_after);
        true
    }

    fn look_for_drift(&mut self, recorded: u64) {
        let enough = self.policy.health.drift_failures.get();
        if recorded < u64::from(enough) || self.health.drifting == Drifting::Now {
            return;
        }
        let why = format!(
            "{recorded} failures recorded and no issue suppressed since: has Xcode changed its \
             wording?"
        );
        if self.health.drifting == Drifting::No {
            self.out.alarm = Some(Drift::Raised(why.clone()));
        }
        self.health.drifting = Drifting::Now;
        if matches!(self.plan, Plan::Command { .. }) {
            let then = self.after_failure(Some(&why));
            self.yield_to(then, None);
            self.show(Reason::RunnerDrift, Some(why));
        }
    }

    fn end_alarm(&mut self) {
        if std::mem::take(&mut self.health.drifting) != Drifting::No {
            self.out.alarm = Some(Drift::Ended);
        }
    }

    fn look_at_age(&mut self, uptime: Duration) {
        let is_ours = matches!(self.plan, Plan::Command { .. });
        if !is_ours || self.phase != Phase::Up || uptime < self.policy.health.recycle_age {
            return;
        }
        self.health.is_aged = true;
        self.was_too_old |= self.is_too_old(uptime);
        if uptime >= self.policy.overdue() {
            self.yield_to(Then::Launch, None);
            self.show(Reason::RunnerAge, Some(format!("up for {uptime:?}")));
        }
    }

    /// Whether it is as old as no runner can be that was launched when this
    /// one was.
    fn is_too_old(&self, uptime: Duration) -> bool {
        let since = self.launched_at.unwrap_or(self.now);
        let age = self.now.saturating_duration_since(since);
        uptime >= self.policy.health.recycle_age && uptime > age.saturating_add(LEEWAY)
    }

    /// Whether it is that like the one before. One may have been up already
    /// and makes way as any that is old; if the next is no younger, launching
    /// does not help.
    pub(super) fn is_too_old_again(&self, uptime: Duration) -> bool {
        let is_ours = matches!(self.plan, Plan::Command { .. });
        let counts = matches!(self.phase, Phase::Up | Phase::Launching { .. });
        is_ours && counts && self.was_too_old && self.is_too_old(uptime) && !self.health.is_aged
    }

    pub(super) fn too_old(&self, uptime: Duration) -> String {
        let since = self.launched_at.unwrap_or(self.now);
        let age = self.now.saturating_duration_since(since);
        format!("it says that it has been up for {uptime:?}, and was launched {age:.0?} ago")
    }

    /// Nothing that has happened is held against the next runner.
    pub(in crate::fleet::life) fn forget_failures(&mut self) {
        (self.failures, self.failed_at) = (0, None);
        self.restarts = 0;
        self.was_too_old = false;
    }

    /// It has done well for long enough.
    pub(in crate::fleet::life) fn settle_down(&mut self) {
        if self.phase == Phase::Up {
            self.forget_failures();
            if self.health.drifting == Drifting::Before {
                self.end_alarm();
            }
        }
    }
}
