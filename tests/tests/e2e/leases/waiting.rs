//! The line: who is before whom, for how long, and from when on.

use std::time::{Duration, SystemTime};

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use fleetgate_tests::facts::wait;
use fleetgate_tests::leasing::{any, seconds, span, these};
use tokio::time::Instant;

use super::{Stage, assert_ended};

#[tokio::test(flavor = "multi_thread")]
async fn waiters_have_places_and_are_served_in_the_order_in_which_they_came() {
    let stage = Stage::plain(1).await;
    let callers = [stage.anna(), stage.berta(), stage.carla(), stage.anna()];
    let mut holder = (stage.boss(), stage.boss().take(any(1)).await);
    let (mut line, mut watches) = (Vec::new(), Vec::new());
    for (n, caller) in callers.into_iter().enumerate() {
        let lease = caller.queue(any(1)).await;
        assert_eq!(lease.queue_position, u32::try_from(n + 1).ok());
        watches.push(caller.watch(&lease.id).await);
        line.push((caller, lease));
    }
    for (n, (caller, lease)) in line.into_iter().enumerate() {
        let (before, held) = &holder;
        before.release(&held.id).await.unwrap();
        let granted = caller.until(&lease.id, LeaseState::Active).await;
        assert!(granted.epoch > held.epoch, "{granted:?}");
        let told = watches[n].until(LeaseChange::Granted).await.lease;
        assert_eq!((told.epoch, told.queue_position), (granted.epoch, None));
        for (behind, watch) in watches.iter_mut().enumerate().skip(n + 1) {
            let place = u32::try_from(behind - n).ok();
            let moved = |log: &fleetgate_tests::leasing::Log| {
                let last = log.news.last();
                last.is_some_and(|told| told.lease.queue_position == place)
            };
            let log = watch.wait(&format!("place {place:?}"), moved).await;
            assert!(log.first(LeaseChange::Granted).is_none(), "{log:#?}");
        }
        holder = (caller, granted);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_higher_priority_goes_first_and_nobody_gets_more_than_its_role_may() {
    let stage = Stage::plain(1).await;
    let (anna, berta, boss) = (stage.anna(), stage.berta(), stage.boss());
    let held = anna.take(any(1)).await;
    let wish = |priority| pb::CreateLeaseRequest { priority, ..any(1) };
    let low = anna.queue(wish(0)).await;
    let high = berta.queue(wish(1_000)).await;
    let next = anna.queue(wish(10)).await;
    let top = boss.queue(wish(1_000)).await;
    let given = [&low, &high, &next, &top].map(|lease| lease.priority);
    assert_eq!(given, [0, 10, 10, 100]);
    let late = anna.queue(wish(-5)).await;
    let places = |of: [&pb::Lease; 5]| {
        let ids = of.map(|lease| lease.id.clone());
        let anna = anna.clone();
        async move {
            let mut places = Vec::new();
            for id in ids {
                places.push(anna.get(&id).await.queue_position());
            }
            places
        }
    };
    let now = places([&top, &high, &next, &low, &late]).await;
    assert_eq!(now, [1, 2, 3, 4, 5], "of equals the older first");

    // The last becomes the second, after those of its priority.
    let change = pb::UpdateLeaseRequest {
        lease_id: late.id.clone(),
        priority: Some(1_000),
        ..pb::UpdateLeaseRequest::default()
    };
    assert_eq!(anna.update(change).await.unwrap().priority, 10);
    let now = places([&top, &high, &next, &late, &low]).await;
    assert_eq!(now, [1, 2, 3, 4, 5]);

    let mut held = (anna.clone(), held);
    for (caller, lease) in [
        (&boss, top),
        (&berta, high),
        (&anna, next),
        (&anna, late),
        (&anna, low),
    ] {
        held.0.release(&held.1.id).await.unwrap();
        let granted = caller.until(&lease.id, LeaseState::Active).await;
        held = (caller.clone(), granted);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_want_to_wait_gets_the_phone_at_once_or_not_at_all() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let now = pb::CreateLeaseRequest {
        queue_timeout: seconds(0),
        ..any(1)
    };
    let held = anna.take(now.clone()).await;
    let refused = berta.ask(now.clone()).await.unwrap();
    assert_ended(&refused, LeaseState::Expired, "QUEUE_TIMEOUT");
    let done = ["token:berta create-lease", "fleetgate expire-lease"];
    assert_eq!(stage.done_to(&refused.id).await, done);
    anna.release(&held.id).await.unwrap();
    berta.take(now).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_as_long_as_it_wants_to_is_told_that_it_was_not_granted() {
    let stage = Stage::plain(1).await;
    let (anna, berta, carla) = (stage.anna(), stage.berta(), stage.carla());
    let held = anna.take(any(1)).await;
    let begun = Instant::now();
    let patience = Duration::from_millis(700);
    let wish = pb::CreateLeaseRequest {
        queue_timeout: span(patience),
        ..any(1)
    };
    let waits = berta.queue(wish).await;
    assert!(wait(waits.remaining) <= patience, "{waits:?}");
    let behind = carla.queue(any(1)).await;
    let log = berta.watch(&waits.id).await.end().await;
    assert!(begun.elapsed() >= patience, "not before its time");
    assert_eq!(log.changes(), [LeaseChange::Snapshot, LeaseChange::Ended]);
    let ended = &log.news.last().unwrap().lease;
    assert_ended(ended, LeaseState::Expired, "QUEUE_TIMEOUT");
    assert_eq!((ended.epoch, ended.devices.len()), (0, 0));
    assert_eq!(carla.get(&behind.id).await.queue_position(), 1);
    anna.release(&held.id).await.unwrap();
    carla.until(&behind.id, LeaseState::Active).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_begins_later_neither_waits_nor_keeps_anything_back_before() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let udid = stage.rig.udid(0);
    let ahead = Duration::from_millis(1_500);
    let begun = Instant::now();
    let wish = pb::CreateLeaseRequest {
        begin_time: Some((SystemTime::now() + ahead).into()),
        ..these(&[&udid])
    };
    let later = anna.ask(wish).await.unwrap();
    assert_eq!(later.state(), LeaseState::Scheduled);
    let open = (later.queue_position, later.epoch);
    assert_eq!(open, (None, 0), "{later:?}");
    let why = anna.explain(&later.id).await;
    let said = "its time has not come: 1 matches, 1 wanted: 1 free";
    assert_eq!(why.summary, said);
    // Somebody else has the phone meanwhile, and gives it back.
    let now = berta.take(these(&[&udid])).await;
    let mut watch = anna.watch(&later.id).await;
    let waits = watch.until(LeaseChange::Queued).await;
    assert!(waits.at - begun >= ahead, "not before its time");
    assert_eq!(waits.lease.queue_position(), 1);
    berta.release(&now.id).await.unwrap();
    let granted = watch.until(LeaseChange::Granted).await.lease;
    assert!(granted.epoch > now.epoch);
    let done = ["token:anna create-lease", "fleetgate grant-lease"];
    assert_eq!(stage.done_to(&later.id).await, done);

    // What is past begins at once.
    let wish = pb::CreateLeaseRequest {
        begin_time: Some((SystemTime::now() - Duration::from_secs(60)).into()),
        ..these(&[&udid])
    };
    berta.queue(wish).await;
    stage.stop().await;
}
