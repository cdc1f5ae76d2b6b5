//! One story after the other, told by hand.

use std::time::Duration;

use fleetgate_device::MuxDeviceId;
use fleetgate_runner::{Budgets, RunnerState, RunnerStatus};

use super::*;
use crate::config::HealthSection;

mod health;
mod launching;
mod presence;

const PORT: u16 = 8100;
const TIMEOUT: Duration = Duration::from_secs(120);
const STATIC: Plan = Plan::Static { port: PORT };
const COMMAND: Plan = Plan::Command {
    identity: 0,
    start_timeout: TIMEOUT,
};

/// A life and its clock.
struct Story {
    life: Life,
    now: Instant,
    /// What was asked for since it was last looked at.
    acts: Vec<Act>,
    /// Every transition, as `FROM>TO REASON`.
    moves: Vec<String>,
    drift: Vec<Drift>,
    flaws: Vec<Flaw>,
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn seen(number: u32) -> Seen {
    Seen {
        host: 0,
        generation: 1,
        number: Some(MuxDeviceId(number)),
        stale: false,
    }
}

fn status(uptime: u64) -> RunnerStatus {
    RunnerStatus {
        uptime: secs(uptime),
        state: RunnerState::Idle,
        suppressed_issues: 0,
        recorded_failures: 0,
    }
}

impl Story {
    fn of(plan: Plan) -> Self {
        Self::with(plan, None, |_| {})
    }

    fn with(
        plan: Plan,
        quarantine: Option<&str>,
        configure: impl FnOnce(&mut HealthSection),
    ) -> Self {
        let mut health = HealthSection::default();
        configure(&mut health);
        let policy = Arc::new(Policy::new(health, Budgets::default()));
        let now = Instant::now();
        let life = Life::new(policy, plan, quarantine.map(str::to_owned), 7, now);
        Self {
            life,
            now,
            acts: Vec::new(),
            moves: Vec::new(),
            drift: Vec::new(),
            flaws: Vec::new(),
        }
    }

    /// One that is plugged in and whose runner is up.
    fn up(plan: Plan) -> Self {
        let mut story = Self::of(plan);
        story.come_up();
        story
    }

    fn come_up(&mut self) {
        self.step(Input::Presence(Some(seen(1))));
        if matches!(self.life.plan, Plan::Command { .. }) {
            self.launch();
        } else {
            self.answer(Heard::Status(status(1)));
        }
        assert_eq!(self.state(), State::Ready);
        self.acts.clear();
        self.moves.clear();
    }

    /// Carries out a launch that was asked for.
    fn launch(&mut self) {
        assert!(self.acts.contains(&Act::Start), "{:?}", self.acts);
        self.process(Process::Started);
        self.process(Process::Listening(PORT));
        self.answer(Heard::Status(status(1)));
    }

    fn step(&mut self, input: Input) {
        let Out {
            acts,
            moves,
            alarm,
            flaw,
            is_up: _,
        } = self.life.step(input, self.now);
        self.acts.extend(acts);
        let word = |moved: Move| format!("{:?}>{:?} {}", moved.from, moved.to, moved.reason);
        self.moves.extend(moves.into_iter().map(word));
        self.drift.extend(alarm);
        self.flaws.extend(flaw.map(|(flaw, _)| flaw));
    }

    fn process(&mut self, process: Process) {
        self.step(Input::Process(process));
    }

    /// Answers the latest question.
    fn answer(&mut self, heard: Heard) {
        let epoch = self.acts.iter().rev().find_map(|act| match act {
            Act::Ask { epoch, .. } => Some(*epoch),
            Act::Start | Act::Stop | Act::Quarantine(_) => None,
        });
        let epoch = epoch.expect("a question");
        self.step(Input::Answer { epoch, heard });
    }

    /// Lets time pass until the next timer.
    fn tick(&mut self) -> Duration {
        let next = self.life.next_timer().expect("a timer");
        let passed = next.saturating_duration_since(self.now);
        self.now = self.now.max(next);
        self.step(Input::Tick);
        passed
    }

    /// Asks in its turn, and has this answer.
    fn probe(&mut self, heard: Heard) {
        while !matches!(self.acts.last(), Some(Act::Ask { .. })) {
            self.tick();
        }
        self.answer(heard);
        self.acts.clear();
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        self.step(Input::Tick);
    }

    fn state(&self) -> State {
        self.life.state().0
    }

    fn reason(&self) -> Reason {
        self.life.state().1
    }

    /// What happened since this was last asked.
    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.moves)
    }

    fn asked(&mut self) -> Vec<Act> {
        std::mem::take(&mut self.acts)
    }
}

fn no_way() -> Heard {
    Heard::NoWay("usbmuxd answered 6".to_owned())
}

fn silence() -> Heard {
    Heard::Silence("nobody listens".to_owned())
}
