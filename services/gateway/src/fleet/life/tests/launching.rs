//! Launches, failures, and who asks for the next one.

use super::*;

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
    story.answer(no_way());
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
fn a_runner_that_is_back_on_another_port_of_its_own_process_is_told_of_once() {
    let mut story = Story::up(COMMAND);
    story.probe(Heard::Status(status(100)));
    story.process(Process::Listening(PORT + 1));
    assert_eq!(story.life.port(), Some(PORT + 1));
    story.answer(Heard::Status(status(3)));
    assert_eq!(story.told(), ["Ready>Ready RUNNER_RESTARTED"]);
    assert_eq!((story.state(), story.life.failures()), (State::Ready, 0));
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
fn another_command_is_another_way_with_a_clean_sheet() {
    const OTHER: Plan = Plan::Command {
        identity: 1,
        start_timeout: TIMEOUT,
    };
    let mut story = Story::up(COMMAND);
    story.step(Input::Plan(COMMAND));
    assert_eq!(story.told(), [""; 0]);
    story.step(Input::Plan(OTHER));
    assert_eq!(story.told(), ["Ready>Recycling RECYCLE_REQUESTED"]);
    story.step(Input::Idle);
    assert_eq!(story.asked(), [Act::Stop]);
    assert!(story.life.holds_lane(), "what waits goes on waiting");
    story.process(Process::Stopped);
    assert_eq!(story.tick(), secs(5));
    assert_eq!(story.asked(), [Act::Start]);

    // Out of a long pause.
    for _ in 0..4 {
        story.process(Process::NotStarted("no such program".to_owned()));
        story.tick();
    }
    story.process(Process::Started);
    story.wait(secs(60));
    story.asked();
    story.process(Process::Exited("exit status 65".to_owned()));
    story.process(Process::Stopped);
    assert_eq!(story.state(), State::Quarantined);
    story.asked();
    story.step(Input::Plan(COMMAND));
    assert_eq!(story.asked(), [Act::Quarantine(None), Act::Start]);
    story.process(Process::NotStarted("no such program".to_owned()));
    story.tick();
    story.process(Process::NotStarted("no such program".to_owned()));
    assert_eq!(story.life.failures(), 2);
    story.asked();
    story.wait(secs(6));
    story.step(Input::Plan(OTHER));
    assert_eq!(story.life.failures(), 0);
    assert_eq!(story.asked(), [Act::Start]);
}

#[test]
fn a_log_that_names_other_ports_for_ever_is_a_failure_in_the_end() {
    let mut story = Story::up(COMMAND);
    for n in 1..=6 {
        story.process(Process::Listening(PORT + n % 2));
    }
    let mut told = vec!["Ready>Ready RUNNER_RESTARTED"; 5];
    told.push("Ready>Recycling RUNNER_RESTARTED");
    assert_eq!(story.told(), told);
    assert_eq!(story.life.failures(), 1);

    // While it comes up, the last one counts and is asked in its turn.
    story.process(Process::Stopped);
    story.tick();
    story.process(Process::Started);
    story.asked();
    for n in 0..100 {
        story.process(Process::Listening(PORT + n));
    }
    assert!(matches!(story.asked()[..], [Act::Ask { .. }]));
    assert_eq!(story.life.port(), Some(PORT + 99));
    assert_eq!(story.tick(), Duration::from_millis(250));
    story.answer(Heard::Status(status(1)));
    assert_eq!(story.state(), State::Ready);
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
