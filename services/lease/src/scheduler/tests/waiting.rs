//! What happens to those that wait: times, and phones that come and go.

use super::support::*;
use crate::*;

#[test]
fn a_lease_waits_until_its_queue_timeout_and_not_longer() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    desk.ask(patient(secs(10), wish("a", some(1))));
    assert_eq!(desk.lease("a").deadline(), Some(at(10)));
    assert_eq!(desk.scheduler.next_timer(), Some(at(10)));
    desk.now = at(9);
    assert_eq!(desk.pass(secs(0)), "");
    assert_eq!(desk.pass(secs(1)), "a Ended");
    assert_eq!(desk.state("a"), LeaseState::Expired);
    assert_eq!(desk.reason("a"), EndReason::QueueTimeout);
}

#[test]
fn a_lease_whose_time_is_up_is_not_granted_though_its_phone_is_idle_now() {
    let mut desk = Desk::new(1);
    desk.ask(patient(secs(10), wish("a", some(1))));
    desk.ask(wish("b", some(1)));
    desk.now = at(10);
    // An answer to the question that was asked for `a`.
    assert_eq!(desk.idle(1), "a Ended, close 1 b");
    assert_eq!(desk.idle(1), "b Granted, open 1 b");
}

#[test]
fn a_lease_that_does_not_wait_is_granted_once_its_phone_is_idle() {
    let mut desk = Desk::new(1);
    let made = desk.ask(patient(secs(0), wish("a", some(1))));
    assert_eq!(made, "a Created, close 1 a");
    assert_eq!(desk.lease("a").deadline(), None);
    // However long that takes.
    assert_eq!(desk.pass(secs(90)), "");
    assert_eq!(desk.idle(1), "a Granted, open 1 a");
}

#[test]
fn a_lease_that_does_not_wait_ends_at_once_if_nothing_is_free() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    let made = desk.ask(patient(secs(0), wish("a", some(1))));
    assert_eq!(made, "a Created, a Ended");
    assert_eq!(desk.reason("a"), EndReason::QueueTimeout);
}

#[test]
fn a_lease_that_does_not_wait_keeps_nothing_back_from_those_that_do() {
    let mut desk = Desk::new(2);
    desk.hold(wish("holder", these(&[1])));
    // Both begin in one step, and the one that does not wait is the first.
    desk.ask(later(10, patient(secs(0), urgent(9, wish("now", some(2))))));
    desk.ask(later(10, wish("single", some(1))));
    assert_eq!(
        desk.pass(secs(10)),
        "now Queued, single Queued, close 2 single, now Ended"
    );
    assert_eq!(desk.reason("now"), EndReason::QueueTimeout);
}

#[test]
fn a_lease_that_does_not_wait_ends_when_it_loses_what_was_kept_for_it() {
    let mut desk = Desk::new(1);
    desk.ask(patient(secs(0), wish("a", some(1))));
    let lost = desk.see(1, Service::Detached);
    assert_eq!(lost, "a Ended, free 1");
    // Or gets another one instead.
    let mut desk = Desk::new(2);
    desk.ask(patient(secs(0), wish("a", some(1))));
    let lost = desk.see(1, Service::Detached);
    assert_eq!(lost, "close 2 a, free 1");
}

#[test]
fn what_is_unplugged_while_it_is_kept_for_a_lease_is_given_up_and_looked_for_again() {
    for service in [
        Service::Detached,
        Service::Quarantined,
        Service::Cordoned,
        Service::NotReady,
    ] {
        let mut desk = Desk::new(3);
        desk.ask(wish("a", some(2)));
        desk.idle(2);
        // All of it, since it is all or nothing; what it gets again is asked again.
        let lost = desk.see(1, service);
        assert_eq!(lost, "close 2 a, close 3 a, free 1");
        assert_eq!(desk.idle(3), "");
        assert_eq!(desk.idle(2), "a Granted, open 2 a, open 3 a");
    }
}

#[test]
fn what_is_given_up_goes_to_whoever_is_next() {
    let mut desk = Desk::new(2);
    desk.ask(wish("pair", some(2)));
    desk.ask(wish("single", some(1)));
    let lost = desk.see(1, Service::Cordoned);
    assert_eq!(lost, "close 2 single, free 1");
    assert_eq!(desk.queue(), "pair single");
}

#[test]
fn a_phone_that_no_longer_matches_is_given_up() {
    let mut desk = Desk::new(2);
    desk.ask(wish("a", of_rack("a", 1)));
    let moved = vec![view(1, "b", Service::InService)];
    assert_eq!(desk.told(Input::Devices(moved)), "close 2 a, free 1");
    // One that is held is not.
    desk.all_idle();
    let moved = vec![view(2, "b", Service::InService)];
    assert_eq!(desk.told(Input::Devices(moved)), "");
    assert_eq!(desk.state("a"), LeaseState::Active);
}

#[test]
fn a_lease_of_named_phones_waits_until_none_of_them_is_cordoned() {
    let mut desk = Desk::new(2);
    desk.see(2, Service::Cordoned);
    assert_eq!(desk.ask(wish("pair", these(&[1, 2]))), "pair Created");
    let given = desk.see(2, Service::InService);
    assert_eq!(given, "close 1 pair, close 2 pair");
}

#[test]
fn a_new_phone_is_given_to_who_waits_for_it() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    desk.ask(wish("a", some(1)));
    assert_eq!(desk.see(2, Service::InService), "close 2 a");
    // Or one that is labelled as it should be.
    let mut desk = Desk::new(1);
    desk.told(Input::Devices(vec![view(2, "b", Service::InService)]));
    desk.hold(wish("holder", of_rack("a", 1)));
    desk.ask(wish("a", of_rack("a", 1)));
    assert_eq!(desk.see(2, Service::InService), "close 2 a");
}

#[test]
fn a_lease_begins_to_wait_when_its_time_comes_and_behind_those_that_wait_by_then() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    let made = desk.ask(later(10, wish("later", some(1))));
    assert_eq!(made, "later Created");
    assert_eq!(desk.state("later"), LeaseState::Scheduled);
    assert_eq!(desk.lease("later").deadline(), Some(at(310)));
    assert_eq!(desk.scheduler.position(&id("later")), None);
    assert_eq!(desk.scheduler.next_timer(), Some(at(10)));
    desk.ask(wish("a", some(1)));
    assert_eq!(desk.pass(secs(10)), "later Queued");
    assert_eq!(desk.queue(), "a later");
    assert_eq!(desk.lease("later").deadline(), Some(at(310)));
}

#[test]
fn a_lease_that_begins_is_judged_and_given_phones_by_then() {
    let mut desk = Desk::new(0);
    // There is no such phone yet.
    desk.ask(later(10, wish("later", these(&[1]))));
    desk.ask(later(10, patient(secs(0), wish("now", these(&[2])))));
    desk.see(1, Service::InService);
    assert_eq!(
        desk.pass(secs(10)),
        "later Queued, now Queued, now Ended, close 1 later"
    );
    assert_eq!(desk.reason("now"), EndReason::Unsatisfiable);
}

#[test]
fn of_those_that_begin_late_the_one_that_was_to_begin_first_is_first() {
    let mut desk = Desk::new(1);
    desk.ask(later(20, wish("b", some(1))));
    desk.ask(later(10, wish("a", some(1))));
    assert_eq!(desk.pass(secs(30)), "a Queued, b Queued, close 1 a");
    // Its patience counts from when it could wait.
    assert_eq!(desk.lease("b").deadline(), Some(at(330)));
}

#[test]
fn a_begin_that_has_passed_means_at_once() {
    let mut desk = Desk::new(1);
    desk.now = at(10);
    let made = desk.ask(later(10, wish("a", some(1))));
    assert_eq!(made, "a Created, close 1 a");
}

#[test]
fn phones_that_are_told_of_in_the_step_in_which_a_lease_begins_count() {
    let mut desk = Desk::new(0);
    desk.ask(later(10, wish("a", these(&[1]))));
    desk.now = at(10);
    assert_eq!(desk.see(1, Service::InService), "a Queued, close 1 a");
}
