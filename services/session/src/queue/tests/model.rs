//! The queue against models in plain words.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tokio::sync::watch;

use super::*;

/// So many give leave; there is some that nobody withdraws besides.
const GIVERS: usize = 2;

/// Those who give leave now, and those who have withdrawn it.
struct Givers {
    now: Vec<(Giver, Leave)>,
    past: Vec<Giver>,
}

type Giver = watch::Sender<Option<Withdrawn>>;

impl Givers {
    fn new() -> Self {
        Self {
            now: (0..GIVERS).map(|_| leave()).collect(),
            past: Vec::new(),
        }
    }

    fn leave(&self, by: usize) -> Leave {
        let given = self.now.get(by).map(|(_, leave)| leave.clone());
        given.unwrap_or_else(Leave::unconditional)
    }

    /// What was given until now is withdrawn; what will be is not.
    fn withdraw(&mut self, by: usize) {
        let (giver, _) = mem::replace(&mut self.now[by], leave());
        giver.send_replace(Some(withdrawn("LEASE_EXPIRED")));
        self.past.push(giver);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Push {
        what: usize,
        deadline: Option<u64>,
        by: usize,
    },
    Again {
        of: usize,
        what: usize,
        deadline: Option<u64>,
        by: usize,
    },
    Withdraw {
        by: usize,
    },
    Start,
    StartShut,
    Finish,
    Advance(u64),
    Drain,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0_usize..5, prop::option::of(1_u64..20), 0..=GIVERS)
            .prop_map(|(what, deadline, by)| Step::Push { what, deadline, by }),
        3 => (0_usize..8, 0_usize..5, prop::option::of(1_u64..20), 0..=GIVERS)
            .prop_map(|(of, what, deadline, by)| Step::Again { of, what, deadline, by }),
        2 => (0..GIVERS).prop_map(|by| Step::Withdraw { by }),
        3 => Just(Step::Start),
        1 => Just(Step::StartShut),
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
        let mut givers = Givers::new();
        // By whose leave each caller's command may be sent for its sake.
        let mut leaves = BTreeMap::new();
        for (name, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { what, deadline, by } => {
                    let deadline = deadline.map(|secs| now + Duration::from_secs(secs));
                    asked.push((name, what));
                    let leave = givers.leave(by);
                    leaves.insert(name, leave.clone());
                    let turn = Turn { leave, ..turn(name, command(what), deadline) };
                    match queue.push(turn, Caller { deadline, to: name }) {
                        Ok(()) => prop_assert!(inside.insert(name)),
                        Err(full) => {
                            prop_assert_eq!((full.to, &full.why), (name, &Refusal::Full));
                            prop_assert!(queue.len() == CAPACITY || what >= 3);
                        }
                    }
                }
                Step::Again { of, what, deadline, by } => {
                    // One of the latest names, if its command is still here.
                    let Some((first, theirs)) = asked.iter().rev().nth(of).copied() else {
                        continue;
                    };
                    if !queue.holds(&id(&format!("c-{first}"))) {
                        continue;
                    }
                    let deadline = deadline.map(|secs| now + Duration::from_secs(secs));
                    let before = queue.len();
                    let leave = givers.leave(by);
                    // A mutation's is the first's.
                    let mine = if what == 0 { leaves[&first].clone() } else { leave.clone() };
                    leaves.insert(name, mine);
                    let again = Turn { leave, ..turn(first, command(what), deadline) };
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
                Step::StartShut => {
                    let before = queue.len();
                    prop_assert!(queue.start(now, Gate::Shut, |_| true).is_none());
                    prop_assert_eq!(queue.len(), before, "nothing leaves by a gate that is shut");
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
                Step::Withdraw { by } => {
                    let waiting = |queue: &Queue<usize>| -> BTreeSet<usize> {
                        let callers = queue.waiting.iter().flat_map(|entry| &entry.callers);
                        callers.map(|caller| caller.to).collect()
                    };
                    givers.withdraw(by);
                    let before = waiting(&queue);
                    let mut commands_left = queue.len();
                    for (cut, why) in queue.withdraw() {
                        prop_assert!(inside.remove(&cut.to), "answered twice");
                        prop_assert!(before.contains(&cut.to), "it runs");
                        prop_assert_eq!(leaves[&cut.to].withdrawn(), Some(why));
                        commands_left -= usize::from(cut.last);
                    }
                    prop_assert_eq!(queue.len(), commands_left);
                    for caller in waiting(&queue) {
                        prop_assert!(!leaves[&caller].is_withdrawn(), "left waiting");
                    }
                    prop_assert!(!queue.leaves().any(Leave::is_withdrawn));
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
        // Nothing is left that goes by anybody's leave.
        drop(leaves);
        prop_assert!(givers.past.iter().all(watch::Sender::is_closed));
        prop_assert!(givers.now.iter().all(|(giver, _)| giver.receiver_count() == 1));
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
