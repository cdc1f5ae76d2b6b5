//! Cables and hosts that come and go, and quarantine.

use super::*;

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
fn a_replug_too_fast_to_be_seen_ends_a_quarantine_like_a_slow_one() {
    let mut story = Story::with(COMMAND, Some("five times"), |_| {});
    story.step(Input::Presence(Some(seen(1))));
    story.told();
    // The same phone, announced anew by another connection, was not replugged.
    let generation = 2;
    let other = |number| Seen {
        generation,
        ..seen(number)
    };
    story.step(Input::Presence(Some(other(1))));
    assert_eq!((story.told(), story.asked()), (vec![], vec![]));
    story.step(Input::Presence(Some(other(2))));
    assert_eq!(
        story.told(),
        [
            "Quarantined>Quarantined REPLUGGED",
            "Quarantined>Attached QUARANTINE_LEFT",
            "Attached>Launching LAUNCHING"
        ]
    );
    assert_eq!(story.asked(), [Act::Quarantine(None), Act::Start]);
}

#[test]
fn a_recycle_that_waits_is_not_forgotten_when_the_cable_blinks() {
    let mut story = Story::up(COMMAND);
    story.wait(secs(60));
    story.step(Input::Recycle {
        force: false,
        reason: String::new(),
    });
    story.asked();
    story.step(Input::Presence(None));
    assert_eq!(story.asked(), [Act::Stop]);
    story.step(Input::Presence(Some(seen(2))));
    assert!(story.life.holds_lane());
    story.process(Process::Stopped);
    assert_eq!(story.asked(), [Act::Start]);
}
