//! The life of one phone: what it is, and what is to be done about it. Pure: it
//! is told what happened and when, and says what is to be done.
//!
//! ```text
//!                 attached                 its process listens, and answers
//!   DETACHED ───────────────► ATTACHED        ┌──────────────────────────┐
//!      ▲  from anywhere          │            │                          ▼
//!      └── unplugged             │ launch ► LAUNCHING                  READY ◄─┐
//!                                │            ▲   │ fails                │     │
//!        static: it answers ─────┼────────────┼───┼─────────────────────►│     │
//!        static: it does not ◄───┼────────────┼───┼──────────────────────┤     │
//!                                │            │   ▼       dead, wedged,  │     │
//!                                │          RECYCLING ◄── aged, drifting,┘     │
//!                                │    pause   │   ▲       or asked for         │
//!                                │   and stop │   │ recycle                    │
//!                                │            ▼   │                            │
//!                                └──────── QUARANTINED: too often in a row     │
//!                                                                              │
//!   over READY, by what the session knows: RECONCILING, DRAINING, WEDGED ◄─────┘
//! ```
//!
//! A runner that somebody else sees to ("static") is never launched: it is
//! ATTACHED until it answers, and WEDGED for as long as it is. While a host is
//! not being listened to, its phones stay what they were, stale, and nothing is
//! launched for them or held against them.
//!
//! Commands wait ([`Life::holds_lane`]) only while something is on its way that
//! ends the wait: a process that starts or ends, a question, or a timer.
//!
//! Invariants: no process is started before the one before has been stopped,
//! none for a phone that is not there, is stale or in quarantine; none begins
//! sooner than `backoff_initial` after the one before unless an operator wants
//! it to; and each transition begins in the state in which the one before has
//! ended.

use std::sync::Arc;

use fleetgate_session::Condition;
use tokio::time::Instant;

mod health;
mod launching;
mod orders;
mod phase;
mod policy;
mod presence;
#[cfg(test)]
mod properties;
mod showing;
mod terms;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use policy::Policy;
pub(crate) use terms::{Act, Drift, Heard, Idleness, Input, Move, Out, Plan, Process, Seen};
pub(crate) use words::{Flaw, Reason, State};

use health::Health;
use phase::{Child, Phase, Then};
use policy::Chance;

/// One phone.
#[derive(Debug, Clone)]
pub(crate) struct Life {
    policy: Arc<Policy>,
    plan: Plan,
    chance: Chance,
    now: Instant,
    out: Out,

    state: State,
    reason: Reason,
    detail: Option<String>,

    seen: Option<Seen>,
    /// It was seen to be not there, so that it is plugged in anew next time.
    was_absent: bool,
    quarantine: Option<String>,
    condition: Condition,
    is_closing: bool,

    phase: Phase,
    child: Child,
    /// Where a launched runner listens.
    port: Option<u16>,
    launched_at: Option<Instant>,
    /// How often in a row it has failed.
    failures: u32,
    /// When it did last.
    failed_at: Option<Instant>,
    /// How often in a row one was up in the place of another without a launch.
    restarts: u32,
    /// One has been ended for an age that it cannot have come to here.
    was_too_old: bool,

    health: Health,

    /// When a process without its phone is given up.
    grace_until: Option<Instant>,
    /// When earlier failures are forgotten.
    stable_at: Option<Instant>,
    /// When a phone that was not there from the beginning counts as absent.
    absent_at: Option<Instant>,
}

impl Life {
    /// A phone of which nothing is known but whether it is in quarantine.
    pub(crate) fn new(
        policy: Arc<Policy>,
        plan: Plan,
        quarantine: Option<String>,
        seed: u64,
        now: Instant,
    ) -> Self {
        let absent_at = quarantine.is_some().then(|| now + policy.grace);
        Self {
            policy,
            plan,
            chance: Chance::new(seed),
            now,
            out: Out::default(),
            state: State::Detached,
            reason: Reason::Unplugged,
            detail: None,
            seen: None,
            was_absent: false,
            quarantine,
            condition: Condition::Ready,
            is_closing: false,
            phase: Phase::Rest,
            child: Child::None,
            port: None,
            launched_at: None,
            failures: 0,
            failed_at: None,
            restarts: 0,
            was_too_old: false,
            health: Health::default(),
            grace_until: None,
            stable_at: None,
            absent_at,
        }
    }

    /// Takes in what happened.
    pub(crate) fn step(&mut self, input: Input, now: Instant) -> Out {
        self.now = now;
        match input {
            Input::Presence(seen) => self.presence(seen),
            Input::Process(process) => self.process(process),
            Input::Answer { epoch, heard } => self.answer(epoch, heard),
            Input::Condition(condition) => self.condition(condition),
            Input::Unreachable => self.unreachable(),
            Input::Idle => self.idle(),
            Input::Recycle { force, reason } => self.recycle(force, reason),
            Input::Plan(plan) => self.change_plan(plan),
            Input::Close => self.close(),
            Input::Tick => self.tick(),
        }
        std::mem::take(&mut self.out)
    }

    /// What it is, why, and more about that.
    pub(crate) fn state(&self) -> (State, Reason, Option<&str>) {
        (self.state, self.reason, self.detail.as_deref())
    }

    /// Where its runner listens, if one may be up.
    pub(crate) fn port(&self) -> Option<u16> {
        match self.plan {
            Plan::Unknown => None,
            Plan::Static { port } => Some(port),
            Plan::Command { .. } => self.port,
        }
    }

    /// Whether commands wait.
    pub(crate) fn holds_lane(&self) -> bool {
        if self.is_closing || !self.is_within_reach() {
            return false;
        }
        match &self.phase {
            Phase::Rest | Phase::Up => false,
            Phase::Launching { .. } | Phase::Yielding { .. } | Phase::Pausing { .. } => true,
            Phase::Stopping { then } => match then {
                Then::Launch | Then::AtOnce | Then::Retry => true,
                Then::Quarantine(_) | Then::Rest => false,
            },
        }
    }

    /// Whether it is to be told that nothing is in flight.
    pub(crate) fn awaits_idle(&self) -> Option<Idleness> {
        match self.phase {
            Phase::Yielding { .. } => Some(Idleness::Held),
            Phase::Up if self.may_retire() => Some(Idleness::Natural),
            Phase::Up
            | Phase::Rest
            | Phase::Launching { .. }
            | Phase::Stopping { .. }
            | Phase::Pausing { .. } => None,
        }
    }

    /// Whether its runner is being launched.
    pub(crate) fn is_launching(&self) -> bool {
        matches!(self.phase, Phase::Launching { .. })
    }

    /// When it is launched again, if that is being waited for.
    pub(crate) fn next_launch(&self) -> Option<Instant> {
        match self.phase {
            Phase::Pausing { until } => Some(until),
            Phase::Rest
            | Phase::Launching { .. }
            | Phase::Up
            | Phase::Yielding { .. }
            | Phase::Stopping { .. } => None,
        }
    }

    /// How often in a row its runner has failed.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Why it is left alone, if it is.
    #[cfg(test)]
    pub(crate) fn quarantine(&self) -> Option<&str> {
        self.quarantine.as_deref()
    }

    /// When time has passed that matters.
    pub(crate) fn next_timer(&self) -> Option<Instant> {
        let of_phase = match self.phase {
            Phase::Launching { until } | Phase::Yielding { until, .. } => until,
            Phase::Pausing { until } => Some(until),
            Phase::Rest | Phase::Up | Phase::Stopping { .. } => None,
        };
        let timers = [
            of_phase,
            self.health.ask_at,
            self.grace_until,
            self.stable_at,
            self.absent_at,
        ];
        timers.into_iter().flatten().min()
    }

    fn tick(&mut self) {
        let is_due = |timer: Option<Instant>, now| timer.is_some_and(|at| at <= now);
        let now = self.now;
        if is_due(self.absent_at, now) {
            self.absent_at = None;
            self.was_absent |= self.seen.is_none();
        }
        if is_due(self.grace_until, now) {
            self.grace_until = None;
            self.stop(Then::Rest);
        }
        if is_due(self.stable_at, now) {
            self.stable_at = None;
            self.settle_down();
        }
        match self.phase.clone() {
            Phase::Launching { until } if is_due(until, now) => self.overtime(),
            Phase::Yielding { then, until } if is_due(until, now) => self.stop(then),
            Phase::Pausing { until } if until <= now => self.launch_or_rest(),
            Phase::Rest
            | Phase::Launching { .. }
            | Phase::Up
            | Phase::Yielding { .. }
            | Phase::Stopping { .. }
            | Phase::Pausing { .. } => {}
        }
        if is_due(self.health.ask_at, now) {
            self.ask();
        }
    }

    /// Whether its runner is to be ended for its age, if nothing is in flight.
    fn may_retire(&self) -> bool {
        self.health.is_aged && !self.is_closing && self.is_within_reach()
    }

    fn is_within_reach(&self) -> bool {
        self.seen.is_some_and(|seen| !seen.stale)
    }
}
