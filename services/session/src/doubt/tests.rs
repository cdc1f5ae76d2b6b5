//! What evidence is worth.

use fleetgate_runner::JournalState;
use proptest::prelude::*;

use super::*;
use crate::testing::id;

const SLACK: Duration = Duration::from_secs(1);

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A tap that was sent at `sent`.
fn doubt(sent: Instant) -> Doubt {
    let unsettled = Unsettled {
        command_id: id("c-1"),
        kind: CommandKind::Tap,
        sent_at: SystemTime::now(),
        receipt: None,
    };
    Doubt {
        sent: sent.into(),
        ids_before: 10,
        ..Doubt::from(unsettled)
    }
}

fn nothing() -> Testimony {
    Testimony::Nothing(Some(JournalState::NotAccepted))
}

fn judged(
    age: Duration,
    testimony: Option<Testimony>,
    uptime: Option<Duration>,
    ids: u64,
) -> Finding {
    let sent = Instant::now();
    let evidence = Evidence {
        asked: sent + age,
        testimony,
        uptime,
        ids,
    };
    doubt(sent).judge(evidence, SLACK)
}

#[test]
fn nothing_from_the_same_runner_is_open_until_its_journal_has_turned_over() {
    assert_eq!(
        judged(secs(60), Some(nothing()), Some(secs(100)), 73),
        Finding::Unproven
    );
    let lost = judged(secs(60), Some(nothing()), Some(secs(100)), 74);
    assert!(matches!(lost, Finding::Lost(why) if why.contains("journal")));
}

#[test]
fn nothing_from_a_runner_that_has_not_been_up_for_as_long_is_lost() {
    let lost = judged(secs(60), Some(nothing()), Some(secs(58)), 11);
    assert!(matches!(lost, Finding::Lost(why) if why.contains("restarted")));
    assert_eq!(
        judged(secs(60), Some(nothing()), Some(secs(59)), 11),
        Finding::Unproven,
        "clocks differ a little"
    );
    assert_eq!(
        judged(secs(60), Some(nothing()), None, 11),
        Finding::Unproven
    );
}

#[test]
fn what_is_under_way_or_silent_is_asked_again_for_a_day() {
    let under_way = || Some(Testimony::UnderWay(JournalState::Started));
    let almost = SESSION.saturating_sub(secs(1));
    assert_eq!(judged(almost, under_way(), None, 1000), Finding::UnderWay);
    assert_eq!(judged(almost, None, None, 1000), Finding::Silence);
    for testimony in [under_way(), None, Some(nothing())] {
        assert!(matches!(
            judged(SESSION, testimony, None, 11),
            Finding::Lost(_)
        ));
    }
}

#[test]
fn a_moment_may_lie_before_the_clock_and_never_ahead() {
    let now = Instant::now();
    let long_ago = Moment::of(SystemTime::now() - Duration::from_hours(24 * 365));
    assert!(long_ago.until(now + secs(1)) >= Duration::from_hours(24 * 365));
    let ahead = Moment::of(SystemTime::now() + Duration::from_hours(1));
    assert!(ahead.until(Instant::now()) < secs(60));
}

proptest! {
    /// Whatever else is known of it, an end is an end.
    #[test]
    fn an_end_settles_at_any_age(age in 0_u64..200_000, uptime in prop::option::of(0_u64..200_000), ids in 0_u64..200) {
        let end = Some(Testimony::Ended(Answer::ResultLost));
        let finding = judged(secs(age), end, uptime.map(secs), ids);
        prop_assert_eq!(finding, Finding::Settled(Answer::ResultLost));
    }

    /// Without an end, a fate is never called anything but unknown.
    #[test]
    fn no_end_settles_nothing(age in 0_u64..200_000, uptime in prop::option::of(0_u64..200_000), ids in 0_u64..200, what in 0_usize..3) {
        let testimony = match what {
            0 => None,
            1 => Some(nothing()),
            _ => Some(Testimony::UnderWay(JournalState::Accepted)),
        };
        let finding = judged(secs(age), testimony, uptime.map(secs), ids);
        prop_assert!(!matches!(finding, Finding::Settled(_)));
    }
}
