//! The queue's rules one by one, and against a model.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::job::Job;
use crate::testing::{bundle_id, id, screenshot, snapshot, tap, viewport};

fn turn(name: usize, command: Command<Point>, deadline: Option<Instant>) -> Turn<Point> {
    let command_id = id(&format!("c-{name}"));
    Turn::from(Job {
        command_id,
        command,
        deadline,
        caller: None,
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

#[derive(Debug, Clone)]
enum Step {
    Push {
        what: usize,
        deadline: Option<u64>,
    },
    Again {
        of: usize,
        what: usize,
        deadline: Option<u64>,
    },
    Start,
    Finish,
    Advance(u64),
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_usize..5, prop::option::of(1_u64..20))
            .prop_map(|(what, deadline)| Step::Push { what, deadline }),
        3 => (0_usize..8, 0_usize..5, prop::option::of(1_u64..20))
            .prop_map(|(of, what, deadline)| Step::Again { of, what, deadline }),
        3 => Just(Step::Start),
        3 => Just(Step::Finish),
        1 => (1_u64..5).prop_map(Step::Advance),
        1 => Just(Step::Drain),
    ];
    prop::collection::vec(step, 0..60)
}

fn command(what: usize) -> Command<Point> {
    match what {
        0 => tap(),
        1 => viewport(),
        2 => screenshot(),
        3 => snapshot("com.a"),
        _ => snapshot("com.b"),
    }
}

proptest! {
    /// A model in plain words: numbered callers, each in exactly one place.
    #[test]
    fn commands_run_in_order_one_at_a_time_and_no_caller_is_lost(steps in steps()) {
        const CAPACITY: usize = 4;
        let mut now = Instant::now();
        let mut queue = Queue::new(CAPACITY);
        let mut inside = BTreeSet::new();
        let mut last_started = None;
        let mut running = false;
        // What was asked for under each name, and by whom.
        let mut asked = Vec::new();
        for (name, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { what, deadline } => {
                    let deadline = deadline.map(|secs| now + Duration::from_secs(secs));
                    asked.push((name, what));
                    let turn = turn(name, command(what), deadline);
                    match queue.push(turn, Caller { deadline, to: name }) {
                        Ok(()) => prop_assert!(inside.insert(name)),
                        Err(full) => {
                            prop_assert_eq!((full.to, &full.why), (name, &Refusal::Full));
                            prop_assert!(queue.len() == CAPACITY || what >= 3);
                        }
                    }
                }
                Step::Again { of, what, deadline } => {
                    // One of the latest names, if its command is still here.
                    let Some((first, theirs)) = asked.iter().rev().nth(of).copied() else {
                        continue;
                    };
                    if !queue.holds(&id(&format!("c-{first}"))) {
                        continue;
                    }
                    let deadline = deadline.map(|secs| now + Duration::from_secs(secs));
                    let before = queue.len();
                    let again = turn(first, command(what), deadline);
                    match queue.push(again, Caller { deadline, to: name }) {
                        Ok(()) => {
                            prop_assert_eq!(what, theirs, "attached to another command");
                            prop_assert!(inside.insert(name));
                        }
                        Err(refused) if what == theirs => {
                            prop_assert_eq!(refused.why, Refusal::Full);
                        }
                        Err(refused) => {
                            prop_assert!(matches!(refused.why, Refusal::Conflict(fields) if !fields.is_empty()));
                        }
                    }
                    prop_assert_eq!(queue.len(), before, "one id, one command");
                }
                Step::Start => {
                    let waited = queue.len() > 0;
                    let started = queue.start(now, Gate::Open, |_| false);
                    prop_assert_eq!(started.is_some(), waited && !running);
                    if let Some(turn) = started {
                        running = true;
                        let number: usize = turn.command_id.as_str()[2..].parse().unwrap();
                        prop_assert!(last_started < Some(number), "started out of order");
                        last_started = Some(number);
                    }
                }
                Step::Finish => {
                    running = false;
                    for caller in queue.finish() {
                        prop_assert!(inside.remove(&caller), "answered twice");
                    }
                }
                Step::Advance(secs) => {
                    now += Duration::from_secs(secs);
                    let Expired { waiting, running } = queue.expire(now);
                    let callers = waiting.iter().map(|cut| cut.to);
                    for caller in callers.chain(running.iter().map(|(_, to)| *to)) {
                        prop_assert!(inside.remove(&caller), "answered twice");
                    }
                    prop_assert!(queue.next_deadline().is_none_or(|deadline| deadline > now));
                }
                Step::Drain => {
                    for cut in queue.drain() {
                        prop_assert!(inside.remove(&cut.to), "answered twice");
                    }
                    prop_assert_eq!(queue.len(), 0);
                }
            }
            prop_assert!(queue.len() <= CAPACITY);
            prop_assert_eq!(queue.running().is_some(), running);
        }
        // Whoever is still inside comes out at the end.
        let left = queue.finish().chain(queue.drain().into_iter().map(|cut| cut.to));
        prop_assert_eq!(left.collect::<BTreeSet<_>>(), inside);
    }

    /// Told apart by their number alone: who shares with whom.
    #[test]
    fn a_snapshot_is_shared_only_if_nothing_changed_the_screen_since(
        whats in prop::collection::vec(0_usize..5, 1..30),
        starts in 0_usize..3,
    ) {
        let mut queue = Queue::new(100);
        // For each app, the snapshot that may still be shared.
        let mut open = [None, None];
        let mut expected = 0_usize;
        for (name, what) in whats.into_iter().enumerate() {
            match what {
                0 | 1 => {
                    open = [None, None];
                    expected += 1;
                }
                2 => expected += 1,
                app => {
                    if open[app - 3].replace(name).is_none() {
                        expected += 1;
                    }
                }
            }
            prop_assert!(push(&mut queue, name, command(what)));
            if name < starts && queue.running().is_none() {
                start(&mut queue);
            }
            let running = usize::from(queue.running().is_some());
            prop_assert_eq!(queue.len() + running, expected);
        }
    }

    /// `last` marks each command that leaves the queue unsent exactly once.
    #[test]
    fn a_command_that_expires_is_reported_once(deadlines in prop::collection::vec(1_u64..6, 1..20)) {
        let now = Instant::now();
        let mut queue = Queue::new(100);
        for (name, secs) in deadlines.iter().enumerate() {
            let deadline = Some(now + Duration::from_secs(*secs));
            let turn = turn(name, snapshot("com.a"), deadline);
            queue.push(turn, Caller { deadline, to: name }).unwrap();
        }
        prop_assert_eq!(queue.len(), 1);
        let mut last = 0;
        for secs in 1..6 {
            let expired = queue.expire(now + Duration::from_secs(secs));
            let due = deadlines.iter().filter(|deadline| **deadline == secs).count();
            prop_assert_eq!(expired.waiting.len(), due);
            last += expired.waiting.iter().filter(|cut| cut.last).count();
        }
        prop_assert_eq!(last, 1);
        prop_assert_eq!(queue.len(), 0);
    }
}

#[test]
fn only_a_snapshot_names_an_app_to_share() {
    assert_eq!(snapshot_of(&snapshot("com.a")), Some(&bundle_id("com.a")));
    for other in [tap(), viewport(), screenshot()] {
        assert_eq!(snapshot_of(&other), None);
    }
}
