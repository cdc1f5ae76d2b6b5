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
//! none for a phone that is not there, is stale or in quarantine; and each
//! transition begins in the state in which the one before has ended.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_device::MuxDeviceId;
use fleetgate_runner::RunnerStatus;
use fleetgate_session::Condition;
use tokio::time::Instant;

mod health;
mod launching;
mod policy;
#[cfg(test)]
mod properties;
mod showing;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use policy::Policy;
pub(crate) use words::{Flaw, Reason, State};

use health::Health;
use policy::Chance;

/// How a phone's runner comes up, as far as its life is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nobody knows where it is.
    Unknown,
    /// Somebody else sees to it.
    Static { port: u16 },
    /// A command is run, which may take so long until the runner answers.
    Command { start_timeout: Duration },
}

/// Where a phone hangs by cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which usbmuxd.
    pub(crate) host: usize,
    /// The generation of its connection in which the phone was announced.
    pub(crate) generation: u64,
    /// The phone's number in it.
    pub(crate) number: Option<MuxDeviceId>,
    /// This is what was known last.
    pub(crate) stale: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// It is there, or is not.
    Presence(Option<Seen>),
    /// Its process did something.
    Process(Process),
    /// The question of this epoch was answered, or was not.
    Answer { epoch: u64, heard: Heard },
    /// The session knows how the runner fares.
    Condition(Condition),
    /// The session did not reach it.
    Unreachable,
    /// Nothing is in flight on the lane.
    Idle,
    /// An operator wants it recycled.
    Recycle { force: bool, reason: String },
    /// Its runner comes up in another way from now on.
    Plan(Plan),
    /// Nothing is to be launched any more, and what was launched is to end.
    Close,
    /// Time has passed.
    Tick,
}

/// What a launched process did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Process {
    Started,
    NotStarted(String),
    Listening(u16),
    ListenerFailed(String),
    Exited(String),
    /// It has ended, as was asked for, with all that it had started.
    Stopped,
}

/// What a question came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    /// The runner's status.
    Status(RunnerStatus),
    /// The runner answered, with something else.
    SomethingElse,
    /// It did not.
    Silence(String),
    /// It could not be asked: not by its own fault.
    NoWay,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Launch a process, and tell of it. It has none.
    Start,
    /// End the process however far it is, and tell when it has.
    Stop,
    /// Ask the runner for its status; any earlier question is void.
    Ask {
        epoch: u64,
        /// It is coming up, and has little time for each answer.
        readiness: bool,
    },
    /// Put on record that it is left alone, or is no more.
    Quarantine(Option<String>),
}

/// It went through something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) reason: Reason,
    pub(crate) detail: Option<String>,
}

/// All that follows from one input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) acts: Vec<Act>,
    pub(crate) moves: Vec<Move>,
    /// The alarm about drift was raised or has ended.
    pub(crate) alarm: Option<Drift>,
    /// A launch has failed.
    pub(crate) flaw: Option<(Flaw, String)>,
    /// The runner has come up.
    pub(crate) is_up: bool,
}

/// What became of the alarm about a runner that drifts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Drift {
    /// It was raised, with these words.
    Raised(String),
    Ended,
}

/// When nothing is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idleness {
    /// While commands wait: what is in flight is to end.
    Held,
    /// Of itself, with nobody waiting.
    Natural,
}

/// What is under way with its runner.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// Nothing: it is not for us to launch, or must not be now.
    Rest,
    /// It is being launched; until when, once its process runs.
    Launching { until: Option<Instant> },
    /// It answers.
    Up,
    /// It is to end once nothing is in flight, or at some moment all the same.
    Yielding { then: Then, until: Option<Instant> },
    /// Its process is being ended.
    Stopping { then: Then },
    /// It is launched again at some moment.
    Pausing { until: Instant },
}

/// What follows the end of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Then {
    /// Another one.
    Launch,
    /// Another one, after a pause.
    Retry,
    /// None, for this reason.
    Quarantine(String),
    /// What the circumstances ask for then.
    Rest,
}

/// Whether there is a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Child {
    None,
    Starting,
    Running,
    Stopping,
}

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
                Then::Launch | Then::Retry => true,
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

    fn presence(&mut self, seen: Option<Seen>) {
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
    fn set_out(&mut self) {
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

    fn recycle(&mut self, force: bool, reason: String) {
        let asked = Some(reason).filter(|reason| !reason.is_empty());
        self.failures = 0;
        if self.quarantine.is_some() {
            self.leave_quarantine("an operator wants its runner recycled");
        }
        if !matches!(self.plan, Plan::Command { .. }) {
            return;
        }
        match self.phase.clone() {
            Phase::Up if force => self.stop(Then::Launch),
            Phase::Up => self.yield_to(Then::Launch, None),
            Phase::Launching { .. } => self.stop(Then::Launch),
            Phase::Yielding { .. } if force => self.stop(Then::Launch),
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

    fn change_plan(&mut self, plan: Plan) {
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
            Child::Starting => self.stop(Then::Rest),
            Child::Running if self.phase == Phase::Up => self.yield_to(Then::Rest, None),
            Child::Running => self.stop(Then::Rest),
            Child::Stopping => self.phase = Phase::Stopping { then: Then::Rest },
        }
        let why = "its runner comes up in another way".to_owned();
        self.show(Reason::RecycleRequested, Some(why));
    }

    fn close(&mut self) {
        self.is_closing = true;
        self.stop(Then::Rest);
        self.health.hush();
        self.stable_at = None;
    }

    fn leave_quarantine(&mut self, why: &str) {
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

    /// Whether its runner is to be ended for its age, if nothing is in flight.
    fn may_retire(&self) -> bool {
        self.health.is_aged && !self.is_closing && self.is_within_reach()
    }

    fn is_within_reach(&self) -> bool {
        self.seen.is_some_and(|seen| !seen.stale)
    }
}
