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
        story.probe(no_way());
        story.probe(no_way());
        story.probe(Heard::Status(status(2)));
    }
    assert_eq!(story.told(), [""; 0]);
}

#[test]
fn a_runner_that_nobody_can_connect_to_is_not_ready_and_not_to_blame() {
    for plan in [STATIC, COMMAND] {
        let mut story = Story::up(plan);
        for _ in 0..3 {
            assert_eq!(story.told(), [""; 0]);
            story.probe(no_way());
        }
        assert_eq!(story.told(), ["Ready>Attached RUNNER_UNREACHABLE"]);
        assert_eq!(story.life.state().2, Some("usbmuxd answered 6"));
        assert!(!story.life.holds_lane());
        for _ in 0..20 {
            story.probe(no_way());
        }
        assert_eq!((story.told(), story.life.failures()), (vec![], 0));
        story.probe(Heard::Status(status(2)));
        assert_eq!(story.told(), ["Attached>Ready RUNNER_READY"]);
        assert_eq!(story.life.port(), Some(PORT), "it is the one that was");
    }
}

#[test]
fn a_runner_that_is_silent_once_the_way_is_open_has_failed_and_one_that_ends_too() {
    let blocked = || {
        let mut story = Story::up(COMMAND);
        for _ in 0..3 {
            story.probe(no_way());
        }
        story.told();
        story
    };
    let mut story = blocked();
    story.probe(silence());
    story.probe(silence());
    assert_eq!(story.life.failures(), 0);
    story.tick();
    story.answer(silence());
    assert_eq!(story.asked().last(), Some(&Act::Stop));
    assert_eq!(story.life.failures(), 1);

    let mut story = blocked();
    story.process(Process::Exited("killed".to_owned()));
    assert_eq!(story.told(), ["Attached>Recycling RUNNER_DIED"]);
    assert_eq!(story.life.failures(), 1);

    let mut story = blocked();
    story.step(Input::Recycle {
        force: false,
        reason: String::new(),
    });
    assert_eq!(story.told(), ["Attached>Recycling RECYCLE_REQUESTED"]);
    assert_eq!(story.asked(), [Act::Stop]);
}

#[test]
fn a_runner_that_is_up_for_less_than_before_is_another_one() {
    let mut story = Story::up(STATIC);
    story.probe(Heard::Status(status(100)));
    story.probe(Heard::Status(status(3)));
    assert_eq!(story.told(), ["Ready>Ready RUNNER_RESTARTED"]);
    assert_eq!(story.reason(), Reason::RunnerReady, "why it is ready");
}

#[test]
fn a_launched_runner_that_restarts_again_and_again_has_failed() {
    let mut story = Story::up(COMMAND);
    for uptime in (1..=6).rev() {
        story.probe(Heard::Status(status(100 + uptime)));
    }
    assert_eq!(story.told(), ["Ready>Ready RUNNER_RESTARTED"; 5]);
    story.tick();
    story.answer(Heard::Status(status(100)));
    assert_eq!(story.told(), ["Ready>Recycling RUNNER_RESTARTED"]);
    assert_eq!(story.life.failures(), 1);
    assert_eq!(
        story.life.state().2,
        Some("6 restarts in a row; the last: up for 100s, after 101s")
    );

    // One that does well in between does not.
    let mut story = Story::up(COMMAND);
    for uptime in (1..=20).rev() {
        story.probe(Heard::Status(status(100 + uptime)));
        story.wait(secs(600));
    }
    assert_eq!((story.state(), story.life.failures()), (State::Ready, 0));
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
    story.wait(secs(23 * 3600));
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
fn a_runner_that_is_too_old_whenever_it_is_launched_fails_and_is_left_alone() {
    let old = || Heard::Status(status(200 * 3600));
    let mut story = Story::of(COMMAND);
    story.step(Input::Presence(Some(seen(1))));
    story.process(Process::Started);
    story.process(Process::Listening(PORT));
    // It may have been up already: it makes way like any that is old.
    story.answer(old());
    story.step(Input::Idle);
    story.asked();
    story.process(Process::Stopped);
    assert_eq!((story.asked(), story.life.failures()), (vec![], 0));
    assert_eq!(story.tick(), secs(5), "not at once");
    let mut pauses = Vec::new();
    for failures in 1..=5 {
        assert_eq!(story.asked(), [Act::Start]);
        story.process(Process::Started);
        story.process(Process::Listening(PORT));
        story.told();
        story.answer(old());
        assert_eq!(story.told(), ["Launching>Recycling RUNNER_AGE"]);
        assert_eq!(
            story.life.state().2,
            Some("it says that it has been up for 720000s, and was launched 0ns ago")
        );
        assert_eq!(story.life.failures(), failures);
        story.process(Process::Stopped);
        story.asked();
        if failures < 5 {
            pauses.push(story.tick());
        }
    }
    assert!(pauses[0] == secs(5) && pauses.is_sorted(), "{pauses:?}");
    assert_eq!(story.state(), State::Quarantined);
}
