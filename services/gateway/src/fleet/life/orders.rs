//! What operators, the configuration and the end of the gateway ask for.

use super::{Act, Child, Life, Phase, Plan, Reason, State, Then};

impl Life {
    pub(super) fn recycle(&mut self, force: bool, reason: String) {
        let asked = Some(reason).filter(|reason| !reason.is_empty());
        self.failures = 0;
        if self.quarantine.is_some() {
            self.leave_quarantine("an operator wants its runner recycled");
        }
        if !matches!(self.plan, Plan::Command { .. }) {
            return;
        }
        match self.phase.clone() {
            Phase::Up | Phase::Yielding { .. } if force => self.stop(Then::Launch),
            Phase::Launching { .. } => self.stop(Then::Launch),
            Phase::Up => self.yield_to(Then::Launch, None),
            Phase::Yielding { until, .. } => self.yield_to(Then::Launch, until),
            Phase::Stopping { .. } if self.seen.is_some() => {
                self.phase = Phase::Stopping { then: Then::Launch };
            }
            Phase::Pausing { .. } => {
                self.explain(Reason::RecycleRequested, asked);
                return self.launch_or_rest();
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
        self.failures = 0;
        if self.quarantine.is_some() {
            self.leave_quarantine("its runner comes up in another way");
        }
        match self.child {
            Child::None => {
                self.forget_runner();
                self.phase = Phase::Rest;
                if self.seen.is_some() {
                    self.show(Reason::RecycleRequested, None);
                    self.set_out();
                }
            }
            Child::Running if self.phase == Phase::Up => self.yield_to(Then::Rest, None),
            Child::Starting | Child::Running => self.stop(Then::Rest),
            Child::Stopping => self.phase = Phase::Stopping { then: Then::Rest },
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
        self.failures = 0;
        self.out.acts.push(Act::Quarantine(None));
        let why = Some(why.to_owned());
        if self.state == State::Quarantined {
            self.go(State::Attached, Reason::QuarantineLeft, why);
        } else {
            self.note(Reason::QuarantineLeft, why);
        }
    }
}
