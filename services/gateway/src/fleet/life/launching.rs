//! Launching a phone's runner, ending it, and what follows.

use tokio::time::Instant;

use super::{Act, Child, Flaw, Life, Phase, Plan, Process, Reason, Then};

impl Life {
    fn may_launch(&self) -> bool {
        let by_command = matches!(self.plan, Plan::Command { .. });
        by_command && !self.is_closing && self.quarantine.is_none() && self.is_within_reach()
    }

    /// Sees to it that there is a runner.
    pub(super) fn pursue(&mut self) {
        if !self.may_launch() {
            return;
        }
        match self.child {
            Child::None => self.start_in_turn(),
            // It has survived; nobody knows whether its runner has.
            Child::Running => {
                self.begin_launching();
                self.show(
                    Reason::Launching,
                    Some("its process is still there".to_owned()),
                );
                if self.port.is_some() {
                    self.ask();
                }
            }
            Child::Starting => {
                self.phase = Phase::Launching { until: None };
                self.show(Reason::Launching, None);
            }
            Child::Stopping => {
                self.phase = Phase::Stopping { then: Then::Launch };
                let why = "an earlier process is being ended".to_owned();
                self.show(Reason::Launching, Some(why));
            }
        }
    }

    /// Launches, but never soon after the launch before: neither a cable that
    /// makes bad contact nor a runner that is always too old is a reason for a
    /// storm.
    fn start_in_turn(&mut self) {
        match self.earliest() {
            Some(until) => {
                self.phase = Phase::Pausing { until };
                let why = "it was launched just before".to_owned();
                self.show(Reason::Launching, Some(why));
            }
            None => self.start(),
        }
    }

    /// When it may be launched, if not now.
    fn earliest(&self) -> Option<Instant> {
        let launched_at = self.launched_at?;
        let earliest = launched_at + self.policy.health.backoff_initial;
        (earliest > self.now).then_some(earliest)
    }

    fn start(&mut self) {
        self.out.acts.push(Act::Start);
        self.child = Child::Starting;
        self.launched_at = Some(self.now);
        self.restarts = 0;
        self.port = None;
        self.forget_runner();
        self.phase = Phase::Launching { until: None };
        self.show(Reason::Launching, None);
    }

    fn begin_launching(&mut self) {
        let Plan::Command { start_timeout, .. } = self.plan else {
            return;
        };
        self.phase = Phase::Launching {
            until: Some(self.now + start_timeout),
        };
    }

    /// A pause is over.
    pub(super) fn launch_or_rest(&mut self) {
        if self.may_launch() {
            self.start();
        } else {
            self.rest();
        }
    }

    /// Nothing is launched, for as long as the circumstances are what they are.
    fn rest(&mut self) {
        self.phase = Phase::Rest;
        if self.seen.is_none() || self.is_closing {
            return;
        }
        self.show(Reason::HostLost, None);
        if !matches!(self.plan, Plan::Command { .. }) {
            self.set_out();
        }
    }

    /// Ends its runner once nothing is in flight.
    pub(super) fn yield_to(&mut self, then: Then, until: Option<Instant>) {
        self.health.hush();
        self.stable_at = None;
        self.phase = Phase::Yielding { then, until };
    }

    /// Ends its process, if it has one.
    pub(super) fn stop(&mut self, then: Then) {
        self.port = None;
        self.forget_runner();
        match self.child {
            Child::None => self.finish(then),
            Child::Starting | Child::Running => {
                self.out.acts.push(Act::Stop);
                self.child = Child::Stopping;
                self.phase = Phase::Stopping { then };
            }
            Child::Stopping => self.phase = Phase::Stopping { then },
        }
    }

    /// There is no process any more.
    fn finish(&mut self, then: Then) {
        match then {
            Then::AtOnce => self.launch_or_rest(),
            Then::Launch if self.may_launch() => self.start_in_turn(),
            Then::Retry if self.may_launch() => {
                let pause = self.policy.backoff(self.failures, self.chance.draw());
                let until = self.now + pause;
                self.phase = Phase::Pausing {
                    until: self
                        .earliest()
                        .map_or(until, |earliest| earliest.max(until)),
                };
            }
            Then::Quarantine(why) => {
                self.phase = Phase::Rest;
                self.quarantine = Some(why.clone());
                self.out.acts.push(Act::Quarantine(Some(why.clone())));
                self.show(Reason::Quarantined, Some(why));
            }
            Then::Rest if self.may_launch() => self.pursue(),
            Then::Launch | Then::Retry | Then::Rest => self.rest(),
        }
    }

    pub(super) fn process(&mut self, process: Process) {
        match process {
            Process::Started => {
                if self.child == Child::Starting {
                    self.child = Child::Running;
                    self.begin_launching();
                }
            }
            Process::NotStarted(why) => {
                if self.child == Child::Starting {
                    self.child = Child::None;
                    self.flawed(Flaw::NotStarted, why);
                }
            }
            Process::Listening(port) => {
                if self.child == Child::Running {
                    self.listening(port);
                }
            }
            Process::ListenerFailed(why) => {
                if self.child == Child::Running {
                    let told = format!("its listener failed: {why}");
                    self.ended(Flaw::ListenerFailed, told);
                }
            }
            Process::Exited(status) => {
                if self.child == Child::Running {
                    let told = format!("its process ended: {status}");
                    self.ended(Flaw::Exited, told);
                }
            }
            Process::Stopped => {
                if self.child != Child::Stopping {
                    return;
                }
                self.child = Child::None;
                if let Phase::Stopping { then } = self.phase.clone() {
                    self.finish(then);
                }
            }
        }
    }

    fn listening(&mut self, port: u16) {
        let before = self.port.replace(port);
        match self.phase {
            Phase::Launching { .. } if before.is_none() => self.ask(),
            // However many ports it names, the last is asked, and in its turn.
            Phase::Launching { .. } if before != Some(port) => {
                self.health.void();
                self.ask_shortly();
            }
            Phase::Up if before != Some(port) => {
                if self.restarted(format!("it listens on port {port} now")) {
                    self.ask();
                }
            }
            Phase::Rest if before != Some(port) => self.ask_shortly(),
            Phase::Launching { .. }
            | Phase::Up
            | Phase::Rest
            | Phase::Yielding { .. }
            | Phase::Stopping { .. }
            | Phase::Pausing { .. } => {}
        }
    }

    /// The runner is gone, whether its process is or not.
    fn ended(&mut self, flaw: Flaw, why: String) {
        match self.phase.clone() {
            Phase::Launching { .. } => self.flawed(flaw, why),
            Phase::Up => self.failed(Reason::RunnerDied, Some(why)),
            // It was up, and nobody could connect to it.
            Phase::Rest if self.is_within_reach() => self.failed(Reason::RunnerDied, Some(why)),
            Phase::Yielding { then, .. } => self.stop(then),
            Phase::Rest | Phase::Stopping { .. } | Phase::Pausing { .. } => self.stop(Then::Rest),
        }
    }

    /// A launch took too long.
    pub(super) fn overtime(&mut self) {
        let Plan::Command { start_timeout, .. } = self.plan else {
            return;
        };
        let (flaw, why) = match self.port {
            Some(port) => (Flaw::NotReady, format!("it did not answer on port {port}")),
            None => (
                Flaw::StartTimeout,
                "it did not say where it listens".to_owned(),
            ),
        };
        self.flawed(flaw, format!("{why} within {start_timeout:?}"));
    }

    fn flawed(&mut self, flaw: Flaw, why: String) {
        let told = format!("{}: {why}", flaw.as_str());
        self.out.flaw = Some((flaw, why));
        self.failed(Reason::LaunchFailed, Some(told));
    }

    /// A launched runner has failed: it is launched again, unless that has
    /// happened too often in a row.
    pub(super) fn failed(&mut self, reason: Reason, why: Option<String>) {
        let then = self.after_failure(why.as_deref());
        self.conclude(then, reason, why);
    }

    /// Ends what is left of a runner that failed.
    fn conclude(&mut self, then: Then, reason: Reason, why: Option<String>) {
        // Shown before what follows, be it at once.
        self.phase = Phase::Stopping { then: then.clone() };
        self.show(reason, why);
        self.stop(then);
    }

    /// Counts a failure, and says what follows.
    pub(super) fn after_failure(&mut self, why: Option<&str>) -> Then {
        self.stable_at = None;
        // It may well be the host's: that is found out when it is back.
        if !self.is_within_reach() {
            return Then::Rest;
        }
        self.failures += 1;
        self.failed_at = Some(self.now);
        if self.failures < self.policy.health.quarantine_after.get() {
            return Then::Retry;
        }
        let count = self.failures;
        Then::Quarantine(match why {
            Some(why) => format!("{count} failures in a row; the last: {why}"),
            None => format!("{count} failures in a row"),
        })
    }

    pub(super) fn idle(&mut self) {
        match self.phase.clone() {
            Phase::Yielding { then, .. } => self.stop(then),
            Phase::Up if self.may_retire() => {
                self.conclude(Then::Launch, Reason::RunnerAge, None);
            }
            Phase::Up
            | Phase::Rest
            | Phase::Launching { .. }
            | Phase::Stopping { .. }
            | Phase::Pausing { .. } => {}
        }
    }
}
