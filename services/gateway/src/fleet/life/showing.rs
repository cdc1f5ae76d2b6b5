//! How what is under way shows: the state, and the transitions between.

use fleetgate_session::Condition;

use super::health::Standing;
use super::{Child, Life, Move, Phase, Plan, Reason, State, Then};

impl Life {
    /// Comes into a state.
    pub(super) fn go(&mut self, to: State, reason: Reason, detail: Option<String>) {
        self.out.moves.push(Move {
            from: self.state,
            to,
            reason,
            detail: detail.clone(),
        });
        (self.state, self.reason, self.detail) = (to, reason, detail);
    }

    /// Goes through something in the state that it is in, which does not
    /// explain the state.
    pub(super) fn note(&mut self, reason: Reason, detail: Option<String>) {
        self.out.moves.push(Move {
            from: self.state,
            to: self.state,
            reason,
            detail,
        });
    }

    /// The same, where it does.
    pub(super) fn explain(&mut self, reason: Reason, detail: Option<String>) {
        if (self.reason, &self.detail) != (reason, &detail) {
            self.go(self.state, reason, detail);
        }
    }

    /// Comes into the state that what is under way amounts to, if it is
    /// another.
    pub(super) fn show(&mut self, reason: Reason, detail: Option<String>) {
        let (base, shown) = (self.base(), self.shown());
        if self.state == shown {
            return;
        }
        if base == shown {
            self.go(shown, reason, detail);
            return;
        }
        if self.state != base {
            self.go(base, reason, detail);
        }
        self.go_by_condition(shown);
    }

    /// The same when it is only the session's knowledge that has changed.
    pub(super) fn show_condition(&mut self) {
        let (base, shown) = (self.base(), self.shown());
        if self.state == shown {
            return;
        }
        if shown != base {
            self.go_by_condition(shown);
            return;
        }
        let reason = match self.state {
            State::Reconciling => Reason::FateSettled,
            State::Draining
            | State::Wedged
            | State::Detached
            | State::Attached
            | State::Launching
            | State::Ready
            | State::Recycling
            | State::Quarantined => Reason::RunnerFree,
        };
        self.go(shown, reason, None);
    }

    fn go_by_condition(&mut self, shown: State) {
        let reason = match self.condition {
            Condition::Reconciling => Reason::FateLookedInto,
            Condition::Draining { .. } => Reason::RunnerBusy,
            Condition::Wedged => Reason::RunnerWedged,
            Condition::Ready => Reason::RunnerFree,
        };
        self.go(shown, reason, None);
    }

    /// What it is but for what the session knows.
    fn base(&self) -> State {
        if self.seen.is_none() {
            return State::Detached;
        }
        if self.quarantine.is_some() {
            return State::Quarantined;
        }
        match &self.phase {
            Phase::Rest => State::Attached,
            Phase::Launching { .. } => State::Launching,
            Phase::Up => State::Ready,
            Phase::Yielding { .. } | Phase::Pausing { .. } => State::Recycling,
            Phase::Stopping { then } => match then {
                Then::Launch | Then::AtOnce | Then::Retry | Then::Quarantine(_) => State::Recycling,
                Then::Rest => State::Attached,
            },
        }
    }

    fn shown(&self) -> State {
        let base = self.base();
        // Of a runner that is not there, nothing that was known counts.
        let counts = match self.plan {
            Plan::Unknown | Plan::Static { .. } => {
                base == State::Ready
                    || (base == State::Attached && self.health.standing != Standing::Lost)
            }
            Plan::Command { .. } => base == State::Ready && self.child == Child::Running,
        };
        if !counts {
            return base;
        }
        match self.condition {
            Condition::Ready => base,
            Condition::Reconciling => State::Reconciling,
            Condition::Draining { .. } => State::Draining,
            Condition::Wedged => State::Wedged,
        }
    }
}
