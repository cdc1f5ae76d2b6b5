//! The queue takes what fits, once per stage, in order.

use super::*;

fn queue(faults: impl IntoIterator<Item = Fault>) -> FaultQueue {
    let mut queue = FaultQueue::default();
    faults.into_iter().for_each(|fault| queue.push(fault));
    queue
}

#[test]
fn a_fault_applies_as_often_as_it_says_and_is_gone() {
    let mut queue = queue([Fault::from(Injection::Busy).times(2)]);
    assert_eq!(
        queue.take(Stage::Gate, Some(CommandKind::Tap)),
        Some(Injection::Busy)
    );
    assert_eq!(
        queue.take(Stage::Gate, Some(CommandKind::Tap)),
        Some(Injection::Busy)
    );
    assert_eq!(queue.take(Stage::Gate, Some(CommandKind::Tap)), None);
    assert_eq!(queue.waiting(), []);
}

#[test]
fn a_fault_waits_for_its_command_and_its_stage() {
    let mut queue = queue([Fault::from(Injection::NotJson).on(CommandKind::Tap)]);
    assert_eq!(queue.take(Stage::Reply, Some(CommandKind::Drag)), None);
    assert_eq!(queue.take(Stage::Execution, Some(CommandKind::Tap)), None);
    assert_eq!(
        queue.take(Stage::Reply, Some(CommandKind::Tap)),
        Some(Injection::NotJson)
    );
}

#[test]
fn a_fault_lets_pass_what_it_is_told_to_skip() {
    let mut queue = queue([Fault::from(Injection::NeverEnds).skip(1)]);
    assert_eq!(queue.take(Stage::Execution, Some(CommandKind::Tap)), None);
    assert_eq!(
        queue.take(Stage::Execution, Some(CommandKind::Tap)),
        Some(Injection::NeverEnds)
    );
}

#[test]
fn status_meets_only_a_fault_that_names_it() {
    let mut queue = queue([
        Fault::from(Injection::NotJson),
        Fault::from(Injection::GarbageReply).on(CommandKind::CommandStatus),
    ]);
    let status = Some(CommandKind::CommandStatus);
    assert_eq!(
        queue.take(Stage::Reply, status),
        Some(Injection::GarbageReply)
    );
    assert_eq!(queue.take(Stage::Reply, status), None);
}

#[test]
fn a_fault_of_snapshots_leaves_other_commands_alone() {
    let mut queue = queue([Fault::from(Injection::SnapshotFailed)]);
    assert_eq!(queue.take(Stage::Execution, Some(CommandKind::Tap)), None);
    let snapshot = Some(CommandKind::Snapshot);
    assert_eq!(
        queue.take(Stage::Execution, snapshot),
        Some(Injection::SnapshotFailed)
    );
}

#[test]
fn a_fault_that_could_never_apply_is_refused() {
    let refused = |fault: Fault| fault.check().unwrap_err();
    let tap = CommandKind::Tap;
    assert_eq!(
        refused(Fault::from(Injection::Replug).on(tap)),
        InvalidFault::NamesACommand
    );
    assert_eq!(
        refused(Fault::from(Injection::EchoText).on(tap)),
        InvalidFault::WrongCommand {
            only: CommandKind::Type,
            on: tap
        }
    );
    assert_eq!(
        refused(Fault::from(Injection::Busy).on(CommandKind::Status)),
        InvalidFault::NeverQueued {
            on: CommandKind::Status
        }
    );
    assert_eq!(
        refused(Fault::from(Injection::Busy).times(0)),
        InvalidFault::Never
    );
    assert_eq!(
        Fault::from(Injection::NotJson)
            .on(CommandKind::Status)
            .check(),
        Ok(())
    );
}
