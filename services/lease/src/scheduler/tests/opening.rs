//! From the grant to when its phones are open to its owner.

use super::support::*;
use crate::*;

/// A lease that was granted a phone at 5 s, which is not open to it yet.
fn granted() -> Desk {
    let mut desk = Desk::new(1);
    desk.opens = false;
    desk.ask(wish("a", some(1)));
    desk.now = at(5);
    assert_eq!(desk.idle(1), "a Granted, open 1 a");
    desk
}

fn opened(desk: &mut Desk, name: &str) -> String {
    desk.told(Input::Opened { id: id(name) })
}

#[test]
fn the_time_of_a_lease_runs_once_its_phones_are_open_to_it() {
    let mut desk = granted();
    // However long it takes to put the grant on record.
    assert_eq!(desk.pass(secs(5000)), "");
    let lease = desk.lease("a");
    assert_eq!(lease.state(), LeaseState::Active);
    assert_eq!((lease.deadline(), lease.latest_end()), (None, None));
    assert_eq!((lease.opened(), lease.expiring_at()), (None, None));
    assert_eq!(desk.scheduler.next_timer(), None);
    assert_eq!(opened(&mut desk, "a"), "a Opened");
    let lease = desk.lease("a");
    assert_eq!(lease.granted().unwrap().0, at(5));
    assert_eq!(lease.opened(), Some(at(5005)));
    assert_eq!(lease.deadline(), Some(at(5065)));
    assert_eq!(lease.latest_end(), Some(at(5605)));
    assert_eq!(desk.scheduler.next_timer(), Some(at(5065)));
    assert_eq!(desk.pass(secs(60)), "close 1 a, a Draining");
}

#[test]
fn it_begins_to_run_once() {
    let mut desk = granted();
    opened(&mut desk, "a");
    desk.now = at(30);
    assert_eq!(opened(&mut desk, "a"), "");
    assert_eq!(desk.lease("a").deadline(), Some(at(65)));
    assert_eq!(opened(&mut desk, "nobody"), "");
    desk.ask(wish("b", some(1)));
    assert_eq!(opened(&mut desk, "b"), "", "it waits");
    desk.release("a");
    assert_eq!(opened(&mut desk, "a"), "", "it drains");
}

#[test]
fn a_lease_whose_time_does_not_run_is_renewed_changed_and_ended_like_any_other() {
    let mut desk = granted();
    desk.now = at(40);
    assert_eq!(desk.renew("a"), "a Renewed");
    assert_eq!(desk.update("a", ttl(secs(10))), "a Updated");
    assert_eq!(desk.lease("a").deadline(), None);
    desk.now = at(100);
    let mut other = desk.clone();
    opened(&mut desk, "a");
    assert_eq!(desk.lease("a").deadline(), Some(at(110)));
    assert_eq!(other.release("a"), "close 1 a, a Draining");
    assert_eq!(other.idle(1), "a Ended, free 1");
}

#[test]
fn a_grant_that_was_not_opened_before_a_restart_has_its_whole_time_after_it() {
    let (mut desk, said) = granted().restarted();
    assert_eq!(said, "open 1 a");
    desk.now = at(200);
    assert_eq!(desk.pass(secs(0)), "");
    assert_eq!(opened(&mut desk, "a"), "a Opened");
    assert_eq!(desk.lease("a").deadline(), Some(at(260)));
    // What runs goes on.
    let (mut desk, _) = desk.restarted();
    desk.now = at(210);
    assert_eq!(opened(&mut desk, "a"), "");
    assert_eq!(desk.lease("a").deadline(), Some(at(260)));
}
