//! The checks themselves can fail: each kind of broken promise is noticed.

use std::time::Duration;

use fleetgate_proto::v1::CommandReceipt;
use fleetgate_runner::{Budgets, RunnerCode};
use fleetgate_simulator::{Decline, ObservedEffect};

use super::*;

const ID: &str = "one";

fn arrived(kind: CommandKind) -> Arrival {
    Arrival {
        command_id: Some(ID.parse().unwrap()),
        kind,
        beside: 0,
        at: Duration::ZERO,
    }
}

fn tapped() -> ObservedEffect {
    ObservedEffect {
        seq: 1,
        command_id: Some(ID.parse().unwrap()),
        kind: CommandKind::Tap,
        what: "tapped".to_owned(),
        at: Duration::ZERO,
    }
}

fn declined(code: RunnerCode) -> Decline {
    Decline {
        command_id: Some(ID.parse().unwrap()),
        kind: CommandKind::Tap,
        code,
        at: Duration::ZERO,
    }
}

fn receipt(fate: Fate, effect: Effect) -> CommandReceipt {
    CommandReceipt {
        command_id: ID.to_owned(),
        fate: fate.into(),
        effect: effect.into(),
        ..CommandReceipt::default()
    }
}

fn change(fate: Fate, effect: Effect) -> FateChange {
    FateChange {
        fate: fate.into(),
        effect: effect.into(),
        ..FateChange::default()
    }
}

/// A tap of which everybody says this, and which was sent and had its effect so
/// often.
fn tap(fate: Fate, effect: Effect, arrivals: usize, effects: usize) -> Story {
    let row = CommandRecord {
        command_id: ID.to_owned(),
        device: "phone".to_owned(),
        kind: plain::kind(CommandKind::Tap).into(),
        fate: fate.into(),
        effect: effect.into(),
        attempts: u32::try_from(arrivals).unwrap(),
        ..CommandRecord::default()
    };
    Story {
        command_id: ID.to_owned(),
        device: "phone".to_owned(),
        kind: CommandKind::Tap,
        told: vec![Told::Receipt(receipt(fate, effect))],
        on_record: OnRecord {
            row: Some(row),
            history: vec![change(fate, effect)],
        },
        on_phone: OnPhone {
            effects: vec![tapped(); effects],
            arrivals: vec![arrived(CommandKind::Tap); arrivals],
            ..OnPhone::default()
        },
    }
}

#[track_caller]
fn assert_wrong(story: &Story, words: &str) {
    let wrong = story.violations();
    assert!(wrong.iter().any(|one| one.contains(words)), "{wrong:?}");
}

#[test]
fn what_the_design_allows_is_no_violation() {
    let allowed = [
        (Fate::NotSent, Effect::None, 0, 0),
        (Fate::Completed, Effect::Applied, 1, 1),
        (Fate::CompletedResultLost, Effect::Applied, 1, 1),
        (Fate::Failed, Effect::None, 1, 0),
        (Fate::Failed, Effect::Unknown, 1, 0),
        (Fate::Failed, Effect::Unknown, 1, 1),
        (Fate::Unknown, Effect::Unknown, 0, 0),
        (Fate::Unknown, Effect::Unknown, 1, 0),
        (Fate::Unknown, Effect::Unknown, 1, 1),
    ];
    for (fate, effect, arrivals, effects) in allowed {
        let story = tap(fate, effect, arrivals, effects);
        assert_eq!(story.violations(), Vec::<String>::new(), "{story:?}");
    }
}

#[test]
fn an_effect_that_contradicts_the_fate_is_a_violation() {
    let broken = [
        (Fate::NotSent, Effect::None, 1, 0),
        (Fate::NotSent, Effect::None, 1, 1),
        (Fate::Completed, Effect::Applied, 1, 0),
        (Fate::CompletedResultLost, Effect::Applied, 0, 0),
        (Fate::Failed, Effect::None, 1, 1),
    ];
    for (fate, effect, arrivals, effects) in broken {
        let story = tap(fate, effect, arrivals, effects);
        assert_wrong(&story, "the ledger says");
        assert_wrong(&story, "a caller was told");
    }
}

#[test]
fn nothing_excuses_a_second_effect() {
    for fate in [Fate::Completed, Fate::Unknown, Fate::Failed] {
        assert_wrong(&tap(fate, Effect::Unknown, 1, 2), "its effect 2 times");
    }
}

#[test]
fn only_a_busy_runner_excuses_a_second_send() {
    let mut story = tap(Fate::Completed, Effect::Applied, 2, 1);
    assert_wrong(&story, "sent 2 times");
    story.on_phone.declines = vec![declined(RunnerCode::RunnerWedged)];
    assert_wrong(&story, "sent 2 times");
    story.on_phone.declines = vec![declined(RunnerCode::RunnerBusy)];
    assert_eq!(story.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_command_that_comes_beside_another_within_its_window_is_a_violation() {
    let lab = fleetgate_simulator::Lab::start(fleetgate_simulator::Scenario::fleet(1));
    let mut report = lab.phones().remove(0).report();
    let first = arrived(CommandKind::Tap);
    let second = |seconds| Arrival {
        command_id: Some("two".parse().unwrap()),
        beside: 1,
        at: Duration::from_secs(seconds),
        ..first.clone()
    };
    let budgets = Budgets::default();
    report.arrivals = vec![first.clone(), second(60)];
    let mut story = tap(Fate::Completed, Effect::Applied, 1, 1);
    story.on_phone.overtaking = OnPhone::timed(&report, "two", &budgets).overtaking;
    assert_wrong(&story, "while the runner had 1 in hand");
    assert_eq!(OnPhone::timed(&report, ID, &budgets).overtaking, []);

    report.arrivals = vec![first.clone(), second(90)];
    assert_eq!(overtaking(&report, &budgets), []);

    let read = Arrival {
        command_id: Some("read".parse().unwrap()),
        kind: CommandKind::Snapshot,
        ..second(30)
    };
    report.arrivals = vec![first.clone(), read.clone(), second(60)];
    let why = "the one in hand may be the read";
    assert_eq!(overtaking(&report, &budgets), [], "{why}");
    let third = Arrival {
        beside: 2,
        ..second(60)
    };
    report.arrivals = vec![first, read, third.clone()];
    assert_eq!(overtaking(&report, &budgets), [third]);
}

#[test]
fn an_unknown_fate_is_told_once_and_once_more_when_it_is_for_good() {
    let mut story = tap(Fate::Unknown, Effect::Unknown, 1, 1);
    let again = change(Fate::Unknown, Effect::Unknown);
    story.on_record.history.push(again.clone());
    assert_wrong(&story, "said twice");
    story.on_record.history[1] = FateChange {
        unknown_for_good: true,
        ..again
    };
    assert_eq!(story.violations(), Vec::<String>::new());
}

#[test]
fn only_who_finds_a_bare_intent_need_not_know_how_often_it_was_offered() {
    let mut story = tap(Fate::Unknown, Effect::Unknown, 2, 1);
    story.on_phone.declines = vec![declined(RunnerCode::RunnerBusy)];
    if let Some(row) = &mut story.on_record.row {
        row.attempts = 1;
    }
    assert_wrong(&story, "the ledger counts 1");
    story.on_record.history[0].why = Some("found".to_owned());
    assert_eq!(story.violations(), Vec::<String>::new());
}

#[test]
fn of_a_read_nothing_is_demanded_but_that_it_changes_nothing() {
    let mut story = tap(Fate::Completed, Effect::Applied, 3, 0);
    story.kind = CommandKind::Snapshot;
    assert_eq!(story.violations(), Vec::<String>::new());
    story.on_phone.effects.push(tapped());
    assert_wrong(&story, "is a read");
}

#[test]
fn a_call_that_was_not_sent_says_nothing_of_another_that_was() {
    let mut story = tap(Fate::Completed, Effect::Applied, 1, 1);
    let unsent = Told::Receipt(receipt(Fate::NotSent, Effect::None));
    story.told.insert(0, unsent.clone());
    assert_eq!(story.violations(), Vec::<String>::new());
    story.told = vec![unsent];
    assert_wrong(&story, "a caller was told");
}

#[test]
fn fates_and_effects_must_fit() {
    let unfit = [
        (Fate::NotSent, Effect::Unknown, 0, 0),
        (Fate::Completed, Effect::Unknown, 1, 1),
        (Fate::Failed, Effect::Applied, 1, 1),
        (Fate::Unknown, Effect::None, 1, 0),
    ];
    for (fate, effect, arrivals, effects) in unfit {
        assert_wrong(&tap(fate, effect, arrivals, effects), "cannot both be");
    }
}

#[test]
fn an_intent_without_a_fate_and_a_send_without_an_intent_are_violations() {
    let open = tap(Fate::Unspecified, Effect::Unspecified, 1, 1);
    assert_wrong(&open, "its intent has no fate");
    let mut story = tap(Fate::Completed, Effect::Applied, 1, 1);
    story.on_record = OnRecord::default();
    assert_wrong(&story, "and nothing is on record");
}

#[test]
fn callers_and_ledger_must_agree_unless_the_command_goes_on() {
    let mut story = tap(Fate::Completed, Effect::Applied, 1, 1);
    story.told = vec![Told::Receipt(receipt(Fate::Unknown, Effect::Unknown))];
    assert_wrong(&story, "the ledger says");
    let refusal = |reason: &str| {
        let facts = [("fate", "UNKNOWN"), ("effect", "UNKNOWN")];
        Told::Refusal(Refusal {
            code: tonic::Code::Unknown,
            message: String::new(),
            reason: reason.to_owned(),
            domain: "fleetgate".to_owned(),
            metadata: facts
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
            retry_delay: None,
            violations: Vec::new(),
        })
    };
    story.told = vec![refusal("FATE_UNKNOWN")];
    assert_wrong(&story, "the ledger says");
    story.told = vec![refusal("DEADLINE_EXCEEDED")];
    assert_eq!(story.violations(), Vec::<String>::new());
}

#[test]
fn an_unknown_fate_may_become_known_and_a_known_one_may_not_change() {
    let mut story = tap(Fate::Completed, Effect::Applied, 1, 1);
    story.told = vec![Told::Receipt(receipt(Fate::Unknown, Effect::Unknown))];
    story.on_record.history = vec![
        change(Fate::Unknown, Effect::Unknown),
        change(Fate::Completed, Effect::Applied),
    ];
    assert_eq!(story.violations(), Vec::<String>::new());
    story.on_record.history.reverse();
    assert_wrong(&story, "a fate was taken back");
    assert_wrong(&story, "not what was last said");
}

#[test]
fn a_reply_that_cannot_be_told_again_is_told_as_lost() {
    let mut story = tap(Fate::Completed, Effect::Applied, 1, 1);
    let lost = receipt(Fate::CompletedResultLost, Effect::Applied);
    story.told = vec![Told::Receipt(lost.clone())];
    assert_wrong(&story, "the ledger says");
    story.told = vec![Told::Receipt(CommandReceipt {
        replayed: true,
        ..lost
    })];
    assert_eq!(story.violations(), Vec::<String>::new());
}
