//! Ten thousand things that happen, to the scheduler and to the naive one.

use std::hash::{BuildHasher, Hasher, RandomState};

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::naive::Naive;
use super::world::{World, chance};
use crate::*;

const SEEDS: usize = 20;
const INPUTS: usize = 500;

fn compare(naive: &Naive, world: &World) {
    let scheduler = &world.desk.scheduler;
    let queue: Vec<_> = scheduler
        .waiting()
        .map(|lease| lease.id().clone())
        .collect();
    let expected = naive.queue().into_iter();
    let expected = expected.map(|at| naive.rows[at].asked.id.clone());
    assert_eq!(
        queue,
        expected.collect::<Vec<_>>(),
        "the order of those that wait"
    );
    let mut open = 0;
    for row in &naive.rows {
        let id = &row.asked.id;
        // What the scheduler has forgotten is on record.
        let mut on_record = world.desk.referee.leases();
        let lease = scheduler.lease(id);
        let lease = lease.or_else(|| on_record.find(|lease| lease.id() == id));
        let lease = lease.unwrap();
        assert_eq!(lease.state(), row.state, "{id}");
        assert_eq!(lease.end().map(|end| end.reason), row.reason, "{id}");
        assert_eq!(lease.epoch().map_or(0, Epoch::get), row.epoch, "{id}");
        assert_eq!(*lease.devices(), row.granted, "{id}");
        let phones = row.phones.iter().map(|(udid, _)| udid.clone());
        assert_eq!(world.desk.referee.has(id), phones.collect(), "{id}");
        if row.state == LeaseState::Active {
            assert_eq!(lease.deadline(), row.end().map(|(at, _)| at), "{id}");
        }
        assert_eq!(lease.priority(), row.asked.priority);
        assert_eq!(lease.terms(), row.asked.terms);
        assert_eq!(*lease.labels(), row.asked.labels);
        let waits = queue.iter().position(|waits| waits == id);
        assert_eq!(scheduler.position(id), waits.map(|place| place + 1));
        open += usize::from(row.state.is_open());
    }
    assert_eq!(scheduler.open().count(), open);
}

/// What happened, in numbers: a comparison of two that do nothing says nothing.
#[derive(Debug, Default)]
struct Tally {
    inputs: usize,
    refused: usize,
    granted: u64,
    ended: [usize; 7],
}

fn run(seed: u64, tally: &mut Tally) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let chances = chance();
    let (mut world, mut naive) = (World::new(), Naive::default());
    let enough = tally.inputs + INPUTS;
    while tally.inputs < enough {
        let chance = chances.new_tree(&mut runner).unwrap().current();
        for input in world.inputs(chance) {
            let expected = naive.step(&input, world.desk.now);
            let said = world.desk.try_step(input.clone());
            assert_eq!(
                said.as_ref().map(drop),
                expected.as_ref().map(drop),
                "{input:?}"
            );
            compare(&naive, &world);
            tally.inputs += 1;
            tally.refused += usize::from(said.is_err());
        }
    }
    tally.granted += world.desk.referee.last_epoch();
    for reason in naive.rows.iter().filter_map(|row| row.reason) {
        tally.ended[reason as usize] += 1;
    }
}

#[test]
fn ten_thousand_things_come_out_as_they_do_when_everything_is_looked_for_each_time() {
    // Others in each run; FLEETGATE_LEASE_SEED repeats one.
    let given = std::env::var("FLEETGATE_LEASE_SEED");
    let first = given.map_or_else(
        |_| RandomState::new().build_hasher().finish(),
        |seed| seed.parse().unwrap(),
    );
    let mut tally = Tally::default();
    for number in 0..SEEDS {
        let seed = first.wrapping_add(number as u64);
        println!("FLEETGATE_LEASE_SEED={seed}");
        run(seed, &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.inputs >= 10_000);
    assert!(tally.granted >= 500);
    assert!(tally.ended.iter().all(|count| *count >= 10));
}
