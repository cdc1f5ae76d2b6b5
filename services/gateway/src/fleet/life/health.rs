//! How a runner fares: the questions, and what the answers mean.

use std::time::Duration;

use fleetgate_session::Condition;
use tokio::time::Instant;

use super::{Act, Heard, Life, Phase, Plan, Reason, State};

mod status;

/// By how much a runner may say that it is older than its launch.
const LEEWAY: Duration = Duration::from_secs(60);

/// What is known of a runner's health.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    /// Counts the questions.
    epoch: u64,
    /// The one that is open; answers to others are void.
    question: Option<u64>,
    /// When to ask next.
    pub(super) ask_at: Option<Instant>,
    /// Questions without an answer in a row.
    misses: u32,
    /// Questions in a row that could not even be asked.
    blocked: u32,
    /// How often it was looked for.
    looks: u32,
    pub(super) standing: Standing,
    /// It is old enough to be ended.
    pub(super) is_aged: bool,
    tally: Option<Tally>,
    drifting: Drifting,
}

/// What is thought of a runner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing bad.
    #[default]
    Good,
    /// The session did not reach it: one question more decides.
    Suspect,
    /// It is known not to answer.
    Lost,
}

/// Whether failures are recorded that a runner ought to know as noise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Drifting {
    #[default]
    No,
    /// By this runner: there is an alarm.
    Now,
    /// By an earlier one: the alarm stands until this one has done well.
    Before,
}

/// What a runner counts, as it said last.
#[derive(Debug, Clone, Copy)]
struct Tally {
    uptime: Duration,
    suppressed: u64,
    /// How many failures it had recorded when it last suppressed an issue.
    recorded_then: u64,
}

impl Health {
    /// Any question is void.
    pub(super) fn void(&mut self) {
        self.question = None;
    }

    /// Nothing is asked for now.
    pub(super) fn hush(&mut self) {
        self.void();
        self.ask_at = None;
        (self.misses, self.blocked, self.looks) = (0, 0, 0);
        self.clear();
    }

    /// A suspicion was unfounded, or does not matter any more.
    fn clear(&mut self) {
        if self.standing == Standing::Suspect {
            self.standing = Standing::Good;
        }
    }

    /// The next runner is another one.
    fn forget(&mut self) {
        self.hush();
        (self.standing, self.is_aged) = (Standing::Good, false);
        self.forget_counts();
    }
}

impl Health {
    fn forget_counts(&mut self) {
        self.tally = None;
        if self.drifting == Drifting::Now {
            self.drifting = Drifting::Before;
        }
    }
}

impl Life {
    /// Forgets what is known of a runner that is gone.
    pub(super) fn forget_runner(&mut self) {
        self.health.forget();
        self.stable_at = None;
    }

    /// Asks the runner how it fares, now.
    pub(super) fn ask(&mut self) {
        self.health.ask_at = None;
        if !self.is_within_reach() || self.is_closing {
            return;
        }
        self.health.epoch += 1;
        self.health.question = Some(self.health.epoch);
        self.out.acts.push(Act::Ask {
            epoch: self.health.epoch,
            readiness: self.is_launching(),
        });
    }

    fn ask_after(&mut self, pause: Duration) {
        self.health.ask_at = Some(self.now + pause);
    }

    /// Asks soon, however often that is wanted meanwhile.
    pub(super) fn ask_shortly(&mut self) {
        if self.health.ask_at.is_none() {
            self.ask_after(self.policy.readiness);
        }
    }

    /// Asks again in its turn.
    fn ask_in_turn(&mut self) {
        if self.policy.probes() {
            self.ask_after(self.policy.health.probe_interval);
        }
    }

    pub(super) fn answer(&mut self, epoch: u64, heard: Heard) {
        if self.health.question != Some(epoch) {
            return;
        }
        self.health.question = None;
        match heard {
            Heard::Status(status) if self.is_too_old_again(status.uptime) => {
                let why = self.too_old(status.uptime);
                self.failed(Reason::RunnerAge, Some(why));
            }
            Heard::Status(status) => {
                self.answered();
                self.heard(&status);
            }
            Heard::SomethingElse => self.answered(),
            Heard::Silence(why) => self.missed(why),
            Heard::NoWay(why) => self.blocked(why),
        }
    }

    fn answered(&mut self) {
        (self.health.misses, self.health.blocked) = (0, 0);
        self.health.clear();
        match self.phase {
            Phase::Rest | Phase::Launching { .. } => {
                self.phase = Phase::Up;
                self.health.standing = Standing::Good;
                self.out.is_up = true;
                self.stable_at = Some(self.now + self.policy.health.stable_after);
                if self.policy.probes() {
                    // Phones that came up together are not asked together.
                    let interval = self.policy.health.probe_interval;
                    let first = interval.mul_f64(self.chance.draw());
                    self.ask_after(first);
                }
                self.show(Reason::RunnerReady, None);
                self.look_at_condition();
            }
            Phase::Up => self.ask_in_turn(),
            Phase::Yielding { .. } | Phase::Stopping { .. } | Phase::Pausing { .. } => {}
        }
    }

    fn missed(&mut self, why: String) {
        match (&self.phase, self.plan) {
            (Phase::Launching { .. }, _) => self.ask_after(self.policy.readiness),
            (Phase::Up, plan) => {
                self.health.misses += 1;
                let enough = self.health.misses >= self.policy.health.probe_failures.get();
                if !enough && self.health.standing != Standing::Suspect {
                    self.ask_in_turn();
                } else if matches!(plan, Plan::Command { .. }) {
                    self.failed(Reason::RunnerUnreachable, Some(why));
                } else {
                    self.phase = Phase::Rest;
                    self.health.forget();
                    self.health.standing = Standing::Lost;
                    self.stable_at = None;
                    self.show(Reason::RunnerUnreachable, Some(why));
                    self.look_again();
                }
            }
            // The way is open again; what is at its end does not answer.
            (Phase::Rest, Plan::Command { .. }) => {
                self.health.misses += 1;
                if self.health.misses >= self.policy.health.probe_failures.get() {
                    self.failed(Reason::RunnerUnreachable, Some(why));
                } else {
                    self.lost(why);
                }
            }
            (Phase::Rest, _) => self.lost(why),
            (Phase::Yielding { .. } | Phase::Stopping { .. } | Phase::Pausing { .. }, _) => {}
        }
    }

    /// Nobody answers for now, and it is known why.
    fn lost(&mut self, why: String) {
        self.health.standing = Standing::Lost;
        self.look_again();
        if self.state == State::Attached {
            self.explain(Reason::RunnerUnreachable, Some(why));
        } else {
            self.show(Reason::RunnerUnreachable, Some(why));
        }
    }

    /// It could not be asked. That is not held against the runner; but one that
    /// nobody can connect to is not ready either.
    fn blocked(&mut self, why: String) {
        match self.phase {
            Phase::Launching { .. } => self.ask_after(self.policy.readiness),
            Phase::Up => {
                self.health.blocked += 1;
                let in_row = self.health.blocked + self.health.misses;
                let enough = in_row >= self.policy.health.probe_failures.get();
                // Where nobody asks, nobody would find it again.
                if !enough || !self.policy.probes() {
                    return self.ask_in_turn();
                }
                self.phase = Phase::Rest;
                self.health.hush();
                self.stable_at = None;
                self.lost(why);
            }
            Phase::Rest => self.lost(why),
            Phase::Yielding { .. } | Phase::Stopping { .. } | Phase::Pausing { .. } => {}
        }
    }

    /// Asks again soon, and then more and more seldom: a runner that does not
    /// answer may be about to come up.
    fn look_again(&mut self) {
        if self.policy.probes() {
            let doublings = self.health.looks.min(16);
            self.health.looks += 1;
            let pause = self.policy.first_look.saturating_mul(1 << doublings);
            self.ask_after(pause.min(self.policy.health.probe_interval));
        }
    }

    /// The session did not reach it.
    pub(super) fn unreachable(&mut self) {
        let asks = self.policy.probes() || matches!(self.plan, Plan::Command { .. });
        if self.phase != Phase::Up || !asks {
            return;
        }
        // One question decides, however many commands miss it meanwhile.
        let is_asking = self.health.question.is_some();
        let before = std::mem::replace(&mut self.health.standing, Standing::Suspect);
        if before != Standing::Suspect || !is_asking {
            self.ask();
        }
    }

    pub(super) fn condition(&mut self, condition: Condition) {
        if self.condition != condition {
            self.condition = condition;
            self.look_at_condition();
        }
    }

    fn look_at_condition(&mut self) {
        self.show_condition();
        let is_ours = matches!(self.plan, Plan::Command { .. });
        if is_ours && self.phase == Phase::Up && self.condition == Condition::Wedged {
            let why = "the runner is stuck".to_owned();
            let then = self.after_failure(Some(&why));
            let until = Some(self.now + self.policy.farewell);
            self.yield_to(then, until);
            self.show(Reason::RunnerWedged, Some(why));
        }
    }
}
