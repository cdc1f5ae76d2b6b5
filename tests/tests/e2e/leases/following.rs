//! What those are told who follow a lease, and those who look at its phone.

use std::time::{Duration, SystemTime};

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use fleetgate_tests::facts::moment;
use fleetgate_tests::leasing::{self, Log, Told, any, by, seconds, span};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::{plain_lab, soon};
use tonic::Code;

use super::{Stage, assert_ended, assert_refused, in_hand, slow_tap};

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_followed_from_the_line_to_its_end_and_the_end_is_the_last_of_it() {
    let stage = Stage::plain(1).await;
    let (anna, berta, guest) = (stage.anna(), stage.berta(), stage.guest());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let first = anna.take(any(1)).await;
    let second = anna.queue(any(1)).await;
    let wish = pb::CreateLeaseRequest {
        ttl: seconds(1),
        ..any(1)
    };
    let lease = berta.queue(wish).await;
    // Whoever may look at the phone may look at who has it.
    let mut watches = [berta.watch(&lease.id).await, guest.watch(&lease.id).await];
    for watch in &mut watches {
        let snapshot = watch.until(LeaseChange::Snapshot).await.lease;
        assert_eq!(snapshot.queue_position(), 2);
    }
    anna.release(&second.id).await.unwrap();
    for watch in &mut watches {
        let moved = watch.until(LeaseChange::Queued).await.lease;
        assert_eq!(
            (moved.state(), moved.queue_position()),
            (LeaseState::Queued, 1)
        );
    }
    // The end comes while a command is in flight.
    slow_tap(&phone, Duration::from_secs(3));
    anna.release(&first.id).await.unwrap();
    let granted = watches[0].until(LeaseChange::Granted).await.lease;
    let tap = berta.tapping(&udid, "tap", by(&granted));
    in_hand(&phone).await;
    let mut logs = Vec::new();
    for watch in &mut watches {
        logs.push(watch.end().await);
    }
    tap.told().await.unwrap();
    for log in &logs {
        let expected = [
            LeaseChange::Snapshot,
            LeaseChange::Queued,
            LeaseChange::Granted,
            LeaseChange::Expiring,
            LeaseChange::Draining,
            LeaseChange::Ended,
        ];
        assert_eq!(log.changes(), expected, "{log:#?}");
        let granted = &log.first(LeaseChange::Granted).unwrap().lease;
        assert_eq!(granted.state(), LeaseState::Active);
        assert!(granted.epoch > first.epoch && granted.devices == [udid.as_str()]);
        let expiring = log.first(LeaseChange::Expiring).unwrap();
        assert!(
            expiring.remaining() <= Duration::from_millis(334),
            "{expiring:?}"
        );
        let draining = &log.first(LeaseChange::Draining).unwrap().lease;
        assert_eq!(draining.state(), LeaseState::Draining);
        assert_eq!(draining.end_reason(), "TTL_EXPIRED");
        let ended = &log.first(LeaseChange::Ended).unwrap().lease;
        assert_ended(ended, LeaseState::Expired, "TTL_EXPIRED");
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_late_is_told_how_it_ended_and_who_asks_for_nothing_is_told_so() {
    let stage = Stage::plain(1).await;
    let anna = stage.anna();
    let lease = anna.take(any(1)).await;
    let mut early = anna.watch(&lease.id).await;
    early.until(LeaseChange::Snapshot).await;
    anna.release(&lease.id).await.unwrap();
    early.end().await;
    let stage = stage.restart().await;
    for who in [stage.anna(), stage.guest()] {
        let log = who.watch(&lease.id).await.end().await;
        assert_eq!(log.changes(), [LeaseChange::Snapshot]);
        assert_ended(&log.news[0].lease, LeaseState::Released, "RELEASED");
    }
    let request = |id: &str| pb::WatchLeaseRequest {
        lease_id: id.to_owned(),
    };
    let unknown = stage.anna().leases().watch_lease(request("none")).await;
    assert_refused(unknown, Code::NotFound, "LEASE_NOT_FOUND");
    let nameless = stage.anna().leases().watch_lease(request("")).await;
    let nameless = fleetgate_tests::refused(nameless);
    assert_eq!(nameless.code, Code::InvalidArgument);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_with_nothing_to_tell_beats_and_ends_with_its_gateway_but_not_the_lease() {
    let rig = leasing::configured(plain_lab(1, 1.0), |config| {
        config.server.heartbeat_interval = Duration::from_millis(50);
    });
    let stage = Stage::of(rig.await);
    let anna = stage.anna();
    let lease = anna.take(any(1)).await;
    let mut watch = anna.watch(&lease.id).await;
    let beats = |log: &Log| {
        let beats = log.news.iter();
        let beats = beats.filter(|told| told.change == LeaseChange::Heartbeat);
        beats.count() >= 3
    };
    let log = watch.wait("heartbeats", beats).await;
    let left: Vec<_> = log.news.iter().map(Told::remaining).collect();
    assert!(
        left.is_sorted_by(|a, b| a > b),
        "each is as of now: {left:?}"
    );

    let stage = stage.restart().await;
    let log = watch.wait("the end", |log| log.ended.is_some()).await;
    let end = log.ended.unwrap();
    assert_refused(end, Code::Unavailable, "GATEWAY_DRAINING");
    let anna = stage.anna();
    let mut watch = anna.watch(&lease.id).await;
    let snapshot = watch.until(LeaseChange::Snapshot).await.lease;
    assert_eq!(
        (snapshot.state(), snapshot.epoch),
        (LeaseState::Active, lease.epoch)
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_look_at_a_phone_see_whose_it_is() {
    let stage = Stage::plain(2).await;
    let (anna, berta, guest) = (stage.anna(), stage.berta(), stage.guest());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let mut mirror = Mirror::follow(stage.rig.channel()).await;
    let holder = |seen: &Seen| {
        let device = seen.devices.get(&udid);
        device.and_then(|device| device.lease.clone())
    };
    assert_eq!(guest.device(&udid).await.lease, None);
    let wish = pb::CreateLeaseRequest {
        ttl: span(Duration::from_secs(90)),
        ..leasing::these(&[&udid])
    };
    let lease = anna.take(wish).await;
    let waits = berta.queue(leasing::these(&[&udid])).await;
    let shown = guest.device(&udid).await.lease.unwrap();
    let whose = (&shown.lease_id, &shown.owner, shown.epoch);
    assert_eq!(whose, (&lease.id, &lease.owner, lease.epoch));
    let until = moment(shown.until)
        .duration_since(SystemTime::now())
        .unwrap();
    assert!(until > Duration::from_secs(60), "{until:?}");
    assert!(until <= Duration::from_secs(90), "{until:?}");
    let is_annas = |seen: &Seen| holder(seen).is_some_and(|held| held.lease_id == lease.id);
    mirror.until("anna's lease", is_annas).await;

    slow_tap(&phone, Duration::from_secs(1));
    let tap = anna.tapping(&udid, "tap", by(&lease));
    in_hand(&phone).await;
    anna.release(&lease.id).await.unwrap();
    let drains = guest.device(&udid).await.lease.unwrap();
    assert_eq!((&drains.lease_id, drains.until), (&lease.id, None));
    tap.told().await.unwrap();
    let is_bertas = |seen: &Seen| holder(seen).is_some_and(|held| held.lease_id == waits.id);
    let seen = mirror.until("berta's lease", is_bertas).await;
    let held = holder(&seen).unwrap();
    assert_eq!(held.owner, berta.principal());
    assert!(held.epoch > lease.epoch);
    assert_eq!(seen.devices[&stage.rig.udid(1)].lease, None);

    let stage = stage.restart().await;
    let shown = stage.guest().device(&udid).await.lease.unwrap();
    assert_eq!((&shown.lease_id, shown.epoch), (&waits.id, held.epoch));
    let mut mirror = Mirror::follow(stage.rig.channel()).await;
    mirror.until("berta's lease", is_bertas).await;
    stage.berta().release(&waits.id).await.unwrap();
    mirror
        .until("a phone of nobody's", |seen| {
            seen.synced == 1 && holder(seen).is_none()
        })
        .await;
    soon("the same", async {
        while stage.guest().device(&udid).await.lease.is_some() {
            fleetgate_tests::pause().await;
        }
    })
    .await;
    stage.stop().await;
}
