//! Touch order, eviction and the gates of retention.

use fleetgate_runner::RunnerCode;

use super::*;

fn id(name: &str) -> CommandId {
    name.parse().unwrap()
}

fn ok() -> Bytes {
    Bytes::from_static(br#"{"ok":true,"data":{"message":"tapped"}}"#)
}

fn state(journal: &Journal, name: &str) -> JournalState {
    journal.look_up(&id(name)).state.unwrap()
}

fn finish_tap(journal: &mut Journal, name: &str) {
    journal.finish(&id(name), CommandKind::Tap, None, &ok());
}

#[test]
fn an_id_goes_from_accepted_to_started_to_completed() {
    let mut journal = Journal::default();
    assert_eq!(state(&journal, "a"), JournalState::NotAccepted);
    journal.accept(&id("a"), CommandKind::Tap);
    assert_eq!(state(&journal, "a"), JournalState::Accepted);
    journal.start(&id("a"));
    assert_eq!(state(&journal, "a"), JournalState::Started);
    finish_tap(&mut journal, "a");
    let entry = journal.look_up(&id("a"));
    assert_eq!(entry.state, Some(JournalState::Completed));
    assert_eq!(entry.command.as_deref(), Some("tap"));
    assert_eq!(entry.response_ok, Some(true));
    assert_eq!(entry.response_json.unwrap().as_bytes(), &ok()[..]);
}

#[test]
fn a_failure_keeps_its_code_and_its_envelope() {
    let mut journal = Journal::default();
    let error = RunnerError {
        code: RunnerCode::CommandFailed,
        message: "no".to_owned(),
        hint: Some("again".to_owned()),
    };
    let envelope = Bytes::from_static(b"{\"ok\":false}");
    journal.finish(&id("a"), CommandKind::Tap, Some(error.clone()), &envelope);
    let entry = journal.look_up(&id("a"));
    assert_eq!(entry.state, Some(JournalState::Failed));
    assert_eq!(entry.response_ok, Some(false));
    assert_eq!(entry.error, Some(error));
    assert!(entry.response_json.is_some());
}

#[test]
fn the_least_recently_touched_of_65_is_evicted() {
    let mut journal = Journal::default();
    for n in 0..MAX_ENTRIES {
        journal.accept(&id(&format!("c{n}")), CommandKind::Tap);
    }
    journal.accept(&id("one-more"), CommandKind::Tap);
    assert_eq!(state(&journal, "c0"), JournalState::NotAccepted);
    assert_eq!(state(&journal, "c1"), JournalState::Accepted);
}

#[test]
fn finishing_touches_while_starting_and_looking_up_do_not() {
    let mut journal = Journal::default();
    for n in 0..MAX_ENTRIES {
        journal.accept(&id(&format!("c{n}")), CommandKind::Tap);
    }
    finish_tap(&mut journal, "c0");
    journal.start(&id("c1"));
    journal.look_up(&id("c1"));
    journal.accept(&id("one-more"), CommandKind::Tap);
    assert_eq!(state(&journal, "c0"), JournalState::Completed);
    assert_eq!(state(&journal, "c1"), JournalState::NotAccepted);
}

#[test]
fn an_id_that_was_evicted_while_it_ran_is_back_when_it_ends() {
    let mut journal = Journal::default();
    journal.accept(&id("long"), CommandKind::Type);
    for n in 0..MAX_ENTRIES {
        journal.accept(&id(&format!("c{n}")), CommandKind::Viewport);
    }
    assert_eq!(state(&journal, "long"), JournalState::NotAccepted);
    journal.start(&id("long"));
    assert_eq!(state(&journal, "long"), JournalState::NotAccepted);
    journal.finish(&id("long"), CommandKind::Type, None, &ok());
    assert_eq!(state(&journal, "long"), JournalState::Completed);
}

#[test]
fn accepting_a_finished_id_again_forgets_how_it_ended() {
    let mut journal = Journal::default();
    finish_tap(&mut journal, "a");
    journal.accept(&id("a"), CommandKind::Tap);
    let entry = journal.look_up(&id("a"));
    assert_eq!(
        (entry.state, entry.response_ok),
        (Some(JournalState::Accepted), None)
    );
    assert_eq!(entry.response_json, None);
}

#[test]
fn an_envelope_of_16_kib_is_kept_and_one_byte_more_is_not() {
    let mut journal = Journal::default();
    let exactly = Bytes::from(vec![b' '; MAX_RETAINED_BYTES]);
    let more = Bytes::from(vec![b' '; MAX_RETAINED_BYTES + 1]);
    journal.finish(&id("a"), CommandKind::Type, None, &exactly);
    journal.finish(&id("b"), CommandKind::Type, None, &more);
    assert!(journal.look_up(&id("a")).response_json.is_some());
    let lost = journal.look_up(&id("b"));
    assert_eq!(
        (lost.state, lost.response_json),
        (Some(JournalState::Completed), None)
    );
}

#[test]
fn the_replies_of_snapshots_and_screenshots_are_never_kept() {
    let mut journal = Journal::default();
    journal.finish(&id("a"), CommandKind::Snapshot, None, &ok());
    journal.finish(&id("b"), CommandKind::Screenshot, None, &ok());
    assert_eq!(journal.look_up(&id("a")).response_json, None);
    assert_eq!(journal.look_up(&id("b")).response_json, None);
}
