//! How long a lease lives, and who keeps it alive.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use fleetgate_tests::facts::wait;
use fleetgate_tests::leasing::{Log, any, by, seconds, span};
use fleetgate_tests::soon;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use super::{Stage, assert_ended, assert_refused};

/// Told to those who come too late.
const EXPIRED: &str = "LEASE_EXPIRED";

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lives_while_it_is_renewed_and_for_one_ttl_after() {
    let stage = Stage::plain(1).await;
    let (anna, udid) = (stage.anna(), stage.rig.udid(0));
    let ttl = Duration::from_millis(1_200);
    let wish = pb::CreateLeaseRequest {
        ttl: span(ttl),
        ..any(1)
    };
    let begun = Instant::now();
    let lease = anna.take(wish).await;
    let mut watch = anna.watch(&lease.id).await;
    let mut last = begun;
    for round in 1..=3 {
        let warned = |log: &Log| {
            let expiring = log.news.iter();
            let expiring = expiring.filter(|told| told.change == LeaseChange::Expiring);
            expiring.count() >= round
        };
        let log = watch.wait("a warning", warned).await;
        let told = log.news.last().unwrap();
        assert_eq!(told.change, LeaseChange::Expiring, "{log:#?}");
        assert!(told.remaining() <= ttl / 3, "{told:?}");
        last = Instant::now();
        let renewed = anna.renew(&lease).await.unwrap();
        assert_eq!(renewed.state(), LeaseState::Active);
        assert_eq!(renewed.epoch, lease.epoch, "the same grant");
        assert!(wait(renewed.remaining) > ttl / 2, "{renewed:?}");
    }
    anna.tap(&udid, "alive", by(&lease)).await.unwrap();
    let log = watch.end().await;
    assert!(last.elapsed() >= ttl, "not before its time");
    assert_ended(
        &log.news.last().unwrap().lease,
        LeaseState::Expired,
        "TTL_EXPIRED",
    );
    let late = assert_refused(anna.renew(&lease).await, Code::PermissionDenied, EXPIRED);
    assert_eq!(late.meta("lease"), lease.id);
    let done = [
        "token:anna create-lease",
        "fleetgate grant-lease",
        "fleetgate expire-lease",
        "fleetgate end-lease",
    ];
    assert_eq!(
        stage.done_to(&lease.id).await,
        done,
        "no renewal among them"
    );
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_keeps_leases_alive_until_it_names_one_that_cannot_be() {
    let stage = Stage::plain(2).await;
    let anna = stage.anna();
    let ttl = Duration::from_secs(2);
    let wish = pb::CreateLeaseRequest {
        ttl: span(ttl),
        ..any(1)
    };
    let leases = [anna.take(wish.clone()).await, anna.take(wish).await];
    let mut watch = anna.watch(&leases[0].id).await;
    let (renewals, sent) = mpsc::channel(4);
    let kept = anna.leases().keep_alive(ReceiverStream::new(sent)).await;
    let mut kept = kept.unwrap().into_inner();
    let message = |lease: &pb::Lease, epoch| pb::KeepAliveRequest {
        lease_id: lease.id.clone(),
        epoch,
    };
    // Each is answered, in order.
    for lease in leases.iter().chain(&leases) {
        renewals.send(message(lease, lease.epoch)).await.unwrap();
    }
    for lease in leases.iter().chain(&leases) {
        let answer = soon("an answer", kept.message()).await.unwrap();
        let answer = answer.unwrap().lease.unwrap();
        assert_eq!((&answer.id, answer.epoch), (&lease.id, lease.epoch));
    }
    watch.until(LeaseChange::Expiring).await;
    renewals
        .send(message(&leases[0], leases[0].epoch))
        .await
        .unwrap();
    let renewed = soon("an answer", kept.message()).await.unwrap().unwrap();
    assert!(wait(renewed.lease.unwrap().remaining) > ttl / 2);

    let others = message(&leases[0], leases[1].epoch);
    renewals.send(others).await.unwrap();
    let end = soon("the end", kept.message()).await;
    let refusal = assert_refused(end, Code::PermissionDenied, "LEASE_EPOCH_STALE");
    assert_eq!(refusal.meta("lease_epoch"), leases[0].epoch.to_string());
    // The stream has ended, and released nothing.
    let lease = anna.get(&leases[0].id).await;
    assert_eq!(lease.state(), LeaseState::Active);
    watch.end().await;

    let (renewals, sent) = mpsc::channel(1);
    let kept = anna.leases().keep_alive(ReceiverStream::new(sent)).await;
    drop(renewals);
    let end = soon("the end", kept.unwrap().into_inner().message()).await;
    assert_eq!(end.unwrap(), None, "whoever says no more is told no more");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_renewal_makes_a_lease_longer_than_it_may_last() {
    let stage = Stage::plain(1).await;
    let anna = stage.anna();
    let longest = Duration::from_millis(1_000);
    let begun = Instant::now();
    let wish = pb::CreateLeaseRequest {
        max_duration: span(longest),
        ..any(1)
    };
    let lease = anna.take(wish).await;
    let renewed = anna.renew(&lease).await.unwrap();
    assert!(wait(renewed.remaining) <= longest, "{renewed:?}");
    let log = anna.watch(&lease.id).await.end().await;
    assert!(begun.elapsed() >= longest, "not before its time");
    let ended = &log.news.last().unwrap().lease;
    assert_ended(ended, LeaseState::Expired, "MAX_DURATION");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_changed_in_what_may_be_changed_of_it() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let context = [("build".to_owned(), "4711".to_owned())];
    let wish = pb::CreateLeaseRequest {
        context: context.clone().into(),
        labels: [("a", "1"), ("b", "2")]
            .map(|(k, v)| (k.into(), v.into()))
            .into(),
        ..any(1)
    };
    let lease = anna.take(wish).await;
    let mut watch = berta.watch(&lease.id).await;
    let change = pb::UpdateLeaseRequest {
        lease_id: lease.id.clone(),
        ttl: seconds(300),
        max_duration: seconds(200),
        set_labels: [("c".to_owned(), "3".to_owned())].into(),
        remove_labels: vec!["a".to_owned(), "none".to_owned()],
        ..pb::UpdateLeaseRequest::default()
    };
    let changed = anna.update(change.clone()).await.unwrap();
    let terms = [changed.ttl, changed.max_duration];
    assert_eq!(terms.map(|term| wait(term).as_secs()), [300, 200]);
    let remaining = wait(changed.remaining).as_secs();
    assert!((150..=200).contains(&remaining), "of both: {changed:?}");
    let labels = [("b", "2"), ("c", "3")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(changed.labels, labels.into());
    assert_eq!(changed.context, context.into(), "that never changes");
    let told = watch.until(LeaseChange::Updated).await.lease;
    assert_eq!(told.labels, changed.labels);

    let priority = pb::UpdateLeaseRequest {
        lease_id: lease.id.clone(),
        priority: Some(5),
        ..pb::UpdateLeaseRequest::default()
    };
    let late = anna.update(priority).await;
    assert_refused(late, Code::FailedPrecondition, "LEASE_NOT_WAITING");
    let not_own = berta.update(change.clone()).await;
    assert_refused(not_own, Code::PermissionDenied, "LEASE_NOT_OWNER");
    let denied = stage.records().denials("LEASE_NOT_OWNER", 1).await;
    assert_eq!(denied[0].who, berta.principal());
    assert_eq!(denied[0].detail("lease"), lease.id);
    anna.release(&lease.id).await.unwrap();
    let late = anna.update(change).await;
    assert_refused(late, Code::PermissionDenied, "LEASE_RELEASED");
    let done = stage.done_to(&lease.id).await;
    let updates = done
        .iter()
        .filter(|done| *done == "token:anna update-lease");
    assert_eq!(updates.count(), 1, "{done:?}");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_renews_a_lease_and_only_by_its_grant() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let lease = anna.take(any(1)).await;
    let not_own = berta.renew(&lease).await;
    assert_refused(not_own, Code::PermissionDenied, "LEASE_NOT_OWNER");
    let not_yet = pb::Lease {
        epoch: lease.epoch + 1,
        ..lease.clone()
    };
    let not_yet = anna.renew(&not_yet).await;
    assert_refused(not_yet, Code::PermissionDenied, "LEASE_EPOCH_STALE");
    let nobody = pb::Lease {
        id: "nobody-knows-it".to_owned(),
        ..lease.clone()
    };
    let unknown = anna.renew(&nobody).await;
    assert_refused(unknown, Code::NotFound, "LEASE_NOT_FOUND");
    // While it waits it has no grant.
    let waits = berta.queue(any(1)).await;
    let waits = berta.renew(&waits).await.unwrap();
    assert_eq!((waits.state(), waits.epoch), (LeaseState::Queued, 0));
    stage.stop().await;
}
