//! Questions and answers: ready, lost, restarted, drifting, old.

use super::*;

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
    for _ in 0..9 {
        story.step(Input::Unreachable);
    }
    let questions = story.acts.len();
    assert_eq!(questions, 1, "one decides");
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
