//! Leases that are taken away.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{DeviceState, LeaseChange, LeaseState, RevokeMode};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::effects;
use fleetgate_tests::leasing::{self, any, by};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{launching, plain_lab};
use tonic::Code;

use super::{
    KeptOut, Stage, assert_ended, assert_not_sent, assert_refused, assert_sent_by, in_hand, order,
    queued, slow_tap,
};

const REVOKED: &str = "LEASE_REVOKED";

/// Asserts that somebody's lease was taken away by the boss.
#[track_caller]
fn assert_revoked(lease: &pb::Lease) {
    assert_eq!(lease.end_reason(), "REVOKED", "{lease:?}");
    assert_eq!(lease.end_detail(), "the rack is moved", "{lease:?}");
    assert_eq!(lease.ended_by(), "token:boss", "{lease:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_taken_away_drains_and_its_holder_is_told_why() {
    let stage = Stage::plain(1).await;
    let (anna, berta, boss) = (stage.anna(), stage.berta(), stage.boss());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    let (mut own, mut next) = (anna.watch(&lease.id).await, berta.watch(&waits.id).await);
    slow_tap(&phone, Duration::from_secs(2));
    let in_flight = anna.tapping(&udid, "in-flight", by(&lease));
    in_hand(&phone).await;
    let behind = anna.tapping(&udid, "behind", by(&lease));
    queued(&anna, &udid, 1).await;

    let drains = boss.revoke(&lease.id, RevokeMode::Drain).await.unwrap();
    assert_eq!(drains.state(), LeaseState::Draining);
    assert_revoked(&drains);
    let told = assert_refused(behind.told().await, Code::PermissionDenied, REVOKED);
    assert!(
        told.message.contains("token:boss: the rack is moved"),
        "{told:?}"
    );
    let row = stage.rig.concluded("behind").await;
    assert_not_sent(&row, REVOKED);
    assert_sent_by(&row, &anna, Some(&lease));
    let late = KeptOut {
        who: &anna,
        device: &udid,
        kind: CommandKind::Tap,
        lease: by(&lease),
        code: Code::PermissionDenied,
        reason: REVOKED,
    };
    late.assert(&stage, "late").await;
    assert_eq!(phone.report().in_flight, 1, "before the other ends");
    let granted = next.until(LeaseChange::Granted).await.lease;
    assert_eq!(phone.report().in_flight, 0);
    assert_eq!(
        effects(&phone, "in-flight").len(),
        1,
        "it ran to its verdict"
    );
    in_flight.told().await.unwrap();
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    assert_eq!(order(&phone), ["in-flight", "next"]);

    let ended = own.end().await.news.pop().unwrap().lease;
    assert_ended(&ended, LeaseState::Revoked, "REVOKED");
    assert_revoked(&ended);
    late.assert(&stage, "later").await;
    let again = boss.revoke(&lease.id, RevokeMode::Now).await.unwrap();
    assert_eq!(again, anna.get(&lease.id).await, "it stays as it is");
    let done = [
        "token:anna create-lease",
        "fleetgate grant-lease",
        "token:boss revoke-lease",
        "fleetgate end-lease",
    ];
    assert_eq!(stage.done_to(&lease.id).await, done);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_takes_leases_away() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let lease = anna.take(any(1)).await;
    for who in [&berta, &anna, &stage.guest()] {
        let refusal = assert_refused(
            who.revoke(&lease.id, RevokeMode::Now).await,
            Code::PermissionDenied,
            "ROLE_TOO_LOW",
        );
        assert_eq!(refusal.meta("needed"), "admin");
    }
    let denied = stage.records().denials("ROLE_TOO_LOW", 3).await;
    let who: Vec<_> = denied.iter().map(|denied| denied.who.as_str()).collect();
    assert_eq!(who, ["token:berta", "token:anna", "token:guest"]);
    let unknown = stage.boss().revoke("none", RevokeMode::Drain).await;
    assert_refused(unknown, Code::NotFound, "LEASE_NOT_FOUND");
    assert_eq!(anna.get(&lease.id).await.state(), LeaseState::Active);
    // A wish can be taken away, too.
    let waits = berta.queue(any(1)).await;
    let gone = stage.boss().revoke(&waits.id, RevokeMode::Drain).await;
    assert_ended(&gone.unwrap(), LeaseState::Revoked, "REVOKED");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_away_now_the_runner_is_another_and_nobody_knows_what_became_of_the_command() {
    let mut cast = None;
    let rig = launching::rig(plain_lab(1, 1.0), |config| {
        cast = Some(leasing::attend(config));
    })
    .await;
    let stage = Stage::of((rig, cast.unwrap()));
    let (anna, berta, boss) = (stage.anna(), stage.berta(), stage.boss());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let mut mirror = Mirror::follow(stage.rig.channel()).await;
    let first = mirror.until_state(&udid, DeviceState::Ready).await;
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    let (mut own, mut next) = (anna.watch(&lease.id).await, berta.watch(&waits.id).await);
    // It would hold the phone for as long as a command may.
    phone.fault(Fault::from(Injection::NeverEnds).on(CommandKind::Tap));
    let in_flight = anna.tapping(&udid, "in-flight", by(&lease));
    in_hand(&phone).await;
    let behind = anna.tapping(&udid, "behind", by(&lease));
    queued(&anna, &udid, 1).await;

    let taken = boss.revoke(&lease.id, RevokeMode::Now).await.unwrap();
    assert_revoked(&taken);
    assert_refused(behind.told().await, Code::PermissionDenied, REVOKED);
    assert_not_sent(&stage.rig.concluded("behind").await, REVOKED);
    let lost = assert_refused(in_flight.told().await, Code::Unknown, "FATE_UNKNOWN");
    assert_eq!((lost.meta("fate"), lost.retry_delay), ("UNKNOWN", None));
    let row = stage.rig.concluded("in-flight").await;
    assert_eq!(row.fate(), pb::Fate::Unknown, "{row:?}");
    assert_sent_by(&row, &anna, Some(&lease));
    assert_ended(
        &own.end().await.news.pop().unwrap().lease,
        LeaseState::Revoked,
        "REVOKED",
    );

    let granted = next.until(LeaseChange::Granted).await.lease;
    let second = anna.device(&udid).await;
    let pid = |device: &pb::Device| device.runner.as_ref().unwrap().pid.unwrap();
    assert_ne!(pid(&second), pid(&first), "the waiter has a new runner");
    assert_eq!(second.runner.as_ref().unwrap().launches, 2);
    assert_eq!(phone.report().incarnations, 2);
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    assert_eq!(order(&phone), ["next"]);
    let all = stage.records().operations().await;
    let revoked = all.iter().find(|done| done.what == "revoke-lease").unwrap();
    assert_eq!(revoked.detail("mode"), "now", "{revoked:?}");
    assert_eq!(revoked.detail("detail"), "the rack is moved");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taken_away_now_from_a_runner_that_is_not_ours_the_command_runs_to_its_verdict() {
    let stage = Stage::plain(1).await;
    let (anna, berta, boss) = (stage.anna(), stage.berta(), stage.boss());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    let mut next = berta.watch(&waits.id).await;
    slow_tap(&phone, Duration::from_secs(1));
    let in_flight = anna.tapping(&udid, "in-flight", by(&lease));
    in_hand(&phone).await;
    let taken = boss.revoke(&lease.id, RevokeMode::Now).await.unwrap();
    assert_eq!(taken.state(), LeaseState::Draining);
    let granted = next.until(LeaseChange::Granted).await.lease;
    let then = phone.report();
    assert_eq!((then.in_flight, then.incarnations), (0, 1));
    in_flight.told().await.unwrap();
    assert_eq!(effects(&phone, "in-flight").len(), 1);
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    stage.stop().await;
}
