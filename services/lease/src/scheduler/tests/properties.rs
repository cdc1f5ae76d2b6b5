//! What holds whatever happens. What holds of the acts is the referee's to say,
//! which looks at all of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;

use super::support::*;
use super::world::{World, chance};
use crate::fleet::Slot;
use crate::scheduler::{Scheduler, Step};
use crate::{Act, Input, LeaseId, LeaseState, Obstacle, Refused};

/// What is said to stand in the way agrees with what was decided.
fn check_explanations(desk: &Desk) {
    let waiting: Vec<_> = desk.scheduler.waiting().collect();
    for (place, lease) in waiting.iter().enumerate() {
        let explanation = desk.scheduler.explain(lease.id(), desk.now).unwrap();
        let ahead = waiting[..place].iter().map(|lease| lease.id().clone());
        assert_eq!(explanation.ahead, ahead.collect::<Vec<_>>());
        assert_eq!(desk.scheduler.position(lease.id()), Some(place + 1));

        let kept = desk.referee.has(lease.id());
        let unobstructed = explanation.devices.iter().filter(|device| {
            let obstacle = &device.obstacle;
            matches!(obstacle, Obstacle::None | Obstacle::Busy)
        });
        let unobstructed: BTreeSet<_> = unobstructed.map(|device| device.udid.clone()).collect();
        if kept.is_empty() {
            let short = unobstructed.len() < explanation.wanted;
            assert!(short, "nothing is in the way of {}", lease.id());
            assert!(!lease.terms().queue_timeout.is_zero());
        } else {
            assert_eq!(kept.len(), explanation.wanted);
            assert!(kept.is_subset(&unobstructed));
        }
        for device in &explanation.devices {
            match &device.obstacle {
                Obstacle::Leased { lease, .. } => {
                    let holder = desk.scheduler.lease(lease).unwrap();
                    assert!(holder.devices().contains(&device.udid));
                    assert!(holder.state().is_open());
                }
                Obstacle::Reserved { lease: other } => {
                    assert_ne!(other, lease.id());
                    let is_kept = desk.referee.has(other).contains(&device.udid);
                    assert!(is_kept || explanation.ahead.contains(other));
                }
                Obstacle::Busy => assert!(kept.contains(&device.udid)),
                Obstacle::None
                | Obstacle::Detached
                | Obstacle::Quarantined
                | Obstacle::Cordoned
                | Obstacle::NotReady => {}
            }
        }
    }
}

/// Nothing is left that is due, and nothing is remembered that is over.
fn check_rest(desk: &Desk) {
    let next = desk.scheduler.next_timer();
    assert!(next.is_none_or(|next| next > desk.now));
    for lease in desk.scheduler.open() {
        let deadline = lease.deadline();
        assert!(deadline.is_none_or(|deadline| deadline > desk.now));
        assert!(deadline.is_none_or(|deadline| next.unwrap() <= deadline));
    }
}

proptest! {
    #[test]
    fn whatever_happens_it_can_be_done_and_explained_and_comes_to_an_end(
        chances in prop::collection::vec(chance(), 1..120),
    ) {
        let mut world = World::new();
        for chance in chances {
            for input in world.inputs(chance) {
                let before = world.desk.scheduler.clone();
                if world.desk.try_step(input).is_ok() {
                    check_rest(&world.desk);
                    check_explanations(&world.desk);
                } else {
                    let (before, after) = (format!("{before:?}"), format!("{:?}", world.desk.scheduler));
                    prop_assert_eq!(after, before, "refused, and changed something");
                }
            }
        }
        // Everybody goes home.
        for name in world.made().to_vec() {
            match world.desk.try_step(end(&name, crate::EndReason::Released)) {
                Ok(_) | Err(Refused::NotFound) => {}
                Err(refused) => panic!("{refused}"),
            }
        }
        world.desk.all_idle();
        world.desk.pass(secs(0));
        prop_assert_eq!(world.desk.scheduler.open().count(), 0);
        prop_assert_eq!(world.desk.scheduler.next_timer(), None);
        for name in world.made() {
            prop_assert!(world.desk.referee.has(&id(name)).is_empty());
            prop_assert_eq!(world.desk.scheduler.lease(&id(name)), None);
        }
    }

    /// Equal wants, equal priority, one phone each.
    #[test]
    fn who_came_first_is_granted_first(
        phones in 1..5_u64,
        turns in prop::collection::vec(prop::option::weighted(0.4, any::<Index>()), 1..60),
    ) {
        let mut desk = Desk::new(phones);
        let mut made = 0;
        for turn in turns {
            if let Some(index) = turn {
                let active = desk.scheduler.open().filter(|lease| lease.state() == LeaseState::Active);
                let active: Vec<_> = active.map(|lease| lease.id().to_string()).collect();
                if !active.is_empty() {
                    desk.release(index.get::<String>(&active));
                }
            } else {
                desk.ask(wish(&format!("w{made:03}"), some(1)));
                made += 1;
            }
            desk.all_idle();
        }
        let granted = desk.referee.leases().filter_map(|lease| {
            lease.epoch().map(|epoch| (epoch, lease.id().clone()))
        });
        let by_epoch: BTreeMap<_, _> = granted.collect();
        let ids: Vec<_> = by_epoch.into_values().collect();
        let expected = (0..ids.len()).map(|number| id(&format!("w{number:03}")));
        prop_assert_eq!(&ids, &expected.collect::<Vec<_>>());
        // None of them waits while a phone is free.
        let held = desk.scheduler.open().filter(|lease| lease.state() == LeaseState::Active).count();
        let waits = desk.scheduler.waiting().count();
        prop_assert!(waits == 0 || u64::try_from(held) == Ok(phones));
    }

    /// All phones are in service, everybody else wants just one of them, and
    /// for each that is given back there is another one who wants it.
    #[test]
    fn a_lease_of_many_does_not_starve(
        phones in 2..8_u64,
        wanted in any::<Index>(),
        held in any::<Index>(),
        releases in prop::collection::vec(any::<Index>(), 8),
    ) {
        let mut desk = Desk::new(phones);
        let pick = |index: Index| index.index(usize::try_from(phones).unwrap());
        let singles = |names: std::ops::Range<usize>, desk: &mut Desk| {
            for number in names {
                desk.ask(wish(&format!("s{number}"), some(1)));
            }
            desk.all_idle();
        };
        let held = 1 + pick(held);
        singles(0..held, &mut desk);
        let many = u32::try_from(2 + pick(wanted)).unwrap().min(u32::try_from(phones).unwrap());
        desk.ask(wish("many", some(many)));
        let mut made = held;
        let mut left: Vec<_> = (0..held).map(|number| format!("s{number}")).collect();
        for release in releases {
            // More and more want one.
            desk.all_idle();
            singles(made..made + 2, &mut desk);
            made += 2;
            if desk.state("many") != LeaseState::Queued || left.is_empty() {
                break;
            }
            let next = left.swap_remove(release.index(left.len()));
            desk.release(&next);
            desk.all_idle();
        }
        prop_assert_eq!(desk.state("many"), LeaseState::Active);
        // Nobody else got one before it.
        for lease in desk.scheduler.open() {
            let is_late = lease.epoch().is_some_and(|epoch| epoch > desk.lease("many").epoch().unwrap());
            let is_early = lease.id().as_str() < format!("s{held}").as_str();
            prop_assert!(lease.id() == &id("many") || is_late || is_early || lease.epoch().is_none());
        }
    }

    #[test]
    fn it_goes_on_after_a_restart_as_if_there_had_been_none(
        before in prop::collection::vec(chance(), 1..80),
        after in prop::collection::vec(chance(), 1..40),
    ) {
        let mut world = World::new();
        for chance in before {
            for input in world.inputs(chance) {
                let _ = world.desk.try_step(input);
            }
        }
        let (mut again, _) = world.desk.restarted();
        forget(&mut world.desk);
        world.desk.referee = again.referee.clone();

        // Both are told of the phones, as a gateway that starts is.
        let views = views(&world.desk.scheduler);
        let told = Input::Devices(views);
        let mut said = vec![(world.desk.try_step(told.clone()), again.try_step(told))];
        for chance in after {
            for input in world.inputs(chance) {
                again.now = world.desk.now;
                said.push((world.desk.try_step(input.clone()), again.try_step(input)));
            }
        }
        for (one, other) in said {
            prop_assert_eq!(one.map(without_turns), other.map(without_turns));
        }
    }
}

/// Turns are counted on from those that are left; their order is what counts.
fn without_turns(acts: Vec<Act>) -> Vec<Act> {
    let acts = acts.into_iter().map(|act| match act {
        Act::Changed(mut lease, what) => {
            lease.turn = 0;
            Act::Changed(lease, what)
        }
        Act::Close(..) | Act::Open(..) | Act::Free(_) => act,
    });
    acts.collect()
}

fn views(scheduler: &Scheduler) -> Vec<crate::DeviceView> {
    let numbers = scheduler.fleet.by_udid();
    let views = numbers.filter_map(|number| scheduler.fleet.device(number).view.clone());
    views.collect()
}

/// Makes a scheduler forget what is lost in a restart: what was kept for whom,
/// when phones were granted that nobody has any more, and which of those that
/// drain are idle.
fn forget(desk: &mut Desk) {
    let scheduler = &mut desk.scheduler;
    let mut step = Step {
        now: desk.now,
        wall: std::time::UNIX_EPOCH,
        acts: Vec::new(),
        freed: BTreeMap::new(),
    };
    let waiting: Vec<LeaseId> = scheduler.waiting.values().cloned().collect();
    for id in waiting {
        scheduler.give_up(&id, &mut step);
    }
    let numbers: Vec<_> = scheduler.fleet.by_udid().collect();
    for number in numbers {
        match scheduler.fleet.device(number).slot().clone() {
            Slot::Free => scheduler.fleet.forget_grant(number),
            Slot::Draining { lease, .. } => {
                let slot = Slot::Draining { lease, idle: false };
                scheduler.fleet.put(number, slot);
            }
            Slot::Reserved { .. } | Slot::Held { .. } => {}
        }
    }
}
