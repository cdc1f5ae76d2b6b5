//! What an owner changes, and what comes of it.

use std::collections::BTreeMap;

use super::support::*;
use crate::*;

#[test]
fn a_lease_that_waits_takes_the_place_of_its_new_priority() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    for name in ["a", "b", "c"] {
        desk.ask(wish(name, some(1)));
    }
    assert_eq!(desk.update("c", priority(1)), "c Updated");
    assert_eq!(desk.queue(), "c a b");
    assert_eq!(desk.update("a", priority(1)), "a Updated");
    assert_eq!(desk.queue(), "a c b", "by age among equals");
    assert_eq!(desk.update("a", priority(-1)), "a Updated");
    assert_eq!(desk.queue(), "c b a");
    desk.release("holder");
    assert_eq!(desk.idle(1), "holder Ended, close 1 c");
}

#[test]
fn a_new_priority_may_give_a_lease_what_was_kept_back_from_it() {
    let mut desk = Desk::new(2);
    desk.hold(wish("holder", these(&[1])));
    desk.ask(wish("pair", some(2)));
    desk.ask(wish("single", some(1)));
    assert_eq!(
        desk.update("single", priority(1)),
        "single Updated, close 2 single"
    );
}

#[test]
fn the_priority_of_a_lease_that_was_granted_does_not_change() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    let id = id("a");
    let change = priority(1);
    let refused = desk.refused(Input::Update { id, change });
    assert_eq!(refused, Refused::NotWaiting);
}

#[test]
fn one_that_is_scheduled_begins_with_its_new_priority() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    desk.ask(wish("a", some(1)));
    desk.ask(later(10, wish("later", some(1))));
    assert_eq!(desk.update("later", priority(1)), "later Updated");
    desk.pass(secs(10));
    assert_eq!(desk.queue(), "later a");
}

#[test]
fn a_new_ttl_counts_from_the_update() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(30);
    desk.renew("a");
    desk.now = at(40);
    assert_eq!(desk.update("a", ttl(secs(100))), "a Updated");
    assert_eq!(desk.lease("a").deadline(), Some(at(140)));
    assert_eq!(desk.scheduler.next_timer(), Some(at(140)));
    assert_eq!(desk.update("a", ttl(secs(20))), "a Updated");
    assert_eq!(desk.lease("a").deadline(), Some(at(60)));
    desk.now = at(45);
    desk.renew("a");
    assert_eq!(desk.lease("a").deadline(), Some(at(65)), "and from now on");
}

#[test]
fn a_new_ttl_that_is_shorter_than_what_has_passed_does_not_end_the_lease() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(40);
    assert_eq!(desk.update("a", ttl(secs(5))), "a Updated");
    assert_eq!(desk.lease("a").deadline(), Some(at(45)));
    desk.pass(secs(5));
    assert_eq!(desk.reason("a"), EndReason::TtlExpired);
}

#[test]
fn a_longest_duration_that_has_passed_ends_the_lease() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(40);
    assert_eq!(desk.update("a", longest(secs(41))), "a Updated");
    assert_eq!(desk.lease("a").latest_end(), Some(at(41)));
    assert_eq!(
        desk.update("a", longest(secs(30))),
        "a Updated, close 1 a, a Draining"
    );
    assert_eq!(desk.reason("a"), EndReason::MaxDuration);
}

#[test]
fn the_times_of_one_that_waits_count_once_it_is_granted() {
    let mut desk = Desk::new(1);
    desk.ask(wish("a", some(1)));
    assert_eq!(desk.update("a", ttl(secs(5))), "a Updated");
    assert_eq!(desk.lease("a").deadline(), Some(at(300)));
    desk.idle(1);
    assert_eq!(desk.lease("a").deadline(), Some(at(5)));
}

#[test]
fn a_lease_cannot_be_given_no_time() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    for change in [ttl(secs(0)), longest(secs(0))] {
        let id = id("a");
        let refused = desk.refused(Input::Update { id, change });
        assert!(matches!(refused, Refused::Unusable(_)), "{refused}");
    }
}

#[test]
fn labels_are_removed_and_set() {
    let labels = |labels: &[(&str, &str)]| {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        labels.collect::<BTreeMap<_, _>>()
    };
    let mut desk = Desk::new(1);
    desk.ask(NewLease {
        labels: labels(&[("a", "1"), ("b", "1"), ("c", "1")]),
        ..wish("a", some(1))
    });
    let change = Change {
        set_labels: labels(&[("b", "2"), ("c", "2")]),
        remove_labels: ["a".to_owned(), "c".to_owned()].into(),
        ..Change::default()
    };
    assert_eq!(desk.update("a", change.clone()), "a Updated");
    let now = labels(&[("b", "2"), ("c", "2")]);
    assert_eq!(*desk.lease("a").labels(), now);
    assert_eq!(desk.update("a", change), "", "nothing has changed");
}

#[test]
fn to_renew_one_that_waits_changes_nothing() {
    let mut desk = Desk::new(1);
    desk.ask(wish("kept", some(1)));
    desk.ask(later(10, wish("later", some(1))));
    assert_eq!(desk.renew("kept"), "");
    assert_eq!(desk.renew("later"), "");
    assert_eq!(desk.lease("kept").deadline(), Some(at(300)));
}
