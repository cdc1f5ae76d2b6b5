//! What is known of one device's runner, and what follows for its lane.
//!
//! Whoever hears something of the runner tells it here: the lane's commands, the
//! questions beside them, and probes beside the session. Here it is also known
//! how many mutations keep the lane shut for others ([`hold`](crate::hold)), and
//! whether the runner is another than before, which ends what depended on that
//! one.
//!
//! It decides nothing about a command; what a sign means is said in
//! [`condition`](crate::condition).
//!
//! Invariant: the [`Vitals`] that are published last are true of the state as it
//! is, whoever changed it in between.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{Budgets, Reply, RunnerError, RunnerStatus, SendError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::condition::{Condition, Drain, Sign};
use crate::failure::{Failed, Failure};
use crate::job::Success;
use crate::queue::Gate;

/// What a session notices of its runner, for whoever keeps that running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vitals {
    /// How the runner fares.
    pub condition: Condition,
    /// How often an attempt found nobody listening or got no answer within its
    /// window, questions to the journal included. It only grows.
    pub unreachable: u64,
}

/// What is known of one runner; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Gauge {
    shared: Arc<Shared>,
    budgets: Budgets,
    /// A runner that is wedged is sent nothing.
    holds_when_wedged: bool,
}

#[derive(Debug)]
struct Shared {
    health: watch::Sender<Health>,
    vitals: watch::Sender<Vitals>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Health {
    runner: Condition,
    /// It was wedged, and has not been well since.
    is_unwell: bool,
    /// How many mutations keep the lane shut for others.
    held: usize,
    unreachable: u64,
    /// When a runner last said how long it has been up.
    seen: Option<Instant>,
    /// How many runners have been seen, one after another.
    runners: u64,
}

impl Health {
    fn condition(&self) -> Condition {
        match (self.runner, self.held > 0) {
            (Condition::Ready, true) => Condition::Reconciling,
            (runner, _) => runner,
        }
    }

    fn hear(&mut self, sign: Sign, now: Instant) {
        let after = self.runner.after(sign, now);
        if after != self.runner {
            tracing::info!(?sign, condition = ?after, "the runner's condition has changed");
        }
        self.is_unwell = match after {
            Condition::Ready | Condition::Reconciling => false,
            Condition::Wedged => true,
            Condition::Draining { .. } => self.is_unwell,
        };
        self.runner = after;
    }

    /// A runner says that it has been up for so long by the gateway's clock. It
    /// is another than before if it was not up yet when that was seen. (That the
    /// uptime has grown too little proves nothing: a phone's clock may stand
    /// still.)
    fn see(&mut self, uptime: Duration, now: Instant) {
        match self.seen.replace(now) {
            Some(before) if uptime >= now.saturating_duration_since(before) => {}
            Some(_) => {
                tracing::info!(?uptime, "the runner is another than before");
                self.runners += 1;
                // What was known was the other's.
                self.hear(Sign::Idle, now);
            }
            None => self.runners += 1,
        }
    }
}

impl Gauge {
    /// Of a runner of which nothing is known, under this clock.
    pub(crate) fn new(budgets: Budgets) -> Self {
        Self {
            shared: Arc::new(Shared {
                health: watch::Sender::default(),
                vitals: watch::Sender::default(),
            }),
            budgets,
            holds_when_wedged: false,
        }
    }

    /// The same, for a lane that starts nothing while the runner is wedged.
    pub(crate) fn holding_when_wedged(self, holds_when_wedged: bool) -> Self {
        Self {
            holds_when_wedged,
            ..self
        }
    }

    fn change(&self, change: impl FnOnce(&mut Health)) {
        self.shared.health.send_if_modified(|health| {
            let before = *health;
            change(health);
            *health != before
        });
        // Read anew under the vitals' lock: of two that change the health at
        // once, the later to publish publishes what both have made of it.
        self.shared.vitals.send_if_modified(|vitals| {
            let health = self.shared.health.borrow();
            let now = Vitals {
                condition: health.condition(),
                unreachable: health.unreachable,
            };
            let changed = *vitals != now;
            *vitals = now;
            changed
        });
    }

    /// How the runner fares.
    pub(crate) fn condition(&self) -> Condition {
        self.shared.health.borrow().condition()
    }

    /// What is noticed of it, from now on.
    pub(crate) fn vitals(&self) -> watch::Receiver<Vitals> {
        self.shared.vitals.subscribe()
    }

    /// A sign was heard.
    pub(crate) fn hear(&self, sign: Option<Sign>) {
        if let Some(sign) = sign {
            self.change(|health| health.hear(sign, Instant::now()));
        }
    }

    /// The runner said how it fares.
    pub(crate) fn hear_status(&self, status: &RunnerStatus) {
        let uptime = self.budgets.of(status.uptime);
        self.change(|health| {
            let now = Instant::now();
            health.see(uptime, now);
            if let Some(sign) = Sign::of_state(&status.state) {
                health.hear(sign, now);
            }
        });
    }

    /// A command has ended.
    pub(crate) fn hear_outcome(&self, outcome: &Result<Success, Failed>) {
        if let Ok(Success {
            reply: Reply::Status(status),
            ..
        }) = outcome
        {
            self.hear_status(status);
        } else {
            self.hear(Sign::of(outcome));
        }
    }

    /// An attempt has failed.
    pub(crate) fn hear_failure(&self, error: &SendError) {
        match error {
            SendError::NotListening { .. } | SendError::WindowClosed { .. } => {
                self.change(|health| health.unreachable = health.unreachable.saturating_add(1));
            }
            SendError::NotAttached
            | SendError::Connect(_)
            | SendError::Misunderstood(_)
            | SendError::RequestTooLarge { .. }
            | SendError::Refused(_)
            | SendError::Broken(_)
            | SendError::ReplyTooLarge { .. }
            | SendError::InvalidReply(_) => {}
        }
    }

    /// One more mutation keeps the lane shut: [`Hold`](crate::hold::Hold) lets
    /// go of it again.
    pub(crate) fn hold(&self) {
        self.change(|health| health.held += 1);
    }

    /// One less does.
    pub(crate) fn release(&self) {
        self.change(|health| health.held = health.held.saturating_sub(1));
    }

    /// What may be started, as far as the runner is concerned.
    pub(crate) fn gate(&self) -> Gate {
        self.gate_of(&self.shared.health.borrow())
    }

    fn gate_of(&self, health: &Health) -> Gate {
        if self.holds_when_wedged && health.is_unwell {
            Gate::Shut
        } else if health.held > 0 {
            Gate::Reads
        } else {
            Gate::Open
        }
    }

    /// Waits until something else than this may be started.
    pub(crate) async fn until_gate_is_not(&self, gate: Gate) {
        self.until(|health| self.gate_of(health) != gate).await;
    }

    /// Waits until the runner executes nothing.
    pub(crate) async fn until_stuck(&self) {
        self.until(|health| health.runner.is_stuck()).await;
    }

    /// Waits until it executes commands, as far as is known.
    pub(crate) async fn until_free(&self) {
        self.until(|health| !health.runner.is_stuck()).await;
    }

    /// How many runners the device has been seen to have, one after another.
    pub(crate) fn runners(&self) -> u64 {
        self.shared.health.borrow().runners
    }

    /// Waits until there are more.
    pub(crate) async fn until_more_runners_than(&self, known: u64) {
        self.until(|health| health.runners > known).await;
    }

    async fn until(&self, holds: impl FnMut(&Health) -> bool) {
        let mut health = self.shared.health.subscribe();
        // Cannot fail: the sender lives as long as this.
        health.wait_for(holds).await.ok();
    }

    /// The failure of a command that did not run, with what it is probably due
    /// to: that the runner is wedged and held, or draining.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let health = *self.shared.health.borrow();
        let failure = match self.gate_of(&health) {
            Gate::Shut => failure.while_paused(),
            Gate::Reads | Gate::Open => failure,
        };
        let Condition::Draining { since } = health.runner else {
            return failure;
        };
        let draining = match &failure {
            Failure::Runner(RunnerError { code, .. }) => code.is_retryable(),
            Failure::LaneFull { .. } | Failure::DeadlineInQueue => true,
            Failure::NotSent(_)
            | Failure::Unknown { .. }
            | Failure::Reply(_)
            | Failure::Viewport(_)
            | Failure::DeadlineExceeded
            | Failure::Record(_)
            | Failure::Duplicate
            | Failure::IdConflict { .. }
            | Failure::Draining { .. }
            | Failure::Paused { .. }
            | Failure::Withdrawn(_)
            | Failure::NotUnderWay
            | Failure::Closed
            | Failure::Crashed => false,
        };
        if !draining {
            return failure;
        }
        let age = since.elapsed();
        let left = self.budgets.wedge_threshold().saturating_sub(age);
        Failure::Draining {
            failure: Box::new(failure),
            drain: Drain { age, left },
        }
    }
}

#[cfg(test)]
mod tests;
