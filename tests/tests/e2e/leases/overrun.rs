//! The end of a lease in the middle of its commands.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::effects;
use fleetgate_tests::foreign::WriteLock;
use fleetgate_tests::leasing::{any, by, seconds, these};
use fleetgate_tests::{pause, soon};
use tonic::Code;

use super::{
    KeptOut, Stage, assert_ended, assert_not_sent, assert_refused, assert_sent_by,
    assert_untouched, in_hand, order, queued, slow_tap,
};

const EXPIRED: &str = "LEASE_EXPIRED";

#[tokio::test(flavor = "multi_thread")]
async fn at_its_end_what_waits_is_not_sent_what_is_in_flight_ends_and_then_the_next_has_the_phone()
{
    const QUEUED: [&str; 3] = ["second", "third", "fourth"];
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let wish = pb::CreateLeaseRequest {
        ttl: seconds(2),
        ..any(1)
    };
    let lease = anna.take(wish).await;
    let waits = berta.queue(any(1)).await;
    let mut own = anna.watch(&lease.id).await;
    let mut next = berta.watch(&waits.id).await;
    slow_tap(&phone, Duration::from_secs(5));
    let in_flight = anna.tapping(&udid, "first", by(&lease));
    in_hand(&phone).await;
    let mut behind = Vec::new();
    for (n, id) in QUEUED.into_iter().enumerate() {
        behind.push(anna.tapping(&udid, id, by(&lease)));
        queued(&anna, &udid, u32::try_from(n + 1).unwrap()).await;
    }

    for (id, call) in QUEUED.into_iter().zip(behind) {
        let told = assert_refused(call.told().await, Code::PermissionDenied, EXPIRED);
        assert_eq!(
            (told.meta("fate"), told.meta("effect")),
            ("NOT_SENT", "NONE")
        );
        assert_eq!((told.meta("command_id"), told.retry_delay), (id, None));
        let row = stage.rig.concluded(id).await;
        assert_not_sent(&row, EXPIRED);
        assert_sent_by(&row, &anna, Some(&lease));
        assert_untouched(&phone, id);
    }
    assert_eq!(phone.report().in_flight, 1, "before the other ends");
    let drains = own.until(LeaseChange::Draining).await.lease;
    assert_eq!(drains.end_reason(), "TTL_EXPIRED");
    assert_eq!(anna.get(&lease.id).await.state(), LeaseState::Draining);
    let late = KeptOut {
        who: &anna,
        device: &udid,
        kind: CommandKind::Tap,
        lease: by(&lease),
        code: Code::PermissionDenied,
        reason: EXPIRED,
    };
    late.assert(&stage, "late").await;
    assert_refused(anna.renew(&lease).await, Code::PermissionDenied, EXPIRED);
    let early = KeptOut {
        who: &berta,
        lease: Some(pb::LeaseRef {
            id: waits.id.clone(),
            epoch: lease.epoch + 1,
        }),
        code: Code::FailedPrecondition,
        reason: "LEASE_NOT_ACTIVE",
        ..late
    };
    early.assert(&stage, "early").await;

    let granted = next.until(LeaseChange::Granted).await.lease;
    let then = phone.report();
    assert_eq!((then.in_flight, then.effects_total), (0, 1), "it is idle");
    let receipt = in_flight.told().await.unwrap();
    assert_eq!(receipt.fate(), pb::Fate::Completed);
    let row = stage.rig.find("first").await.unwrap();
    assert_sent_by(&row, &anna, Some(&lease));
    berta.tap(&udid, "next", by(&granted)).await.unwrap();

    // By the phone's own account.
    assert_eq!(order(&phone), ["first", "next"]);
    let report = phone.report();
    let arrivals: Vec<_> = report.arrivals.iter().collect();
    let mut taps = arrivals
        .iter()
        .filter(|arrival| arrival.kind == CommandKind::Tap);
    let last = taps.next_back().unwrap();
    assert!(last.at >= report.effects[0].at, "{report:?}");
    assert_eq!(report.max_in_flight, 1);
    let ended = own.end().await.news.pop().unwrap().lease;
    assert_ended(&ended, LeaseState::Expired, "TTL_EXPIRED");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_phone_that_is_not_idle_keeps_all_phones_of_its_lease() {
    let stage = Stage::plain(2).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let udids = [stage.rig.udid(0), stage.rig.udid(1)];
    let lease = anna.take(any(2)).await;
    let waits = berta.queue(these(&udids[1..])).await;
    let mut watch = berta.watch(&waits.id).await;
    let phone = stage.rig.phone(0);
    slow_tap(&phone, Duration::from_secs(2));
    let slow = anna.tapping(&udids[0], "slow", by(&lease));
    in_hand(&phone).await;
    anna.release(&lease.id).await.unwrap();
    assert_eq!(
        anna.device(&udids[1]).await.lease.unwrap().lease_id,
        lease.id
    );
    watch.until(LeaseChange::Granted).await;
    assert_eq!(effects(&phone, "slow").len(), 1, "it had ended by then");
    slow.told().await.unwrap();
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_whose_caller_has_gone_keeps_the_phone_until_it_has_ended() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    let mut watch = berta.watch(&waits.id).await;
    slow_tap(&phone, Duration::from_secs(2));
    let call = anna.tapping(&udid, "left-alone", by(&lease));
    in_hand(&phone).await;
    drop(call);
    let drains = anna.release(&lease.id).await.unwrap();
    assert_eq!(drains.state(), LeaseState::Draining);
    let granted = watch.until(LeaseChange::Granted).await.lease;
    let then = phone.report();
    assert_eq!((then.in_flight, then.effects_total), (0, 1));
    let row = stage.rig.concluded("left-alone").await;
    assert_sent_by(&row, &anna, Some(&lease));
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    assert_eq!(order(&phone), ["left-alone", "next"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_ends_in_its_time_whether_that_can_be_recorded_or_not() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let wish = pb::CreateLeaseRequest {
        ttl: seconds(2),
        ..any(1)
    };
    let lease = anna.take(wish).await;
    let waits = berta.queue(any(1)).await;
    let mut watch = berta.watch(&waits.id).await;
    let lock = WriteLock::take(&stage.rig.ledger_path()).await;
    soon("the end of the lease", async {
        let until = |device: pb::Device| device.lease.and_then(|lease| lease.until);
        while until(anna.device(&udid).await).is_some() {
            pause().await;
        }
    })
    .await;
    let told = anna.tap(&udid, "late", by(&lease)).await;
    assert_refused(told, Code::PermissionDenied, EXPIRED);
    // Nobody is told of what is not on record, and nobody has the phone.
    assert_eq!(anna.get(&lease.id).await.state(), LeaseState::Active);
    assert_eq!(berta.get(&waits.id).await.state(), LeaseState::Queued);
    let told = stage.carla().tap(&udid, "other", None).await;
    assert_refused(told, Code::PermissionDenied, "LEASE_HELD_BY_OTHER");
    let coming = Some(pb::LeaseRef {
        id: waits.id.clone(),
        epoch: lease.epoch + 1,
    });
    let told = berta.tap(&udid, "early", coming).await;
    assert_refused(told, Code::FailedPrecondition, "LEASE_NOT_ACTIVE");
    lock.release().await;
    let granted = watch.until(LeaseChange::Granted).await.lease;
    let ended = anna.get(&lease.id).await;
    assert_ended(&ended, LeaseState::Expired, "TTL_EXPIRED");
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    assert_eq!(order(&phone), ["next"]);
    stage.stop().await;
}
