//! Notes come and go.

use fleetgate_runner::{
    AppAction, AppCommand, Button, Command, DeviceCommand, Effect, Fate, TypedText,
};
use fleetgate_session::Receipt;

use super::*;

fn device() -> Udid {
    "00008110-000978540290401E".parse().unwrap()
}

fn asked(command: DeviceCommand) -> Asked {
    let (device, command_id) = ("phone".to_owned(), id("c-1"));
    Asked {
        device,
        command_id,
        named: true,
        command: Command::Device(command),
        lease: None,
    }
}

fn id(text: &str) -> CommandId {
    text.parse().unwrap()
}

#[expect(clippy::result_large_err, reason = "what a session answers")]
fn failed(command_id: &str, failure: Failure) -> Result<Success, Failed> {
    let receipt = Receipt {
        command_id: id(command_id),
        kind: CommandKind::Shutdown,
        fate: Fate::NotSent,
        effect: Effect::None,
        reactivated: false,
        warning: None,
        attempts: 0,
        recovered: false,
        queue_wait: Duration::ZERO,
        device_time: Duration::ZERO,
    };
    Err(Failed { receipt, failure })
}

fn is_noted(pending: &Pending) -> bool {
    pending.get(&id("c-1")).is_some()
}

fn handed_over(pending: &Pending, command: DeviceCommand) -> Admitted {
    let mut admitted = pending.admit(&device(), &asked(command)).unwrap();
    admitted.handed_over();
    admitted
}

#[test]
fn a_mutation_stays_noted_when_its_caller_leaves_and_until_it_has_a_fate() {
    let pending = Pending::default();
    drop(handed_over(&pending, DeviceCommand::Shutdown));
    assert!(is_noted(&pending));
    pending.forget(&id("c-1"));
    assert!(!is_noted(&pending));
}

#[test]
fn the_note_of_what_was_not_handed_over_goes_with_its_caller() {
    let pending = Pending::default();
    let admit = || {
        pending
            .admit(&device(), &asked(DeviceCommand::Shutdown))
            .unwrap()
    };
    drop(admit());
    assert!(!is_noted(&pending));

    let (first, mut second) = (admit(), admit());
    drop(first);
    assert!(is_noted(&pending));
    second.handed_over();
    second.answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
    assert!(!is_noted(&pending), "nobody owns it any more");
}

#[test]
fn the_note_of_a_read_goes_with_its_caller() {
    let pending = Pending::default();
    let admitted = handed_over(&pending, DeviceCommand::Screenshot);
    assert!(is_noted(&pending));
    drop(admitted);
    assert!(!is_noted(&pending));
}

#[test]
fn an_answer_ends_the_note_unless_the_command_goes_on() {
    let pending = Pending::default();
    let admit = || {
        pending
            .admit(&device(), &asked(DeviceCommand::Screenshot))
            .unwrap()
    };
    admit().answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
    assert!(!is_noted(&pending));
    admit().answered(&failed("another", Failure::DeadlineExceeded));
    assert!(!is_noted(&pending));
    admit().answered(&failed("c-1", Failure::DeadlineExceeded));
    assert!(is_noted(&pending));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_took_away_goes_with_age() {
    let pending = Pending::default();
    let admit = |number: usize| {
        let asked = Asked {
            command_id: id(&format!("c-{number}")),
            ..asked(DeviceCommand::Shutdown)
        };
        pending.admit(&device(), &asked).unwrap().handed_over();
    };
    (0..SWEEP_AT).for_each(admit);
    tokio::time::advance(MAX_AGE).await;
    admit(SWEEP_AT);
    assert_eq!(pending.lock().by_id.len(), 1);
}

fn typing(text: &str) -> Asked {
    let action = AppAction::Type {
        text: TypedText::new(text.to_owned()).unwrap(),
    };
    Asked {
        command: Command::App(AppCommand {
            bundle_id: "com.example.app".parse().unwrap(),
            action,
        }),
        ..asked(DeviceCommand::Shutdown)
    }
}

#[test]
fn the_same_request_joins_and_another_one_is_told_apart_to_the_letter() {
    let pending = Pending::default();
    let first = pending.admit(&device(), &typing("hunter2")).unwrap();
    let second = pending.admit(&device(), &typing("hunter2")).unwrap();
    assert!(first.is_first() && !second.is_first());

    let fields = |device: &Udid, asked: &Asked| pending.admit(device, asked).unwrap_err().fields;
    assert_eq!(fields(&device(), &typing("hunter3")), ["text"]);
    assert_eq!(fields(&device(), &typing("hunter")), ["text"]);
    assert_eq!(fields(&device(), &asked(DeviceCommand::Shutdown)), ["kind"]);
    let other = "00008020-00060D691AD8003A".parse().unwrap();
    assert_eq!(fields(&other, &typing("hunter2")), ["device"]);
    let button = asked(DeviceCommand::Button {
        button: Button::Home,
    });
    assert_eq!(fields(&other, &button), ["device", "kind"]);
}

#[test]
fn what_a_caller_that_joined_is_told_does_not_end_the_command_of_the_first() {
    let pending = Pending::default();
    let admit = || handed_over(&pending, DeviceCommand::Shutdown);
    let (first, second) = (admit(), admit());
    drop(first);
    second.answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
    assert!(is_noted(&pending), "the first one's command goes on");
    pending.forget(&id("c-1"));

    let (first, second) = (admit(), admit());
    first.answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
    assert!(is_noted(&pending), "the second may have been let in");
    second.answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
    assert!(!is_noted(&pending));
}

#[test]
fn who_held_a_note_that_went_does_not_take_away_the_next_one() {
    let pending = Pending::default();
    let admit = || {
        pending
            .admit(&device(), &asked(DeviceCommand::Screenshot))
            .unwrap()
    };
    let old = admit();
    pending.forget(&id("c-1"));
    let _new = admit();
    drop(old);
    assert!(is_noted(&pending));
}

#[test]
fn who_asks_once_the_first_was_told_the_end_is_first_although_others_wait() {
    let pending = Pending::default();
    let admit = || handed_over(&pending, DeviceCommand::Shutdown);
    let (first, joined) = (admit(), admit());
    assert!(!joined.is_first());
    first.answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
    let next = admit();
    assert!(next.is_first(), "there is nothing to join");
    assert!(!admit().is_first());
    joined.answered(&failed("c-1", Failure::NotUnderWay));
    assert!(is_noted(&pending), "the next one's command goes on");
    drop(next);
    assert!(is_noted(&pending), "and ends with a record");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_told_when_a_command_moves_on() {
    let pending = Pending::default();
    let moves = |what: fn(&Pending)| {
        let mut moved = tokio_test::task::spawn(pending.moved());
        assert!(moved.poll().is_pending());
        what(&pending);
        assert!(moved.is_woken());
    };
    moves(|pending| drop(pending.admit(&device(), &asked(DeviceCommand::Shutdown))));
    moves(|pending| {
        handed_over(pending, DeviceCommand::Shutdown).answered(&failed("c-1", Failure::Closed));
    });
    moves(|pending| pending.forget(&id("c-1")));
}
