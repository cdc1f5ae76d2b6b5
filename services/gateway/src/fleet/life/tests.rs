//! One story after the other, told by hand.

use std::time::Duration;

use fleetgate_runner::{Budgets, RunnerState, RunnerStatus};

use super::*;
use crate::config::HealthSection;

const PORT: u16 = 8100;
const TIMEOUT: Duration = Duration::from_secs(120);
const STATIC: Plan = Plan::Static { port: PORT };
const COMMAND: Plan = Plan::Command {
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

fn silence() -> Heard {
    Heard::Silence("nobody listens".to_owned())
}

#[test]
fn a_static_runner_is_ready_once_it_answers() {
    let mut story = Story::of(STATIC);
    assert_eq!(story.life.port(), Some(PORT));
    story.step(Input::Presence(Some(seen(1))));
    assert_eq!(story.told(), ["Detached>Attached PLUGGED"]);
    assert!(!story.life.holds_lane());
    story.answer(Heard::Status(status(5)));
    assert_eq!(story.told(), ["Attached>Ready RUNNER_READY"]);
    assert!(!story.asked().contains(&Act::Start));
}

#[test]
fn a_static_runner_that_nobody_asks_stays_attached() {
    let mut story = Story::with(STATIC, None, |health| health.probe_interval = secs(0));
    story.step(Input::Presence(Some(seen(1))));
    story.step(Input::Unreachable);
    assert_eq!(story.asked(), []);
    assert_eq!(story.life.next_timer(), None);
    assert_eq!(story.told(), ["Detached>Attached PLUGGED"]);
    story.step(Input::Condition(Condition::Reconciling));
    story.step(Input::Condition(Condition::Ready));
    assert_eq!(
        story.told(),
        [
            "Attached>Reconciling FATE_LOOKED_INTO",
            "Reconciling>Attached FATE_SETTLED"
        ]
    );
}

#[test]
fn without_a_port_it_is_said_that_there_is_none() {
    let mut story = Story::of(Plan::Unknown);
    story.step(Input::Presence(Some(seen(1))));
    assert_eq!(
        story.told(),
        [
            "Detached>Attached PLUGGED",
            "Attached>Attached RUNNER_UNKNOWN"
        ]
    );
    assert_eq!((story.life.port(), story.life.next_timer()), (None, None));
}

#[test]
fn a_static_runner_that_does_not_answer_is_asked_more_and_more_seldom_and_found() {
    let mut story = Story::of(STATIC);
    story.step(Input::Presence(Some(seen(1))));
    story.told();
    story.answer(silence());
    assert_eq!(story.told(), ["Attached>Attached RUNNER_UNREACHABLE"]);
    let mut pauses = Vec::new();
    for _ in 0..7 {
        pauses.push(story.tick().as_secs());
        story.answer(silence());
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(story.told(), [""; 0], "it is said once");
    story.tick();
    story.answer(Heard::SomethingElse);
    assert_eq!(story.told(), ["Attached>Ready RUNNER_READY"]);
}

#[test]
fn a_static_runner_is_lost_after_so_many_questions_and_one_if_it_is_suspect() {
    let mut story = Story::up(STATIC);
    story.probe(silence());
    story.probe(silence());
    story.probe(Heard::Status(status(2)));
    for _ in 0..2 {
        story.probe(silence());
        assert_eq!(story.told(), [""; 0]);
    }
    story.probe(silence());
    assert_eq!(story.told(), ["Ready>Attached RUNNER_UNREACHABLE"]);
    assert!(!story.life.holds_lane());

    let mut story = Story::up(STATIC);
    story.step(Input::Unreachable);
    story.answer(Heard::Status(status(2)));
    assert_eq!(story.told(), [""; 0], "it was nothing");
    story.step(Input::Unreachable);
    story.answer(silence());
    assert_eq!(story.told(), ["Ready>Attached RUNNER_UNREACHABLE"]);
}

#[test]
fn a_way_that_is_blocked_is_not_held_against_the_runner() {
    let mut story = Story::up(STATIC);
    for _ in 0..9 {
        story.probe(Heard::NoWay);
    }
    assert_eq!(story.told(), [""; 0]);
}

#[test]
fn a_launched_runner_is_ready_when_it_listens_and_answers() {
    let mut story = Story::of(COMMAND);
    story.step(Input::Presence(Some(seen(1))));
    assert_eq!(
        story.told(),
        ["Detached>Attached PLUGGED", "Attached>Launching LAUNCHING"]
    );
    assert_eq!(story.asked(), [Act::Start]);
    assert!(story.life.holds_lane());
    assert_eq!(story.life.port(), None);
    // However long it has to wait for its turn.
    assert_eq!(story.life.next_timer(), None);
    story.wait(secs(1000));
    story.process(Process::Started);
    story.process(Process::Listening(PORT));
    assert_eq!(story.life.port(), Some(PORT));
    story.answer(silence());
    assert_eq!(story.tick(), Duration::from_millis(250));
    story.answer(Heard::NoWay);
    assert_eq!(story.tick(), Duration::from_millis(250));
    story.answer(Heard::SomethingElse);
    assert_eq!(story.told(), ["Launching>Ready RUNNER_READY"]);
    assert!(!story.life.holds_lane());
    assert_eq!(story.life.failures(), 0);
}

#[test]
fn a_launch_that_fails_is_tried_again_after_longer_and_longer_pauses_and_then_no_more() {
    let mut story = Story::of(COMMAND);
    story.step(Input::Presence(Some(seen(1))));
    let mut pauses = Vec::new();
    for _ in 0..4 {
        assert_eq!(story.asked(), [Act::Start]);
        story.process(Process::Started);
        story.process(Process::Exited("exit status 65".to_owned()));
        assert_eq!(story.asked(), [Act::Stop], "what it has left behind");
        story.process(Process::Stopped);
        assert_eq!(story.state(), State::Recycling);
        assert!(story.life.holds_lane() && story.life.next_launch().is_some());
        pauses.push(story.tick().as_secs_f64());
    }
    for (pause, most) in pauses.iter().zip([5.0, 10.0, 20.0, 40.0]) {
        assert!((most * 0.75..=most).contains(pause), "{pauses:?}");
    }
    assert_eq!(story.asked(), [Act::Start]);
    story.process(Process::NotStarted("no such program".to_owned()));
    let why = "5 failures in a row; the last: NOT_STARTED: no such program".to_owned();
    assert_eq!(story.asked(), [Act::Quarantine(Some(why.clone()))]);
    let told = story.told();
    assert_eq!(
        told[told.len() - 3..],
        [
            "Recycling>Launching LAUNCHING",
            "Launching>Recycling LAUNCH_FAILED",
            "Recycling>Quarantined QUARANTINED"
        ]
    );
    assert_eq!(
        story.life.state(),
        (State::Quarantined, Reason::Quarantined, Some(&*why))
    );
    assert!(!story.life.holds_lane());
    assert_eq!(story.life.next_timer(), None);
}

#[test]
fn a_launch_has_its_time_and_says_what_it_took_too_long_for() {
    let mut story = Story::of(COMMAND);
    story.step(Input::Presence(Some(seen(1))));
    story.process(Process::Started);
    assert_eq!(story.tick(), TIMEOUT);
    assert_eq!(story.flaws, [Flaw::StartTimeout]);
    story.process(Process::Stopped);
    story.tick();
    story.process(Process::Started);
    story.process(Process::Listening(PORT));
    while story.flaws.len() < 2 {
        story.answer(silence());
        story.tick();
    }
    assert_eq!(story.flaws[1], Flaw::NotReady);
    story.process(Process::Stopped);
    story.tick();
    story.process(Process::Started);
    story.process(Process::ListenerFailed("address in use".to_owned()));
    assert_eq!(story.flaws[2], Flaw::ListenerFailed);
    assert_eq!(story.asked().last(), Some(&Act::Stop));
}

#[test]
fn a_runner_whose_process_ends_is_launched_again() {
    let mut story = Story::up(COMMAND);
    story.process(Process::Exited("killed".to_owned()));
    assert_eq!(story.told(), ["Ready>Recycling RUNNER_DIED"]);
    assert!(story.life.holds_lane());
    assert_eq!(story.life.port(), None);
    assert_eq!(story.asked(), [Act::Stop]);
    story.process(Process::Stopped);
    story.tick();
    story.launch();
    assert_eq!(
        story.told(),
        [
            "Recycling>Launching LAUNCHING",
            "Launching>Ready RUNNER_READY"
        ]
    );
    assert_eq!(story.life.failures(), 1);
    story.wait(secs(599));
    assert_eq!(story.life.failures(), 1);
    story.wait(secs(1));
    assert_eq!(story.life.failures(), 0, "it does well");
}

#[test]
fn a_wedged_runner_of_ours_ends_after_its_farewell() {
    let mut story = Story::up(COMMAND);
    story.step(Input::Condition(Condition::Wedged));
    assert_eq!(
        story.told(),
        [
            "Ready>Wedged RUNNER_WEDGED",
            "Wedged>Recycling RUNNER_WEDGED"
        ]
    );
    assert_eq!(story.life.awaits_idle(), Some(Idleness::Held));
    assert_eq!(story.life.port(), Some(PORT), "for what is in flight");
    assert_eq!(story.asked(), []);
    assert_eq!(story.tick(), secs(5));
    assert_eq!(story.asked(), [Act::Stop]);

    let mut story = Story::up(STATIC);
    story.step(Input::Condition(Condition::Wedged));
    story.step(Input::Condition(Condition::Ready));
    assert_eq!(
        story.told(),
        ["Ready>Wedged RUNNER_WEDGED", "Wedged>Ready RUNNER_FREE"]
    );
    assert_eq!(story.asked(), []);
}

#[test]
fn a_runner_that_is_up_for_less_than_before_is_another_one() {
    let mut story = Story::up(STATIC);
    story.probe(Heard::Status(status(100)));
    story.probe(Heard::Status(status(3)));
    assert_eq!(story.told(), ["Ready>Ready RUNNER_RESTARTED"]);
    assert_eq!(story.reason(), Reason::RunnerReady, "why it is ready");
}

fn counts(uptime: u64, suppressed: u64, recorded: u64) -> Heard {
    Heard::Status(RunnerStatus {
        suppressed_issues: suppressed,
        recorded_failures: recorded,
        ..status(uptime)
    })
}

#[test]
fn failures_without_a_suppressed_issue_are_an_alarm_that_ends_with_the_next() {
    let mut story = Story::up(STATIC);
    story.probe(counts(2, 4, 90));
    story.probe(counts(3, 4, 92));
    assert_eq!(story.drift, []);
    story.probe(counts(4, 4, 93));
    assert!(matches!(story.drift[..], [Drift::Raised(_)]));
    story.probe(counts(5, 4, 99));
    story.probe(counts(6, 5, 99));
    assert!(matches!(story.drift[..], [Drift::Raised(_), Drift::Ended]));
    assert_eq!(story.told(), [""; 0], "its state is what it was");
}

#[test]
fn a_launched_runner_that_drifts_is_recycled_and_the_alarm_stands_until_one_does_well() {
    let mut story = Story::up(COMMAND);
    story.probe(counts(2, 0, 3));
    assert_eq!(story.told(), ["Ready>Recycling RUNNER_DRIFT"]);
    assert_eq!(
        story.life.next_timer(),
        None,
        "what is in flight has its time"
    );
    story.step(Input::Idle);
    story.process(Process::Stopped);
    story.tick();
    story.launch();
    assert_eq!(story.drift.len(), 1);
    story.wait(secs(600));
    assert!(matches!(story.drift[..], [Drift::Raised(_), Drift::Ended]));
}

#[test]
fn an_aged_runner_ends_when_nobody_minds_and_late_in_its_life_between_two_commands() {
    let mut story = Story::up(COMMAND);
    story.probe(Heard::Status(status(23 * 3600)));
    assert_eq!(story.life.awaits_idle(), Some(Idleness::Natural));
    assert!(!story.life.holds_lane());
    story.step(Input::Idle);
    assert_eq!(story.told(), ["Ready>Recycling RUNNER_AGE"]);
    assert_eq!(story.asked().last(), Some(&Act::Stop));
    story.process(Process::Stopped);
    assert_eq!(story.asked(), [Act::Start], "at once");
    assert_eq!(story.life.failures(), 0, "it is no failure");

    let mut story = Story::up(COMMAND);
    story.probe(Heard::Status(status(23 * 3600 + 1800)));
    assert_eq!(story.life.awaits_idle(), Some(Idleness::Held));
    assert!(story.life.holds_lane());
    assert_eq!(story.life.next_timer(), None, "never by force");
}

#[test]
fn an_operator_recycles_when_idle_or_by_force() {
    let order = |force| Input::Recycle {
        force,
        reason: "it looks odd".to_owned(),
    };
    let mut story = Story::up(COMMAND);
    story.step(order(false));
    assert_eq!(story.told(), ["Ready>Recycling RECYCLE_REQUESTED"]);
    assert_eq!(story.life.state().2, Some("it looks odd"));
    assert_eq!(story.asked(), []);
    story.step(Input::Idle);
    assert_eq!(story.asked(), [Act::Stop]);
    story.process(Process::Stopped);
    story.launch();

    story.asked();
    story.step(order(true));
    assert_eq!(story.asked(), [Act::Stop]);

    let mut story = Story::up(STATIC);
    story.step(order(true));
    assert_eq!(story.told(), [""; 0]);
}

#[test]
fn quarantine_outlives_the_gateway_and_ends_by_a_replug_or_an_operator() {
    let quarantined = || {
        let mut story = Story::with(COMMAND, Some("five times"), |_| {});
        story.step(Input::Presence(Some(seen(1))));
        assert_eq!(
            story.told(),
            [
                "Detached>Attached PLUGGED",
                "Attached>Quarantined QUARANTINED"
            ]
        );
        assert_eq!(story.asked(), []);
        story
    };
    let mut story = quarantined();
    story.step(Input::Presence(None));
    assert_eq!(story.life.quarantine(), Some("five times"));
    story.step(Input::Presence(Some(seen(2))));
    assert_eq!(
        story.told(),
        [
            "Quarantined>Detached UNPLUGGED",
            "Detached>Attached PLUGGED",
            "Attached>Attached QUARANTINE_LEFT",
            "Attached>Launching LAUNCHING"
        ]
    );
    assert_eq!(story.asked(), [Act::Quarantine(None), Act::Start]);

    let mut story = quarantined();
    story.step(Input::Recycle {
        force: false,
        reason: String::new(),
    });
    assert_eq!(
        story.told(),
        [
            "Quarantined>Attached QUARANTINE_LEFT",
            "Attached>Launching LAUNCHING"
        ]
    );

    // One that was not there for a while before it came.
    let mut story = Story::with(COMMAND, Some("five times"), |_| {});
    story.tick();
    story.step(Input::Presence(Some(seen(1))));
    assert_eq!(story.asked(), [Act::Quarantine(None), Act::Start]);
}

#[test]
fn a_process_survives_a_short_replug_and_is_ended_after_a_long_one() {
    let mut story = Story::up(COMMAND);
    story.step(Input::Presence(None));
    assert!(!story.life.holds_lane());
    story.step(Input::Presence(Some(seen(2))));
    assert_eq!(
        story.told(),
        [
            "Ready>Detached UNPLUGGED",
            "Detached>Attached PLUGGED",
            "Attached>Launching LAUNCHING"
        ]
    );
    story.answer(Heard::Status(status(2)));
    assert_eq!(story.told(), ["Launching>Ready RUNNER_READY"]);

    story.asked();
    story.step(Input::Presence(None));
    assert_eq!(story.tick(), secs(10));
    assert_eq!(story.asked(), [Act::Stop]);
    story.step(Input::Presence(Some(seen(3))));
    assert!(story.life.holds_lane());
    assert_eq!(story.asked(), [], "not before the other has ended");
    story.process(Process::Stopped);
    assert_eq!(story.asked(), [Act::Start]);
}

#[test]
fn a_runner_that_notices_the_unplugging_first_has_not_failed() {
    let mut story = Story::up(COMMAND);
    story.process(Process::Exited("the phone is gone".to_owned()));
    assert_eq!(story.life.failures(), 1);
    story.wait(secs(1));
    story.step(Input::Presence(None));
    assert_eq!(story.life.failures(), 0);
}

#[test]
fn a_launch_that_has_not_begun_does_not_begin_for_a_phone_that_is_gone() {
    let mut story = Story::of(COMMAND);
    story.step(Input::Presence(Some(seen(1))));
    story.step(Input::Presence(None));
    assert_eq!(story.asked(), [Act::Start, Act::Stop]);
    story.process(Process::Stopped);
    assert_eq!((story.asked(), story.life.next_timer()), (vec![], None));
}

#[test]
fn a_cable_that_makes_bad_contact_is_no_storm_of_launches() {
    let mut story = Story::of(COMMAND);
    story.step(Input::Presence(Some(seen(1))));
    story.step(Input::Presence(None));
    story.process(Process::Stopped);
    story.asked();
    story.step(Input::Presence(Some(seen(2))));
    assert_eq!(story.asked(), []);
    assert!(story.life.next_launch().is_some());
    assert_eq!(story.tick(), secs(5));
    assert_eq!(story.asked(), [Act::Start]);
}

#[test]
fn a_host_that_is_lost_leaves_its_phones_as_they_were() {
    let stale = Seen {
        stale: true,
        number: None,
        ..seen(1)
    };
    let mut story = Story::up(COMMAND);
    story.step(Input::Presence(Some(stale)));
    assert_eq!(story.told(), ["Ready>Ready HOST_LOST"]);
    story.wait(secs(300));
    assert_eq!(story.asked(), [], "nobody can be asked");
    let back = Seen {
        generation: 2,
        ..seen(9)
    };
    story.step(Input::Presence(Some(back)));
    assert_eq!(story.told(), ["Ready>Ready HOST_BACK"]);
    assert!(story.tick() <= secs(2));
    assert!(matches!(story.asked()[..], [Act::Ask { .. }]));

    // What ends meanwhile is launched again when it is back, and is no failure.
    story.step(Input::Presence(Some(stale)));
    story.process(Process::Exited("the cable went".to_owned()));
    story.process(Process::Stopped);
    assert_eq!(story.asked(), [Act::Stop]);
    assert!(!story.life.holds_lane());
    assert_eq!(story.state(), State::Attached);
    story.step(Input::Presence(Some(back)));
    assert_eq!(story.asked(), [Act::Start]);
    assert_eq!(story.life.failures(), 0);
}

#[test]
fn another_number_is_a_replug_and_another_connection_is_not() {
    let mut story = Story::up(STATIC);
    story.step(Input::Presence(Some(seen(2))));
    assert_eq!(story.told(), ["Ready>Ready REPLUGGED"]);
    let generation = 2;
    story.step(Input::Presence(Some(Seen {
        generation,
        ..seen(3)
    })));
    assert_eq!(story.told(), [""; 0]);
    story.tick();
    assert!(matches!(story.asked().last(), Some(Act::Ask { .. })));
}

#[test]
fn a_runner_that_comes_up_in_another_way_is_another() {
    let mut story = Story::up(COMMAND);
    story.step(Input::Plan(STATIC));
    story.step(Input::Idle);
    assert_eq!(story.asked(), [Act::Stop]);
    story.process(Process::Stopped);
    assert_eq!(story.life.port(), Some(PORT));
    story.answer(Heard::Status(status(5)));
    assert_eq!(story.state(), State::Ready);
    story.asked();
    story.step(Input::Plan(COMMAND));
    story.wait(secs(5));
    assert_eq!(story.asked(), [Act::Start]);
}

#[test]
fn at_the_end_what_was_launched_ends_and_nothing_else_begins() {
    let mut story = Story::up(COMMAND);
    story.step(Input::Close);
    assert_eq!(story.asked(), [Act::Stop]);
    story.process(Process::Stopped);
    story.step(Input::Presence(None));
    story.step(Input::Presence(Some(seen(2))));
    assert_eq!((story.asked(), story.life.next_timer()), (vec![], None));
}
