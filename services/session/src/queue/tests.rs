//! The queue's rules one by one.

use std::time::Duration;

use super::*;
use crate::job::Job;
use crate::leave::Leave;
use crate::origin::Origin;
use crate::testing::{bundle_id, id, leave, screenshot, snapshot, tap, viewport, withdrawn};

mod model;

fn turn(name: usize, command: Command<Point>, deadline: Option<Instant>) -> Turn<Point> {
    let command_id = id(&format!("c-{name}"));
    Turn::from(Job {
        command_id,
        command,
        deadline,
        origin: Origin::default(),
        leave: Leave::unconditional(),
    })
}

fn push(queue: &mut Queue<usize>, name: usize, command: Command<Point>) -> bool {
    let caller = Caller {
        deadline: None,
        to: name,
    };
    queue.push(turn(name, command, None), caller).is_ok()
}

fn start(queue: &mut Queue<usize>) -> Option<String> {
    let turn = queue.start(Instant::now(), Gate::Open, |_| false)?;
    Some(turn.command_id.to_string())
}

#[test]
fn an_equal_snapshot_shares_a_waiting_or_running_one() {
    let mut queue = Queue::new(8);
    push(&mut queue, 1, snapshot("com.a"));
    push(&mut queue, 2, snapshot("com.a"));
    assert_eq!(queue.len(), 1);
    start(&mut queue);
    push(&mut queue, 3, screenshot());
    push(&mut queue, 4, snapshot("com.a"));
    assert_eq!(queue.len(), 1, "only the screenshot waits");
    assert_eq!(queue.finish().collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
fn a_snapshot_is_not_shared_across_what_may_change_the_screen_or_between_apps() {
    for between in [tap(), viewport()] {
        let mut queue = Queue::new(8);
        push(&mut queue, 1, snapshot("com.a"));
        push(&mut queue, 2, between);
        push(&mut queue, 3, snapshot("com.a"));
        assert_eq!(queue.len(), 3);
    }
    let mut queue = Queue::new(8);
    push(&mut queue, 1, snapshot("com.a"));
    push(&mut queue, 2, snapshot("com.b"));
    assert_eq!(queue.len(), 2);
}

#[test]
fn a_full_queue_refuses_and_so_does_a_snapshot_with_too_many_callers() {
    let mut queue = Queue::new(2);
    assert!(push(&mut queue, 1, tap()) && push(&mut queue, 2, snapshot("com.a")));
    assert!(!push(&mut queue, 3, tap()));
    assert!(
        push(&mut queue, 4, snapshot("com.a")),
        "sharing takes no place"
    );
    assert!(!push(&mut queue, 5, snapshot("com.a")));
}

#[test]
fn a_read_that_nobody_waits_for_is_skipped_and_a_mutation_is_not() {
    let mut queue = Queue::new(8);
    push(&mut queue, 1, screenshot());
    push(&mut queue, 2, tap());
    let turn = queue.start(Instant::now(), Gate::Open, |_| true).unwrap();
    assert_eq!(turn.command_id, id("c-2"));
}

#[test]
fn sharing_extends_patience_to_the_latest_deadline() {
    let now = Instant::now();
    let at = |secs| Some(now + Duration::from_secs(secs));
    let mut queue = Queue::new(8);
    for (name, deadline) in [(1, at(1)), (2, at(5))] {
        let turn = turn(name, snapshot("com.a"), deadline);
        queue.push(turn, Caller { deadline, to: name }).unwrap();
    }
    let running = queue.start(now, Gate::Open, |_| false).unwrap();
    assert!(running.patience.lasts_past(now + Duration::from_secs(4)));
    assert!(!running.patience.lasts_past(now + Duration::from_secs(5)));
    assert_eq!(queue.next_deadline(), at(1));
    let expired = queue.expire(now + Duration::from_secs(1));
    assert_eq!(expired.running.len(), 1);
    assert_eq!(queue.next_deadline(), at(5));
}

#[test]
fn a_caller_with_the_id_of_an_equal_command_waits_for_that_one() {
    let mut queue = Queue::new(8);
    push(&mut queue, 1, tap());
    push(&mut queue, 2, tap());
    let again = |queue: &mut Queue<usize>, to| {
        let deadline = None;
        queue
            .push(turn(2, tap(), None), Caller { deadline, to })
            .is_ok()
    };
    assert!(again(&mut queue, 20));
    assert_eq!(queue.len(), 2);
    start(&mut queue);
    assert_eq!(queue.finish().collect::<Vec<_>>(), [1]);
    assert_eq!(start(&mut queue).as_deref(), Some("c-2"));
    assert!(again(&mut queue, 21), "it runs now");
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.finish().collect::<Vec<_>>(), [2, 20, 21]);
    assert!(!queue.holds(&id("c-2")));
}

#[test]
fn a_caller_with_the_id_of_another_command_is_told_what_differs() {
    let mut queue = Queue::new(8);
    push(&mut queue, 1, snapshot("com.a"));
    let mut conflict = |command| {
        let caller = Caller {
            deadline: None,
            to: 2,
        };
        queue.push(turn(1, command, None), caller).unwrap_err().why
    };
    assert_eq!(conflict(tap()), Refusal::Conflict(vec!["kind"]));
    let other_app = conflict(snapshot("com.b"));
    assert_eq!(other_app, Refusal::Conflict(vec!["app_bundle_id"]));
    start(&mut queue);
    let caller = Caller {
        deadline: None,
        to: 3,
    };
    let refused = queue.push(turn(1, tap(), None), caller).unwrap_err();
    assert_eq!(refused.why, Refusal::Conflict(vec!["kind"]), "it runs now");
    assert_eq!(queue.finish().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_caller_that_attaches_may_outlast_the_first_and_needs_no_place() {
    let now = Instant::now();
    let at = |secs| Some(now + Duration::from_secs(secs));
    let mut queue = Queue::new(1);
    for (to, deadline) in [(1, at(1)), (2, at(5))] {
        let caller = Caller { deadline, to };
        if to == 1 {
            queue.push(turn(1, tap(), deadline), caller).unwrap();
        } else {
            let refused = queue.push(turn(1, tap(), deadline), caller).unwrap_err();
            assert_eq!(refused.why, Refusal::Full, "one caller is the limit here");
        }
    }
    let mut queue = Queue::new(2);
    for (to, deadline) in [(1, at(1)), (2, at(5))] {
        let caller = Caller { deadline, to };
        queue.push(turn(1, tap(), deadline), caller).unwrap();
    }
    let expired = queue.expire(now + Duration::from_secs(1));
    assert!(expired.waiting.is_empty(), "it will be sent all the same");
    let to: Vec<_> = expired.running.iter().map(|(_, to)| *to).collect();
    assert_eq!(to, [1]);
    let running = queue.start(now, Gate::Open, |_| false).unwrap();
    assert!(running.patience.lasts_past(now + Duration::from_secs(4)));
}

#[test]
fn while_only_reads_may_start_they_pass_the_mutations_that_wait() {
    let mut queue = Queue::new(8);
    for (name, command) in [
        (1, tap()),
        (2, screenshot()),
        (3, tap()),
        (4, snapshot("com.a")),
    ] {
        push(&mut queue, name, command);
    }
    let mut next = |gate| {
        let turn = queue.start(Instant::now(), gate, |_| false)?;
        queue.finish().for_each(drop);
        Some(turn.command_id.to_string())
    };
    assert_eq!(next(Gate::Reads).as_deref(), Some("c-2"));
    assert_eq!(next(Gate::Reads).as_deref(), Some("c-4"));
    assert_eq!(next(Gate::Reads), None);
    assert_eq!(next(Gate::Open).as_deref(), Some("c-1"));
    assert_eq!(next(Gate::Open).as_deref(), Some("c-3"));
}

#[test]
fn by_a_gate_that_is_shut_nothing_starts_and_nothing_leaves() {
    let mut queue = Queue::new(8);
    push(&mut queue, 1, screenshot());
    push(&mut queue, 2, tap());
    let mut next = |gate, gone| queue.start(Instant::now(), gate, |_| gone);
    assert!(next(Gate::Shut, false).is_none());
    assert!(next(Gate::Shut, true).is_none());
    let first = next(Gate::Open, false).unwrap();
    assert_eq!(first.command_id, id("c-1"));
}

#[test]
fn room_is_made_by_whoever_waits_for_a_read_and_is_gone() {
    let mut queue = Queue::new(3);
    push(&mut queue, 1, tap());
    push(&mut queue, 2, snapshot("com.a"));
    push(&mut queue, 3, snapshot("com.a"));
    assert!(!queue.is_crowded());
    push(&mut queue, 4, snapshot("com.a"));
    assert!(queue.is_crowded(), "by those who share");
    queue.make_room(|to| *to == 3);
    assert!(!queue.is_crowded());
    push(&mut queue, 5, screenshot());
    assert!(queue.is_crowded(), "by those who wait");
    queue.make_room(|_| true);
    assert_eq!(queue.len(), 1, "a mutation has been asked for");
    assert_eq!(start(&mut queue).as_deref(), Some("c-1"));
    assert_eq!(queue.finish().collect::<Vec<_>>(), [1]);
}

fn push_by(
    queue: &mut Queue<usize>,
    name: usize,
    to: usize,
    command: Command<Point>,
    leave: &Leave,
) {
    let turn = Turn {
        leave: leave.clone(),
        ..turn(name, command, None)
    };
    let deadline = None;
    queue.push(turn, Caller { deadline, to }).unwrap();
}

/// Who was cut off from what, and whether that left the queue.
fn cut(queue: &mut Queue<usize>) -> Vec<(usize, bool)> {
    let cut = queue.withdraw().into_iter();
    cut.map(|(cut, _)| (cut.to, cut.last)).collect()
}

#[test]
fn what_waits_by_a_leave_that_is_withdrawn_leaves_the_queue_and_what_runs_keeps_it() {
    let ((giver, mine), (_other_giver, other)) = (leave(), leave());
    let mut queue = Queue::new(8);
    for (name, leave) in [(1, &mine), (2, &other), (3, &mine)] {
        push_by(&mut queue, name, name, tap(), leave);
    }
    push(&mut queue, 4, tap());
    drop((mine, other));
    start(&mut queue);
    assert!(cut(&mut queue).is_empty());
    giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    let cut = queue.withdraw();
    assert_eq!(cut.len(), 1);
    for (cut, why) in cut {
        assert_eq!((cut.to, cut.last), (3, true));
        assert_eq!(why, withdrawn("LEASE_EXPIRED"));
    }
    assert_eq!(queue.len(), 2);
    assert_eq!(
        giver.receiver_count(),
        2,
        "the one that runs, and its caller"
    );
    let expired = queue.expire(Instant::now() + Duration::from_secs(9));
    assert!(expired.running.is_empty());
    assert_eq!(queue.finish().collect::<Vec<_>>(), [1]);
    assert!(giver.is_closed());
}

#[test]
fn a_mutation_is_sent_by_the_leave_of_whoever_asked_first() {
    let ((first_giver, first), (second_giver, second)) = (leave(), leave());
    let mut queue = Queue::new(8);
    push_by(&mut queue, 1, 10, tap(), &first);
    push_by(&mut queue, 1, 11, tap(), &second);
    push_by(&mut queue, 1, 12, tap(), &Leave::unconditional());
    drop((first, second));
    assert!(second_giver.is_closed(), "nothing is done by it");
    second_giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    assert!(cut(&mut queue).is_empty());
    first_giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    assert_eq!(cut(&mut queue), [(10, false), (11, false), (12, true)]);
    assert!(queue.len() == 0 && first_giver.is_closed());
}

#[test]
fn a_shared_snapshot_goes_on_for_those_who_still_have_leave() {
    let ((first_giver, first), (second_giver, second)) = (leave(), leave());
    let mut queue = Queue::new(8);
    push_by(&mut queue, 1, 1, snapshot("com.a"), &first);
    push_by(&mut queue, 2, 2, snapshot("com.a"), &second);
    push_by(&mut queue, 3, 3, snapshot("com.a"), &Leave::unconditional());
    drop((first, second));
    first_giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    assert_eq!(cut(&mut queue), [(1, false)]);
    assert!(first_giver.is_closed(), "nothing is done by it any more");
    assert_eq!(start(&mut queue).as_deref(), Some("c-1"));
    second_giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    assert!(cut(&mut queue).is_empty(), "it runs");
    assert!(!second_giver.is_closed());
    assert_eq!(queue.finish().collect::<Vec<_>>(), [2, 3]);
    assert!(second_giver.is_closed());
}

#[test]
fn the_leave_of_a_caller_who_has_left_a_snapshot_does_not_outlast_its_withdrawal() {
    let now = Instant::now();
    let (giver, first) = leave();
    let mut queue = Queue::new(8);
    let deadline = Some(now + Duration::from_secs(1));
    let hasty = Turn {
        leave: first,
        ..turn(1, snapshot("com.a"), deadline)
    };
    queue.push(hasty, Caller { deadline, to: 1 }).unwrap();
    push(&mut queue, 2, snapshot("com.a"));
    assert_eq!(queue.expire(now + Duration::from_secs(1)).waiting.len(), 1);
    assert!(!giver.is_closed());
    giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
    assert!(queue.leaves().any(Leave::is_withdrawn), "it is noticed");
    assert!(cut(&mut queue).is_empty());
    assert!(giver.is_closed());
    assert_eq!(start(&mut queue).as_deref(), Some("c-1"));
}

#[test]
fn only_a_snapshot_names_an_app_to_share() {
    assert_eq!(snapshot_of(&snapshot("com.a")), Some(&bundle_id("com.a")));
    for other in [tap(), viewport(), screenshot()] {
        assert_eq!(snapshot_of(&other), None);
    }
}
