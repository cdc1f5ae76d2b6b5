//! The gate: who is let in, and when a door is idle.

use fleetgate_lease::EndReason;
use futures_util::FutureExt;

use super::*;
use crate::leases::samples::{Sample, phone};

const OWNER: &str = "token:ci";

fn gate(required: bool) -> Gate {
    Gate::new(required, LeaseClock::resume(Duration::ZERO))
}

fn named(lease: &Lease, epoch: u64) -> Named {
    let id = lease.id().clone();
    let epoch = epoch.try_into().ok();
    Named { id, epoch }
}

/// A gate whose first phone a lease has, as its grant is published.
fn held() -> (Gate, Arc<Lease>, Named) {
    let (gate, lease) = (gate(false), Sample::granted(OWNER, &[1]).lease());
    drop(gate.reserve(&phone(1), lease.id()));
    gate.tell(Arc::clone(&lease));
    gate.open(&phone(1), lease.id(), gate.mark(&phone(1)));
    let named = named(&lease, 7);
    (gate, lease, named)
}

fn reason(refused: Result<Leave, Refused>) -> &'static str {
    refused.unwrap_err().reason()
}

fn withdrawn(lease: &Lease) -> Withdrawn {
    super::super::refused::ended(lease).unwrap().withdrawn()
}

#[tokio::test]
async fn a_phone_that_nobody_has_is_anybodys_unless_leases_are_required() {
    assert!(gate(false).admit(&phone(1), "anybody", None).is_ok());
    let refused = gate(true).admit(&phone(1), "anybody", None);
    assert_eq!(reason(refused), "LEASE_REQUIRED");
}

#[tokio::test]
async fn a_phone_that_is_kept_for_a_lease_lets_nobody_in_and_is_idle_when_the_last_has_left() {
    let (gate, lease) = (gate(false), Sample::queued(OWNER, &[1], 0).lease());
    gate.tell(Arc::clone(&lease));
    let first = gate.admit(&phone(1), "first", None).unwrap();
    let second = gate.admit(&phone(1), "second", None).unwrap();
    let closed = gate.reserve(&phone(1), lease.id());
    let mark = closed.mark();
    let mut idle = std::pin::pin!(closed.idle());
    let refused = gate.admit(&phone(1), "third", None);
    assert_eq!(reason(refused), "LEASE_HELD_BY_OTHER");
    // Not even its owner yet: it waits for those who were let in.
    let early = gate.admit(&phone(1), OWNER, Some(&named(&lease, 0)));
    assert_eq!(reason(early), "LEASE_NOT_ACTIVE");
    drop(first);
    assert_eq!(idle.as_mut().now_or_never(), None);
    drop(second);
    assert_eq!(idle.await, (phone(1), mark));
}

#[tokio::test]
async fn only_the_holder_drives_and_only_by_its_lease_and_epoch() {
    let (gate, lease, by) = held();
    let admit = |principal, named: Option<&Named>| gate.admit(&phone(1), principal, named);
    assert!(admit(OWNER, Some(&by)).is_ok());
    assert_eq!(reason(admit(OWNER, None)), "LEASE_REQUIRED");
    assert_eq!(reason(admit("token:other", None)), "LEASE_HELD_BY_OTHER");
    assert_eq!(reason(admit("token:other", Some(&by))), "LEASE_NOT_OWNER");
    for epoch in [0, 6, 8] {
        let stale = named(&lease, epoch);
        assert_eq!(reason(admit(OWNER, Some(&stale))), "LEASE_EPOCH_STALE");
    }
    let other = gate.admit(&phone(2), OWNER, Some(&by));
    assert_eq!(reason(other), "LEASE_OTHER_DEVICE");
    let strange = Sample::granted(OWNER, &[1]).lease();
    let strange = admit(OWNER, Some(&named(&strange, 7)));
    assert_eq!(reason(strange), "LEASE_NOT_FOUND");
}

#[tokio::test]
async fn whoever_has_a_phone_is_told_to_others_with_the_time() {
    let (gate, ..) = held();
    let refused = gate.admit(&phone(1), "token:other", None).unwrap_err();
    let Refused::HeldByOther { owner, until } = refused else {
        panic!("{refused}");
    };
    assert_eq!(owner.as_deref(), Some(OWNER));
    assert!(until.is_some());
}

#[tokio::test]
async fn the_end_of_a_lease_withdraws_every_leave_and_lets_nobody_in() {
    let (gate, _, by) = held();
    let leave = gate.admit(&phone(1), OWNER, Some(&by)).unwrap();
    let ending = Sample::granted(OWNER, &[1]).ending(EndReason::Revoked);
    // The same lease in another life: only its end counts here.
    let ended = ending.lease();
    gate.tell(Arc::clone(&ended));
    let closed = gate.withdraw(&phone(1), &by.id, withdrawn(&ended));
    let told = format!("{leave:?}");
    assert!(told.contains("LEASE_REVOKED"), "{told}");
    assert_eq!(
        reason(gate.admit(&phone(1), OWNER, Some(&named(&ended, 7)))),
        "LEASE_REVOKED"
    );
    assert!(gate.admit(&phone(1), "token:other", None).is_err());
    drop(leave);
    closed.idle().await;
}

#[tokio::test]
async fn the_next_holder_is_not_told_of_the_end_of_the_one_before() {
    let (gate, _, by) = held();
    let ending = Sample::granted(OWNER, &[1]).ending(EndReason::Released);
    let closed = gate.withdraw(&phone(1), &by.id, withdrawn(&ending.lease()));
    closed.idle().await;
    gate.free(&phone(1), gate.mark(&phone(1)));
    assert!(!gate.is_taken(&phone(1)));
    let leave = gate.admit(&phone(1), "anybody", None).unwrap();
    let told = format!("{leave:?}");
    assert!(!told.contains("LEASE_RELEASED"), "{told}");
}

#[tokio::test]
async fn a_door_that_was_closed_again_is_not_opened_by_what_was_meant_before() {
    let (gate, lease) = (gate(false), Sample::queued(OWNER, &[1], 0).lease());
    drop(gate.reserve(&phone(1), lease.id()));
    let before = gate.mark(&phone(1));
    drop(gate.reserve(&phone(1), lease.id()));
    gate.free(&phone(1), before);
    assert!(gate.is_taken(&phone(1)));
    gate.open(&phone(1), lease.id(), before);
    assert_eq!(gate.lease_of(&phone(1)), None);
    gate.free(&phone(1), gate.mark(&phone(1)));
    assert!(!gate.is_taken(&phone(1)));
}

#[tokio::test]
async fn a_grant_that_is_told_late_does_not_undo_an_end() {
    let sample = Sample::granted(OWNER, &[1]);
    let gate = gate(false);
    gate.tell(sample.clone().ending(EndReason::Released).lease());
    gate.tell(sample.lease());
    let refused = gate.admit(&phone(1), OWNER, Some(&named(&sample.lease(), 7)));
    assert_eq!(reason(refused), "LEASE_RELEASED");
    gate.tell(sample.clone().ended(EndReason::Released).lease());
    let refused = gate.admit(&phone(1), OWNER, Some(&named(&sample.lease(), 7)));
    assert_eq!(reason(refused), "LEASE_NOT_FOUND", "the ledger knows it");
}

#[tokio::test(start_paused = true)]
async fn a_lease_whose_time_is_over_lets_nobody_in_although_its_end_was_not_told() {
    let (gate, lease, by) = held();
    let left = gate.clock().until(lease.deadline().unwrap());
    let moment = Duration::from_millis(1);
    tokio::time::advance(left.saturating_sub(moment)).await;
    assert!(gate.admit(&phone(1), OWNER, Some(&by)).is_ok());
    tokio::time::advance(moment).await;
    let late = gate.admit(&phone(1), OWNER, Some(&by));
    assert_eq!(reason(late), "LEASE_EXPIRED");
    let read = gate.check(&phone(1), OWNER, &by).unwrap_err();
    assert_eq!(read.reason(), "LEASE_EXPIRED");
}

#[tokio::test]
async fn a_phone_is_busy_with_a_lease_that_has_ended_until_its_last_command_has_and_no_longer() {
    let (gate, lease, by) = held();
    let command = gate.admit(&phone(1), OWNER, Some(&by)).unwrap();
    assert!(!gate.is_busy_with(&phone(1), &by.id), "it has not ended");
    let ending = Sample::granted(OWNER, &[1]).ending(EndReason::Revoked);
    let why = withdrawn(&ending.lease());
    drop(gate.withdraw(&phone(1), &by.id, why));
    assert!(gate.is_busy_with(&phone(1), &by.id));
    drop(command);
    assert!(!gate.is_busy_with(&phone(1), &by.id));
    // What anybody does next there is none of its own.
    let next = Sample::granted("token:next", &[1]).lease();
    drop(gate.reserve(&phone(1), next.id()));
    gate.tell(Arc::clone(&next));
    gate.open(&phone(1), next.id(), gate.mark(&phone(1)));
    let command = gate.admit(&phone(1), "token:next", Some(&named(&next, 7)));
    assert!(command.is_ok());
    assert!(!gate.is_busy_with(&phone(1), lease.id()));
    assert!(!gate.is_busy_with(&phone(1), next.id()));
}
