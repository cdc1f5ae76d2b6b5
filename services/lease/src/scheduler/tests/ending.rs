//! From the grant to the end.

use super::support::*;
use crate::*;

#[test]
fn a_lease_that_is_given_back_drains_and_then_its_phone_is_free() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    assert_eq!(desk.release("a"), "close 1 a, a Draining");
    assert_eq!(desk.state("a"), LeaseState::Draining);
    let end = desk.lease("a").end().unwrap();
    assert_eq!(end.reason, EndReason::Released);
    assert_eq!(end.by.as_deref(), Some("somebody"));
    assert_eq!(end.detail.as_deref(), Some("because"));
    assert_eq!(desk.lease("a").deadline(), None);
    assert_eq!(desk.lease("a").latest_end(), None);
    assert_eq!(desk.lease("a").expiring_at(), None);
    assert_eq!(desk.idle(1), "a Ended, free 1");
    assert_eq!(desk.state("a"), LeaseState::Released);
}

#[test]
fn a_lease_of_many_has_ended_once_all_of_them_are_idle() {
    let mut desk = Desk::new(2);
    desk.hold(wish("a", some(2)));
    assert_eq!(desk.release("a"), "close 1 a, close 2 a, a Draining");
    assert_eq!(desk.idle(2), "");
    assert_eq!(desk.ask(wish("b", some(1))), "b Created");
    assert_eq!(desk.idle(1), "a Ended, close 1 b, free 2");
}

#[test]
fn to_give_back_twice_is_the_same_as_once() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.release("a");
    assert_eq!(desk.release("a"), "");
    assert_eq!(desk.told(end("a", EndReason::Revoked)), "");
    assert_eq!(desk.reason("a"), EndReason::Released);
    desk.idle(1);
    assert_eq!(desk.release("a"), "");
}

#[test]
fn a_lease_that_ended_is_forgotten_one_step_later() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.release("a");
    desk.idle(1);
    assert_eq!(desk.state("a"), LeaseState::Released);
    let ended = Refused::Ended(EndReason::Released);
    assert_eq!(desk.refused(Input::Renew { id: id("a") }), ended);
    desk.pass(secs(0));
    assert_eq!(desk.scheduler.lease(&id("a")), None);
    let unknown = Input::Renew { id: id("a") };
    assert_eq!(desk.refused(unknown), Refused::NotFound);
    let unknown = end("a", EndReason::Released);
    assert_eq!(desk.refused(unknown), Refused::NotFound);
}

#[test]
fn a_lease_that_waits_and_is_given_back_is_cancelled() {
    let mut desk = Desk::new(1);
    desk.ask(wish("kept", some(1)));
    desk.ask(wish("waits", some(1)));
    desk.ask(later(10, wish("later", some(1))));
    assert_eq!(desk.release("waits"), "waits Ended");
    assert_eq!(desk.state("waits"), LeaseState::Cancelled);
    assert_eq!(desk.reason("waits"), EndReason::Cancelled);
    assert_eq!(desk.release("later"), "later Ended");
    assert_eq!(desk.state("later"), LeaseState::Cancelled);
    assert_eq!(desk.release("kept"), "kept Ended, free 1");
    // The answer comes too late for anybody.
    assert_eq!(desk.idle(1), "");
    assert_eq!(desk.scheduler.next_timer(), None);
}

#[test]
fn a_lease_is_revoked_wherever_it_is() {
    let mut desk = Desk::new(1);
    desk.hold(wish("held", some(1)));
    desk.ask(wish("waits", some(1)));
    assert_eq!(desk.told(end("waits", EndReason::Revoked)), "waits Ended");
    assert_eq!(desk.state("waits"), LeaseState::Revoked);
    let revoked = desk.told(end("held", EndReason::Revoked));
    assert_eq!(revoked, "close 1 held, held Draining");
    assert_eq!(desk.idle(1), "held Ended, free 1");
    assert_eq!(desk.state("held"), LeaseState::Revoked);
}

#[test]
fn nobody_ends_a_lease_for_a_reason_that_only_time_gives() {
    let mut desk = Desk::new(1);
    desk.ask(wish("a", some(1)));
    for how in [
        EndReason::TtlExpired,
        EndReason::MaxDuration,
        EndReason::QueueTimeout,
        EndReason::Unsatisfiable,
    ] {
        let refused = desk.refused(end("a", how));
        assert!(matches!(refused, Refused::Unusable(_)), "{refused}");
    }
}

#[test]
fn a_lease_that_is_not_kept_alive_ends_at_its_deadline() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(59);
    assert_eq!(desk.renew("a"), "a Renewed");
    assert_eq!(desk.scheduler.next_timer(), Some(at(119)));
    desk.now = at(118);
    assert_eq!(desk.pass(secs(0)), "");
    assert_eq!(desk.pass(secs(1)), "close 1 a, a Draining");
    assert_eq!(desk.reason("a"), EndReason::TtlExpired);
    assert_eq!(desk.idle(1), "a Ended, free 1");
    assert_eq!(desk.state("a"), LeaseState::Expired);
}

#[test]
fn a_renewal_at_the_very_deadline_comes_too_late() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(60);
    let late = Refused::Ended(EndReason::TtlExpired);
    assert_eq!(desk.refused(Input::Renew { id: id("a") }), late);
    let change = priority(1);
    let id = id("a");
    assert_eq!(desk.refused(Input::Update { id, change }), late);
    assert_eq!(desk.pass(secs(0)), "close 1 a, a Draining");
    assert_eq!(
        desk.refused(Input::Renew {
            id: super::support::id("a")
        }),
        late
    );
}

#[test]
fn what_is_due_comes_before_what_is_asked() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(60);
    // Nothing has told that it expired: whoever gives it back then is late.
    assert_eq!(desk.release("a"), "close 1 a, a Draining");
    assert_eq!(desk.reason("a"), EndReason::TtlExpired);
}

#[test]
fn that_a_phone_was_idle_is_no_answer_to_a_question_that_comes_up_only_now() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.now = at(60);
    assert_eq!(desk.idle(1), "close 1 a, a Draining");
    assert_eq!(desk.idle(1), "a Ended, free 1");
}

#[test]
fn no_renewal_puts_the_longest_duration_off() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    while desk.now < at(590) {
        desk.now = desk.now.saturating_add(secs(59));
        desk.renew("a");
    }
    assert_eq!(desk.scheduler.next_timer(), Some(at(600)));
    assert_eq!(desk.lease("a").deadline(), Some(at(600)));
    desk.now = at(600);
    assert_eq!(desk.pass(secs(0)), "close 1 a, a Draining");
    assert_eq!(desk.reason("a"), EndReason::MaxDuration);
}

#[test]
fn of_two_times_that_end_at_once_the_one_counts_that_no_renewal_puts_off() {
    let mut desk = Desk::new(1);
    let mut wish = wish("a", some(1));
    wish.terms.max_duration = wish.terms.ttl;
    desk.hold(wish);
    assert_eq!(desk.pass(secs(60)), "close 1 a, a Draining");
    assert_eq!(desk.reason("a"), EndReason::MaxDuration);
}

#[test]
fn a_lease_that_drains_cannot_be_renewed_or_changed() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.told(end("a", EndReason::Revoked));
    let ended = Refused::Ended(EndReason::Revoked);
    assert_eq!(desk.refused(Input::Renew { id: id("a") }), ended);
    let id = id("a");
    let change = ttl(secs(1));
    assert_eq!(desk.refused(Input::Update { id, change }), ended);
}

#[test]
fn a_phone_that_is_unplugged_stays_in_its_holders_hands() {
    let mut desk = Desk::new(2);
    desk.hold(wish("a", some(1)));
    assert_eq!(desk.see(1, Service::Detached), "");
    assert_eq!(desk.state("a"), LeaseState::Active);
    assert_eq!(desk.renew("a"), "a Renewed");
    desk.release("a");
    assert_eq!(desk.see(1, Service::Quarantined), "");
    assert_eq!(desk.idle(1), "a Ended, free 1");
    assert_eq!(desk.ask(wish("b", some(1))), "b Created, close 2 b");
}

#[test]
fn a_phone_that_is_cordoned_while_it_drains_goes_to_nobody() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    desk.ask(wish("b", some(1)));
    desk.release("a");
    desk.see(1, Service::Cordoned);
    assert_eq!(desk.idle(1), "a Ended, free 1");
    assert_eq!(desk.see(1, Service::InService), "close 1 b");
}

#[test]
fn two_hundred_wait_and_one_is_granted_in_order() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    for number in 1..=200 {
        desk.ask(wish(&format!("w{number:03}"), some(1)));
    }
    let mut last = "holder".to_owned();
    for number in 1..=200 {
        let next = format!("w{number:03}");
        assert_eq!(
            desk.release(&last),
            format!("close 1 {last}, {last} Draining")
        );
        assert_eq!(desk.idle(1), format!("{last} Ended, close 1 {next}"));
        assert_eq!(desk.idle(1), format!("{next} Granted, open 1 {next}"));
        let epoch = desk.lease(&next).epoch();
        assert_eq!(epoch.map(Epoch::get), Some(number + 1));
        last = next;
    }
}
