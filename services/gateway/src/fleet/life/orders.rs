//! What operators, the configuration and the end of the gateway ask for.

use super::{Act, Child, Life, Phase, Plan, Reason, State, Then};

impl Life {
    pub(super) fn recycle(&mut self, force: bool, reason: String) {
        let asked = Some(reason).filter(|reason| !reason.is_empty());
        self.forget_failures();
        if self.quarantine.is_some() {
            self.leave_quarantine("an operator wants its runner recycled");
        }
        if !matches!(self.plan, Plan::Command { .. }) {
            return;
        }
        match self.phase.clone() {
            Phase::Up | Phase::Yielding { .. } if force => self.stop(Then::AtOnce),
            Phase::Launching { .. } => self.stop(Then::AtOnce),
            Phase::Up => self.yield_to(Then::AtOnce, None),
            Phase::Yielding { until, .. } => self.yield_to(Then::AtOnce, until),
            Phase::Stopping { .. } if self.seen.is_some() => {
                self.phase = Phase::Stopping { then: Then::AtOnce };
            }
            Phase::Pausing { .. } => {
                self.explain(Reason::RecycleRequested, asked);
                return self.launch_or_rest();
            }
            Phase::Rest if self.child == Child::None && self.is_within_reach() => {
                return self.launch_or_rest();
            }
            // It was up, and nobody can connect to it.
            Phase::Rest if self.child == Child::Running && self.seen.is_some() => {
                self.stop(Then::AtOnce);
            }
            Phase::Rest | Phase::Stopping { .. } => return self.pursue(),
        }
        self.show(Reason::RecycleRequested, asked);
    }

    pub(super) fn change_plan(&mut self, plan: Plan) {
        if self.plan == plan {
            return;
        }
        self.plan = plan;
        self.health.void();
        self.forget_failures();
        if self.quarantine.is_some() {
            self.leave_quarantine("its runner comes up in another way");
        }
        // What waits goes on waiting if there will be another one.
        let then = if matches!(plan, Plan::Command { .. }) {
            Then::Launch
        } else {
            Then::Rest
        };
        match self.child {
            Child::None => {
                self.forget_runner();
                self.phase = Phase::Rest;
                if self.seen.is_some() {
                    self.show(Reason::RecycleRequested, None);
                    self.set_out();
                }
            }
            Child::Running if self.phase == Phase::Up => self.yield_to(then, None),
            Child::Starting | Child::Running => self.stop(then),
            Child::Stopping => self.phase = Phase::Stopping { then },
        }
        let why = "its runner comes up in another way".to_owned();
        self.show(Reason::RecycleRequested, Some(why));
    }

    pub(super) fn close(&mut self) {
        self.is_closing = true;
        self.stop(Then::Rest);
        self.health.hush();
        self.stable_at = None;
    }

    pub(super) fn leave_quarantine(&mut self, why: &str) {
        self.quarantine = None;
        self.forget_failures();
        self.out.acts.push(Act::Quarantine(None));
        let why = Some(why.to_owned());
        if self.state == State::Quarantined {
            self.go(State::Attached, Reason::QuarantineLeft, why);
        } else {
            self.note(Reason::QuarantineLeft, why);
        }
    }
}
