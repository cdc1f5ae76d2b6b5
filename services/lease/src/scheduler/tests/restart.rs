//! A gateway that ends and starts again.

use super::support::*;
use crate::*;

/// What a desk says that is told of the first phones again.
fn seen(desk: &mut Desk, phones: u64) -> String {
    let views = (1..=phones).map(|number| view(number, "a", Service::InService));
    desk.told(Input::Devices(views.collect()))
}

#[test]
fn a_lease_that_was_granted_keeps_its_phones_and_its_time() {
    let mut desk = Desk::new(2);
    desk.hold(wish("a", these(&[2])));
    desk.now = at(20);
    desk.renew("a");
    let (mut desk, said) = desk.restarted();
    assert_eq!(said, "open 2 a");
    assert_eq!(desk.lease("a").deadline(), Some(at(80)));
    assert_eq!(desk.scheduler.next_timer(), Some(at(80)));
    assert_eq!(seen(&mut desk, 2), "");
    assert_eq!(desk.ask(wish("b", these(&[2]))), "b Created");
    desk.now = at(79);
    assert_eq!(desk.renew("a"), "a Renewed");
    assert_eq!(desk.release("a"), "close 2 a, a Draining");
    assert_eq!(desk.idle(2), "a Ended, close 2 b");
}

#[test]
fn a_grant_after_a_restart_has_a_higher_epoch_than_all_before() {
    let mut desk = Desk::new(2);
    desk.hold(wish("a", some(1)));
    desk.hold(wish("b", some(1)));
    desk.release("b");
    desk.all_idle();
    // By what the ledger says …
    let (mut again, _) = desk.restarted();
    seen(&mut again, 2);
    again.hold(wish("c", some(1)));
    assert_eq!(again.lease("c").epoch().unwrap().get(), 3);
    // … and by the leases themselves.
    let open: Vec<_> = again.scheduler.open().cloned().collect();
    let (mut scheduler, _) = Scheduler::resume(open, 0, at(0));
    let wall = std::time::UNIX_EPOCH;
    let views = vec![view(9, "a", Service::InService)];
    scheduler.step(Input::Devices(views), at(0), wall).unwrap();
    scheduler
        .step(Input::Create(wish("d", these(&[9]))), at(0), wall)
        .unwrap();
    let device = phone(9);
    scheduler.step(Input::Idle { device }, at(0), wall).unwrap();
    assert_eq!(scheduler.lease(&id("d")).unwrap().epoch().unwrap().get(), 4);
}

#[test]
fn a_lease_that_drained_is_drained_again() {
    let mut desk = Desk::new(2);
    desk.hold(wish("a", some(2)));
    desk.told(end("a", EndReason::Revoked));
    desk.idle(1);
    let (mut desk, said) = desk.restarted();
    assert_eq!(said, "close 1 a, close 2 a");
    assert_eq!(desk.idle(2), "");
    // Also before anything is known of the phone.
    assert_eq!(desk.idle(1), "a Ended, free 1, free 2");
    assert_eq!(desk.state("a"), LeaseState::Revoked);
}

#[test]
fn what_was_kept_for_a_lease_is_not_after_a_restart() {
    let mut desk = Desk::new(1);
    desk.ask(wish("a", some(1)));
    desk.ask(urgent(1, wish("b", some(1))));
    let (mut desk, said) = desk.restarted();
    assert_eq!(said, "");
    assert_eq!(desk.queue(), "b a");
    assert_eq!(desk.lease("a").deadline(), Some(at(300)));
    assert_eq!(seen(&mut desk, 1), "close 1 b");
}

#[test]
fn those_that_wait_keep_their_order_and_new_ones_come_behind() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    // Neither by id nor by the wall clock.
    for name in ["c", "a", "b"] {
        desk.ask(wish(name, some(1)));
    }
    desk.ask(later(10, wish("later", some(1))));
    let (mut desk, _) = desk.restarted();
    seen(&mut desk, 1);
    assert_eq!(desk.queue(), "c a b");
    desk.ask(wish("d", some(1)));
    desk.pass(secs(10));
    assert_eq!(desk.queue(), "c a b d later");
}

#[test]
fn a_wish_for_later_begins_when_it_is_told_to() {
    let mut desk = Desk::new(1);
    desk.ask(later(10, wish("later", some(1))));
    let mut open: Vec<_> = desk.scheduler.open().cloned().collect();
    open[0].begin_at(at(4));
    assert_eq!(open[0].begin().unwrap().at, at(4));
    let (scheduler, _) = Scheduler::resume(open, 1, at(2));
    assert_eq!(scheduler.next_timer(), Some(at(4)));
    // Nothing is to be set of one that has begun.
    desk.pass(secs(10));
    let mut begun = desk.lease("later").clone();
    begun.begin_at(at(4));
    assert_eq!(begun, *desk.lease("later"));
}

#[test]
fn one_that_does_not_wait_is_gone_unless_its_phone_is_there_at_once() {
    let mut desk = Desk::new(1);
    desk.ask(patient(secs(0), wish("a", some(1))));
    let (mut again, _) = desk.restarted();
    assert_eq!(seen(&mut again, 1), "close 1 a");
    let (mut again, _) = desk.restarted();
    assert_eq!(again.see(1, Service::Detached), "a Ended");
    assert_eq!(again.reason("a"), EndReason::QueueTimeout);
}

#[test]
fn a_phone_that_two_leases_claim_is_that_of_the_later_grant() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    let earlier = desk.lease("a").clone();
    desk.release("a");
    desk.all_idle();
    desk.hold(wish("b", some(1)));
    let later = desk.lease("b").clone();
    let (mut scheduler, acts) = Scheduler::resume(vec![earlier, later], 3, at(0));
    assert_eq!(words(&acts), "open 1 b");
    // The other one ends all the same.
    let acts = scheduler.step(end("a", EndReason::Released), at(0), std::time::UNIX_EPOCH);
    assert_eq!(words(&acts.unwrap()), "a Draining, a Ended");
}

#[test]
fn what_has_ended_is_not_gone_on_with() {
    let mut desk = Desk::new(1);
    desk.ask(wish("a", some(1)));
    desk.release("a");
    let ended = desk.lease("a").clone();
    let (scheduler, acts) = Scheduler::resume(vec![ended], 1, at(0));
    assert_eq!((scheduler.open().count(), acts), (0, Vec::new()));
}

#[test]
fn the_clock_does_not_go_back() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(30);
    let (mut desk, _) = desk.restarted();
    desk.now = at(10);
    desk.renew("a");
    assert_eq!(desk.lease("a").deadline(), Some(at(90)));
}
