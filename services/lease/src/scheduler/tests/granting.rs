//! From the wish to the grant.

use super::support::*;
use crate::*;

#[test]
fn a_phone_is_closed_first_and_granted_once_it_is_idle() {
    let mut desk = Desk::new(1);
    assert_eq!(desk.ask(wish("a", some(1))), "a Created, close 1 a");
    assert_eq!(desk.state("a"), LeaseState::Queued);
    assert!(desk.lease("a").devices().is_empty());
    desk.now = at(5);
    assert_eq!(desk.idle(1), "a Granted, open 1 a");
    assert_eq!(desk.state("a"), LeaseState::Active);
    assert_eq!(desk.devices("a"), [1]);
    let lease = desk.lease("a");
    assert_eq!(lease.granted().unwrap().0, at(5));
    assert_eq!(lease.waited(), Some(at(5).since(at(0))));
    assert_eq!(lease.deadline(), Some(at(65)));
    assert_eq!(lease.latest_end(), Some(at(605)));
    assert_eq!(lease.expiring_at(), Some(at(45)));
}

#[test]
fn a_lease_of_many_is_granted_once_all_of_them_are_idle() {
    let mut desk = Desk::new(3);
    let kept = "a Created, close 1 a, close 3 a";
    assert_eq!(desk.ask(wish("a", these(&[1, 3]))), kept);
    assert_eq!(desk.idle(3), "");
    assert_eq!(desk.idle(1), "a Granted, open 1 a, open 3 a");
}

#[test]
fn that_a_phone_is_idle_is_of_no_interest_unless_it_was_asked() {
    let mut desk = Desk::new(1);
    assert_eq!(desk.idle(1), "");
    assert_eq!(desk.idle(7), "");
    desk.hold(wish("a", some(1)));
    assert_eq!(desk.idle(1), "");
    assert_eq!(desk.state("a"), LeaseState::Active);
}

#[test]
fn every_grant_has_a_higher_epoch_than_all_before_it() {
    let mut desk = Desk::new(2);
    for (turn, name) in ["a", "b", "c"].into_iter().enumerate() {
        desk.hold(wish(name, some(1)));
        assert_eq!(desk.lease(name).epoch().unwrap().get(), turn as u64 + 1);
        desk.release(name);
        desk.all_idle();
    }
}

#[test]
fn the_phone_that_was_granted_longest_ago_comes_first() {
    let mut desk = Desk::new(3);
    for (name, granted) in [("a", 1), ("b", 2), ("c", 3), ("d", 1)] {
        desk.hold(wish(name, some(1)));
        assert_eq!(desk.devices(name), [granted]);
        desk.release(name);
        desk.all_idle();
    }
    // One that never was comes before all that were.
    desk.see(9, Service::InService);
    desk.hold(wish("e", some(2)));
    assert_eq!(desk.devices("e"), [2, 9]);
}

#[test]
fn of_two_that_wait_the_older_is_served_first_and_a_more_urgent_one_before_both() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    desk.ask(wish("older", some(1)));
    desk.ask(wish("younger", some(1)));
    desk.ask(urgent(1, wish("urgent", some(1))));
    assert_eq!(desk.queue(), "urgent older younger");
    desk.release("holder");
    assert_eq!(
        desk.idle(1),
        "holder Ended, close 1 urgent",
        "not free in between"
    );
    assert_eq!(desk.queue(), "urgent older younger");
    desk.idle(1);
    assert_eq!(desk.queue(), "older younger");
}

#[test]
fn what_is_kept_for_a_lease_stays_so_when_a_more_urgent_one_comes() {
    let mut desk = Desk::new(1);
    desk.ask(wish("a", some(1)));
    desk.ask(urgent(9, wish("urgent", some(1))));
    assert_eq!(desk.idle(1), "a Granted, open 1 a");
}

#[test]
fn a_lease_of_many_keeps_back_what_there_is_while_the_others_come_back() {
    let mut desk = Desk::new(2);
    desk.hold(wish("one", these(&[1])));
    assert_eq!(desk.ask(wish("both", some(2))), "both Created");
    assert_eq!(
        desk.ask(wish("behind", some(1))),
        "behind Created",
        "phone 2 is free, but kept back"
    );
    desk.release("one");
    assert_eq!(desk.idle(1), "one Ended, close 2 both, close 1 both");
}

#[test]
fn one_behind_gets_what_the_one_before_it_has_no_use_for() {
    let mut desk = Desk::new(3);
    desk.hold(wish("one", these(&[1])));
    desk.ask(wish("pair", these(&[1, 2])));
    assert_eq!(
        desk.ask(wish("behind", some(1))),
        "behind Created, close 3 behind"
    );
}

#[test]
fn a_lease_on_phones_that_are_not_in_service_keeps_nothing_back() {
    for service in [
        Service::Detached,
        Service::Quarantined,
        Service::Cordoned,
        Service::NotReady,
    ] {
        let mut desk = Desk::new(2);
        desk.see(1, service);
        assert_eq!(desk.ask(wish("pair", these(&[1, 2]))), "pair Created");
        let given = desk.ask(wish("behind", some(1)));
        assert_eq!(given, "behind Created, close 2 behind");
        // Not in service, whoever holds the other.
        desk.all_idle();
        desk.ask(wish("last", some(1)));
        desk.release("behind");
        assert_eq!(desk.idle(2), "behind Ended, close 2 last");
        // It comes back.
        desk.all_idle();
        desk.release("last");
        desk.all_idle();
        let given = desk.see(1, Service::InService);
        assert_eq!(given, "close 1 pair, close 2 pair");
    }
}

#[test]
fn a_phone_that_is_held_and_not_in_service_is_not_coming_back() {
    let mut desk = Desk::new(2);
    desk.hold(wish("holder", these(&[1])));
    desk.see(1, Service::Cordoned);
    desk.ask(wish("pair", some(2)));
    assert_eq!(
        desk.ask(wish("behind", some(1))),
        "behind Created, close 2 behind"
    );
}

#[test]
fn a_lease_is_refused_that_makes_no_sense() {
    let mut desk = Desk::new(1);
    desk.ask(wish("a", some(1)));
    let refused = desk.refused(Input::Create(wish("a", some(1))));
    assert!(matches!(refused, Refused::Unusable(_)), "{refused}");
    let refused = desk.refused(Input::Create(wish("b", these(&[]))));
    assert!(matches!(refused, Refused::Unusable(_)), "{refused}");
    let mut nothing = wish("c", some(1));
    nothing.terms.ttl = std::time::Duration::from_micros(999);
    let refused = desk.refused(Input::Create(nothing));
    assert!(matches!(refused, Refused::Unusable(_)), "{refused}");
    let mut nothing = wish("d", some(1));
    nothing.terms.max_duration = secs(0);
    let refused = desk.refused(Input::Create(nothing));
    assert!(matches!(refused, Refused::Unusable(_)), "{refused}");
}

#[test]
fn times_count_in_whole_milliseconds() {
    let mut desk = Desk::new(1);
    let mut wish = wish("a", some(1));
    wish.terms.ttl = std::time::Duration::from_micros(2900);
    desk.hold(wish);
    let lease = desk.lease("a");
    assert_eq!(lease.terms().ttl, std::time::Duration::from_millis(2));
    let written = serde_json::to_string(lease).unwrap();
    assert_eq!(serde_json::from_str::<Lease>(&written).unwrap(), *lease);
}

#[test]
fn a_lease_that_no_fleet_could_satisfy_ends_when_it_is_made() {
    let mut desk = Desk::new(2);
    assert_eq!(desk.ask(wish("a", some(3))), "a Created, a Ended");
    assert_eq!(desk.state("a"), LeaseState::Unsatisfiable);
    let end = desk.lease("a").end().unwrap();
    assert_eq!(end.detail.as_deref(), Some("2 match, 3 wanted"));
    assert_eq!(end.by, None);
    assert_eq!(desk.ask(wish("b", these(&[1, 7]))), "b Created, b Ended");
    let end = desk.lease("b").end().unwrap();
    assert_eq!(end.detail.as_deref(), Some("1 matches, 2 wanted"));
    assert_eq!(desk.scheduler.next_timer(), None);
}

#[test]
fn a_lease_that_the_fleet_could_satisfy_waits_whatever_its_phones_are() {
    let mut desk = Desk::new(2);
    desk.see(1, Service::Quarantined);
    desk.see(2, Service::Detached);
    assert_eq!(desk.ask(wish("a", some(2))), "a Created");
    // Nor does it end when that changes.
    let other = vec![view(1, "b", Service::InService)];
    desk.ask(wish("b", of_rack("a", 2)));
    assert_eq!(desk.told(Input::Devices(other)), "");
    assert_eq!(desk.queue(), "a b");
}

#[test]
fn a_phone_that_left_where_its_owner_may_have_phones_is_not_granted_any_more() {
    let moved = |number, rack| Input::Devices(vec![view(number, rack, Service::InService)]);
    for wants in [these(&[1]), some(1)] {
        let mut desk = Desk::new(1);
        desk.hold(wish("holder", some(1)));
        desk.ask(bound_to("a", wish("a", wants)));
        assert_eq!(desk.told(moved(1, "b")), "");
        desk.release("holder");
        assert_eq!(desk.idle(1), "holder Ended, free 1");
        assert_eq!(desk.state("a"), LeaseState::Queued);
        assert_eq!(desk.explain("a").to_string(), "0 match, 1 wanted");
        // What is kept for it is let go of as well.
        assert_eq!(desk.told(moved(1, "a")), "close 1 a");
        assert_eq!(desk.told(moved(1, "b")), "free 1");
        assert_eq!(desk.told(moved(1, "a")), "close 1 a");
        assert_eq!(desk.idle(1), "a Granted, open 1 a");
        // What it has it keeps: each of its commands is looked at by itself.
        assert_eq!(desk.told(moved(1, "b")), "");
        assert_eq!(desk.state("a"), LeaseState::Active);
        let late = bound_to("a", wish("late", these(&[1])));
        assert_eq!(desk.ask(late), "late Created, late Ended");
        assert_eq!(desk.reason("late"), EndReason::Unsatisfiable);
    }
}
