//! Whatever happens, in whatever order: what always holds, and that it ends.

use std::time::Duration;

use fleetgate_device::MuxDeviceId;
use fleetgate_runner::{Budgets, RunnerState, RunnerStatus};
use proptest::prelude::*;

use super::*;
use crate::config::HealthSection;

/// Something that the world does, if it can.
#[derive(Debug, Clone)]
enum Chance {
    Presence(Option<Seen>),
    /// What the process does next, as far as it may.
    Process(u8, u16),
    Answer(Heard),
    Condition(Condition),
    Unreachable,
    Idle,
    Recycle(bool),
    Plan(Plan),
    /// Time passes until the next timer, or by so many milliseconds.
    Timer,
    Wait(u64),
}

fn seen() -> impl Strategy<Value = Option<Seen>> {
    let seen = (0_usize..2, 1_u64..3, 1_u32..4, any::<bool>()).prop_map(
        |(host, generation, number, stale)| Seen {
            host,
            generation,
            number: (!stale).then_some(MuxDeviceId(number)),
            stale,
        },
    );
    proptest::option::weighted(0.8, seen)
}

fn heard() -> impl Strategy<Value = Heard> {
    let status = (0_u64..90_000, 0_u64..3, 0_u64..9).prop_map(|(secs, suppressed, recorded)| {
        Heard::Status(RunnerStatus {
            uptime: Duration::from_secs(secs),
            state: RunnerState::Idle,
            suppressed_issues: suppressed,
            recorded_failures: recorded,
        })
    });
    prop_oneof![
        4 => status,
        1 => Just(Heard::SomethingElse),
        2 => Just(Heard::Silence("silence".to_owned())),
        1 => Just(Heard::NoWay("no way".to_owned())),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let start_timeout = Duration::from_secs(120);
    prop_oneof![
        1 => Just(Plan::Unknown),
        2 => Just(Plan::Static { port: 8100 }),
        6 => (0_u64..2).prop_map(move |identity| Plan::Command { identity, start_timeout }),
    ]
}

fn chance() -> impl Strategy<Value = Chance> {
    let since = Instant::now();
    let condition = prop_oneof![
        4 => Just(Condition::Ready),
        1 => Just(Condition::Reconciling),
        1 => Just(Condition::Draining { since }),
        1 => Just(Condition::Wedged),
    ];
    prop_oneof![
        3 => seen().prop_map(Chance::Presence),
        9 => (any::<u8>(), 8100_u16..8103).prop_map(|(what, port)| Chance::Process(what, port)),
        6 => heard().prop_map(Chance::Answer),
        2 => condition.prop_map(Chance::Condition),
        1 => Just(Chance::Unreachable),
        2 => Just(Chance::Idle),
        1 => any::<bool>().prop_map(Chance::Recycle),
        1 => plan().prop_map(Chance::Plan),
        6 => Just(Chance::Timer),
        1 => (0_u64..100_000).prop_map(Chance::Wait),
    ]
}

/// A life in a world that keeps to the rules, and what is seen of it.
struct World {
    life: Life,
    now: Instant,
    child: Child,
    seen: Option<Seen>,
    question: Option<u64>,
    state: State,
    started_at: Option<Instant>,
    /// An operator has asked since.
    is_ordered: bool,
    /// Restarts that were told of since.
    restarts: u32,
}

impl World {
    fn new(plan: Plan, quarantined: bool, probes: bool) -> Self {
        let mut health = HealthSection::default();
        if !probes {
            health.probe_interval = Duration::ZERO;
        }
        let policy = Arc::new(Policy::new(health, Budgets::default()));
        let now = Instant::now();
        let quarantine = quarantined.then(|| "once".to_owned());
        Self {
            life: Life::new(policy, plan, quarantine, 1, now),
            now,
            child: Child::None,
            seen: None,
            question: None,
            state: State::Detached,
            started_at: None,
            is_ordered: false,
            restarts: 0,
        }
    }

    fn step(&mut self, input: Input) {
        let is_command = |plan: Plan| matches!(plan, Plan::Command { .. });
        self.is_ordered |= matches!(input, Input::Recycle { .. });
        if matches!(input, Input::Tick) {
            // It may have done well for long enough.
            self.restarts = 0;
        }
        let out = self.life.step(input, self.now);
        for moved in &out.moves {
            assert_eq!(moved.from, self.state, "the chain breaks: {:?}", out.moves);
            self.state = moved.to;
            self.restarts += u32::from(moved.reason == Reason::RunnerRestarted);
        }
        assert_eq!(self.state, self.life.state().0);
        for act in out.acts {
            match act {
                Act::Start => {
                    assert_eq!(self.child, Child::None, "two at once");
                    assert!(self.seen.is_some_and(|seen| !seen.stale), "for nobody");
                    assert!(self.life.quarantine().is_none(), "in quarantine");
                    assert!(is_command(self.life.plan), "what is not ours");
                    self.child = Child::Starting;
                    let first = self.life.policy.health.backoff_initial;
                    let is_due = self.started_at.is_none_or(|at| at + first <= self.now);
                    assert!(is_due || self.is_ordered, "a storm");
                    self.started_at = Some(self.now);
                    (self.is_ordered, self.restarts) = (false, 0);
                }
                Act::Stop => {
                    assert!(matches!(self.child, Child::Starting | Child::Running));
                    self.child = Child::Stopping;
                }
                Act::Ask { epoch, .. } => self.question = Some(epoch),
                Act::Quarantine(_) => {}
            }
        }
        self.check();
    }

    fn check(&self) {
        let life = &self.life;
        if matches!(life.plan, Plan::Command { .. }) && self.child == Child::Running {
            let most = life.policy.health.quarantine_after.get();
            assert!(self.restarts <= most + 1, "restarts without end");
        }
        assert_eq!(life.child, self.child);
        let is_there = self.seen.is_some();
        assert_eq!(self.state == State::Detached, !is_there);
        let left_alone = is_there && life.quarantine().is_some();
        assert_eq!(self.state == State::Quarantined, left_alone);
        if life.holds_lane() {
            let is_coming = life.next_timer().is_some()
                || life.awaits_idle().is_some()
                || matches!(self.child, Child::Starting | Child::Stopping);
            assert!(is_coming, "commands wait for nothing: {life:?}");
            assert!(is_there && life.quarantine().is_none());
        }
        // At the end nothing is told any more.
        if self.state == State::Launching && !life.is_closing {
            assert_ne!(self.child, Child::None);
        }
        if life.next_launch().is_some() {
            assert_eq!(self.child, Child::None);
        }
    }

    /// What the process may do; `None` if nothing of the sort.
    fn process(&mut self, what: u8, port: u16) -> Option<Process> {
        match self.child {
            Child::None => None,
            Child::Starting if what.is_multiple_of(4) => {
                self.child = Child::None;
                Some(Process::NotStarted("not there".to_owned()))
            }
            Child::Starting => {
                self.child = Child::Running;
                Some(Process::Started)
            }
            Child::Running => Some(match what % 4 {
                0 => Process::Exited("exit status 65".to_owned()),
                1 => Process::ListenerFailed("address in use".to_owned()),
                _ => Process::Listening(port),
            }),
            Child::Stopping => {
                self.child = Child::None;
                Some(Process::Stopped)
            }
        }
    }

    fn play(&mut self, chance: Chance) {
        match chance {
            Chance::Presence(seen) => {
                self.seen = seen;
                self.step(Input::Presence(seen));
            }
            Chance::Process(what, port) => {
                if let Some(process) = self.process(what, port) {
                    self.step(Input::Process(process));
                }
            }
            Chance::Answer(heard) => {
                if let Some(epoch) = self.question.take() {
                    self.step(Input::Answer { epoch, heard });
                }
            }
            Chance::Condition(condition) => self.step(Input::Condition(condition)),
            Chance::Unreachable => self.step(Input::Unreachable),
            // As from a keeper: only if it is awaited.
            Chance::Idle => {
                if self.life.awaits_idle().is_some() {
                    self.step(Input::Idle);
                }
            }
            Chance::Recycle(force) => self.step(Input::Recycle {
                force,
                reason: String::new(),
            }),
            Chance::Plan(plan) => self.step(Input::Plan(plan)),
            Chance::Timer => {
                if let Some(next) = self.life.next_timer() {
                    self.now = self.now.max(next);
                    self.step(Input::Tick);
                }
            }
            Chance::Wait(millis) => {
                self.now += Duration::from_millis(millis);
                self.step(Input::Tick);
            }
        }
    }

    /// Its runner was up, nobody could connect to it, and it is looked for.
    fn is_blocked(&self) -> bool {
        let is_up = self.child == Child::Running && self.state == State::Attached;
        is_up && self.life.next_timer().is_some()
    }

    /// Answers all that is asked for, well or badly, until nothing is under way.
    fn wind_up(&mut self, well: bool) {
        for _ in 0..400 {
            if self.child == Child::Stopping {
                self.child = Child::None;
                self.step(Input::Process(Process::Stopped));
            } else if self.child == Child::Starting && !well {
                self.child = Child::None;
                self.step(Input::Process(Process::NotStarted("no".to_owned())));
            } else if self.child == Child::Starting {
                self.child = Child::Running;
                self.step(Input::Process(Process::Started));
                self.step(Input::Process(Process::Listening(8100)));
            } else if self.life.awaits_idle().is_some() {
                self.step(Input::Idle);
            } else if self.life.is_launching() && self.child == Child::Running && !well {
                self.step(Input::Process(Process::Exited("no".to_owned())));
            } else if let Some(epoch) = self.question.take() {
                let heard = if well {
                    Heard::SomethingElse
                } else {
                    Heard::Silence("no".to_owned())
                };
                self.step(Input::Answer { epoch, heard });
            } else if self.life.is_launching() && self.life.port().is_none() {
                self.step(Input::Process(Process::Listening(8100)));
            } else if self.life.holds_lane() || (well && self.is_blocked()) {
                self.play(Chance::Timer);
            } else {
                return;
            }
        }
        panic!("it does not end: {:?}", self.life);
    }
}

proptest! {
    #[test]
    fn whatever_happens_the_rules_hold_and_it_ends(
        plan in plan(),
        quarantined: bool,
        probes: bool,
        chances in proptest::collection::vec(chance(), 1..120),
        well: bool,
    ) {
        let mut world = World::new(plan, quarantined, probes);
        for chance in chances {
            world.play(chance);
        }
        world.play(Chance::Condition(Condition::Ready));
        world.wind_up(well);
        let is_there = world.seen.is_some_and(|seen| !seen.stale);
        let is_ours = matches!(world.life.plan, Plan::Command { .. });
        if is_there && is_ours {
            let expected: &[State] = if well {
                &[State::Ready, State::Quarantined]
            } else {
                &[State::Ready, State::Quarantined, State::Attached]
            };
            prop_assert!(expected.contains(&world.state), "{:?}", world.life);
        }
        // And nothing is left at the end of the gateway.
        world.step(Input::Close);
        world.wind_up(true);
        prop_assert_eq!(world.child, Child::None);
        prop_assert!(!world.life.holds_lane());
    }
}
