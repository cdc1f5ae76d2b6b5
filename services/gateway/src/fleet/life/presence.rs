//! A phone that comes and goes, and the host that it hangs on.

use std::time::Duration;

use super::{Child, Life, Phase, Plan, Reason, Seen, State, Then};

impl Life {
    pub(super) fn presence(&mut self, seen: Option<Seen>) {
        let before = std::mem::replace(&mut self.seen, seen);
        match (before, seen) {
            (None, None) => {}
            (None, Some(_)) => self.attach(),
            (Some(_), None) => self.detach(),
            (Some(before), Some(after)) => self.shift(before, after),
        }
    }

    fn attach(&mut self) {
        (self.grace_until, self.absent_at) = (None, None);
        self.go(State::Attached, Reason::Plugged, None);
        let was_absent = std::mem::take(&mut self.was_absent);
        if let Some(why) = self.quarantine.clone() {
            if !was_absent {
                self.show(Reason::Quarantined, Some(why));
                return;
            }
            self.leave_quarantine("it was plugged in again");
        }
        self.set_out();
    }

    /// Begins what is to be done for a phone that is there.
    pub(super) fn set_out(&mut self) {
        match self.plan {
            Plan::Unknown => {
                let why = "where its runner listens is not configured".to_owned();
                self.explain(Reason::RunnerUnknown, Some(why));
            }
            Plan::Static { .. } => {
                if self.policy.probes() && self.is_within_reach() {
                    self.ask();
                }
            }
            Plan::Command { .. } => self.pursue(),
        }
        self.show_condition();
    }

    fn detach(&mut self) {
        self.was_absent = true;
        // A runner that failed just before did so for want of its phone.
        let with_it = self.failed_at.take().is_some_and(|failed_at| {
            self.now.saturating_duration_since(failed_at) < self.policy.farewell
        });
        self.failures = self.failures.saturating_sub(u32::from(with_it));
        self.forget_runner();
        match self.child {
            Child::None => self.phase = Phase::Rest,
            // A process that would find no phone is not even begun.
            Child::Starting => self.stop(Then::Rest),
            // It was to end in any case, and nothing is in flight any more.
            Child::Running if matches!(self.phase, Phase::Yielding { .. }) => self.stop(Then::Rest),
            Child::Running => {
                self.phase = Phase::Rest;
                self.grace_until = Some(self.now + self.policy.grace);
            }
            Child::Stopping => self.phase = Phase::Stopping { then: Then::Rest },
        }
        self.go(State::Detached, Reason::Unplugged, None);
    }

    /// It is where it was, or elsewhere.
    fn shift(&mut self, before: Seen, after: Seen) {
        if before.stale != after.stale {
            if after.stale {
                self.note(Reason::HostLost, None);
                self.health.hush();
            } else {
                self.note(Reason::HostBack, None);
                let spread = self.policy.spread.mul_f64(self.chance.draw());
                self.resume(spread);
            }
        } else if !after.stale && before != after {
            let is_anew = before.generation == after.generation || before.host != after.host;
            if is_anew {
                self.note(Reason::Replugged, None);
                if self.quarantine.is_some() {
                    self.leave_quarantine("it was plugged in again");
                    return self.set_out();
                }
            }
            self.resume(Duration::ZERO);
        }
    }

    /// The way to the phone is another than before, or open again.
    fn resume(&mut self, within: Duration) {
        let may_ask = self.policy.probes() && self.quarantine.is_none();
        match (&self.phase, self.plan) {
            (Phase::Up, _) | (Phase::Rest, Plan::Static { .. }) if may_ask => {
                self.health.void();
                self.health.ask_at = Some(self.now + within);
            }
            (Phase::Launching { .. }, _) if self.port.is_some() => self.ask(),
            (Phase::Rest, Plan::Command { .. }) => self.pursue(),
            (
                Phase::Rest
                | Phase::Launching { .. }
                | Phase::Up
                | Phase::Yielding { .. }
                | Phase::Stopping { .. }
                | Phase::Pausing { .. },
                _,
            ) => {}
        }
    }
}
