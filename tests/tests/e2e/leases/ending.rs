//! Leases that are given back, and wishes that are taken back.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use fleetgate_tests::leasing::{any, by};
use tonic::Code;

use super::{
    Stage, assert_ended, assert_not_sent, assert_refused, in_hand, order, queued, slow_tap,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_given_back_once_however_often_that_is_said() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    let not_own = berta.release(&lease.id).await;
    assert_refused(not_own, Code::PermissionDenied, "LEASE_NOT_OWNER");
    let denied = stage.records().denials("LEASE_NOT_OWNER", 1).await;
    assert_eq!(denied[0].target, "/fleetgate.v1.LeaseService/ReleaseLease");

    let first = anna.release(&lease.id).await.unwrap();
    assert_ended(&first, LeaseState::Released, "RELEASED");
    let granted = berta.until(&waits.id, LeaseState::Active).await;
    for _ in 0..3 {
        assert_eq!(anna.release(&lease.id).await.unwrap(), first);
    }
    assert_eq!(berta.get(&waits.id).await.epoch, granted.epoch);
    let done = stage.done_to(&lease.id).await;
    let released = done.iter().filter(|done| done.ends_with(" release-lease"));
    assert_eq!(released.count(), 1, "{done:?}");
    let not_own = berta.release(&lease.id).await;
    assert_refused(not_own, Code::PermissionDenied, "LEASE_NOT_OWNER");
    let unknown = anna.release("none").await;
    assert_refused(unknown, Code::NotFound, "LEASE_NOT_FOUND");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_is_taken_back_lets_those_behind_move_up() {
    let stage = Stage::plain(2).await;
    let (anna, berta, carla) = (stage.anna(), stage.berta(), stage.carla());
    anna.take(any(1)).await;
    // Keeps the other phone back, which is free.
    let both = berta.queue(any(2)).await;
    let one = carla.queue(any(1)).await;
    let cancelled = berta.release(&both.id).await.unwrap();
    assert_ended(&cancelled, LeaseState::Cancelled, "CANCELLED");
    assert_eq!((cancelled.epoch, cancelled.devices.len()), (0, 0));
    let done = ["token:berta create-lease", "token:berta cancel-lease"];
    assert_eq!(stage.done_to(&both.id).await, done);
    carla.until(&one.id, LeaseState::Active).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_given_back_too_early_drains_before_the_next_has_the_phone() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    let mut watch = berta.watch(&waits.id).await;
    slow_tap(&phone, Duration::from_secs(2));
    let in_flight = anna.tapping(&udid, "in-flight", by(&lease));
    in_hand(&phone).await;
    let behind = anna.tapping(&udid, "behind", by(&lease));
    queued(&anna, &udid, 1).await;

    let mut own = anna.watch(&lease.id).await;
    let drains = anna.release(&lease.id).await.unwrap();
    assert_eq!(drains.state(), LeaseState::Draining);
    assert_eq!(drains.end_reason(), "RELEASED");
    assert_refused(
        behind.told().await,
        Code::PermissionDenied,
        "LEASE_RELEASED",
    );
    assert_not_sent(&stage.rig.concluded("behind").await, "LEASE_RELEASED");
    assert_eq!(phone.report().in_flight, 1, "before the other ends");
    let granted = watch.until(LeaseChange::Granted).await.lease;
    let then = phone.report();
    assert_eq!((then.in_flight, then.effects_total), (0, 1));
    in_flight.told().await.unwrap();
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    assert_eq!(order(&phone), ["in-flight", "next"]);
    let told = [
        LeaseChange::Snapshot,
        LeaseChange::Draining,
        LeaseChange::Ended,
    ];
    assert_eq!(own.end().await.changes(), told);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_refused_field_by_field() {
    let stage = Stage::plain(1).await;
    let anna = stage.anna();
    let fields = |refusal: fleetgate_tests::Refusal| {
        assert_eq!(refusal.code, Code::InvalidArgument);
        let fields = refusal.violations.into_iter().map(|(field, _)| field);
        fields.collect::<Vec<_>>()
    };
    let refused = |told| fleetgate_tests::refused::<pb::Lease>(told);
    let negative = Some(prost_types::Duration {
        seconds: -1,
        nanos: 0,
    });
    let wish = pb::CreateLeaseRequest {
        ttl: negative,
        max_duration: negative,
        queue_timeout: negative,
        ..pb::CreateLeaseRequest::default()
    };
    let expected = ["wants", "ttl", "max_duration", "queue_timeout"];
    assert_eq!(fields(refused(anna.ask(wish).await)), expected);
    let change = pb::UpdateLeaseRequest {
        ttl: negative,
        ..pb::UpdateLeaseRequest::default()
    };
    let wrong = refused(anna.update(change).await);
    assert_eq!(fields(wrong), ["lease_id", "ttl"]);
    let lease = anna.take(any(1)).await;
    let request = pb::RevokeLeaseRequest {
        lease_id: lease.id.clone(),
        reason: String::new(),
        mode: 7,
    };
    let told = stage.boss().leases().revoke_lease(request).await;
    let wrong = fleetgate_tests::refused(told);
    assert_eq!(fields(wrong), ["reason", "mode"]);
    assert_eq!(anna.get(&lease.id).await.state(), LeaseState::Active);
    stage.stop().await;
}
