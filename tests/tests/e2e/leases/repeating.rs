//! Wishes that come twice, since their callers did not hear the answer.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::LeaseState;
use fleetgate_tests::leasing::{any, by, seconds, these};
use tokio::task::JoinSet;
use tonic::Code;

use super::{Stage, assert_refused};

fn wish(udid: &str) -> pb::CreateLeaseRequest {
    pb::CreateLeaseRequest {
        request_id: "build 4711".to_owned(),
        ttl: seconds(600),
        ..these(&[udid])
    }
}

/// How many leases there ever were.
async fn made(stage: &Stage) -> usize {
    let operations = stage.records().operations().await;
    let made = operations.iter().filter(|done| done.what == "create-lease");
    made.count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_is_repeated_makes_one_lease_also_across_a_restart_and_after_its_end() {
    let stage = Stage::plain(1).await;
    let (anna, udid) = (stage.anna(), stage.rig.udid(0));
    let lease = anna.take(wish(&udid)).await;
    let again = anna.take(wish(&udid)).await;
    assert_eq!((&again.id, again.epoch), (&lease.id, lease.epoch));

    let stage = stage.restart().await;
    let anna = stage.anna();
    let again = anna.take(wish(&udid)).await;
    assert_eq!((&again.id, again.epoch), (&lease.id, lease.epoch));
    anna.tap(&udid, "tap", by(&lease)).await.unwrap();
    anna.release(&lease.id).await.unwrap();
    for stage in [&stage] {
        let again = stage.anna().ask(wish(&udid)).await.unwrap();
        assert_eq!(again.id, lease.id);
        assert_eq!(again.state(), LeaseState::Released, "it is not made anew");
    }
    let stage = stage.restart().await;
    let again = stage.anna().ask(wish(&udid)).await.unwrap();
    assert_eq!(
        (&again.id, again.state()),
        (&lease.id, LeaseState::Released)
    );
    assert_eq!(made(&stage).await, 1);
    assert_eq!(stage.rig.phone(0).effects().len(), 1);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_its_callers_only_and_of_one_wish_only() {
    let stage = Stage::plain(1).await;
    let (anna, berta, udid) = (stage.anna(), stage.berta(), stage.rig.udid(0));
    let lease = anna.take(wish(&udid)).await;
    let other = berta.queue(wish(&udid)).await;
    assert_ne!(other.id, lease.id);

    let differs = pb::CreateLeaseRequest {
        priority: 1,
        ttl: seconds(601),
        ..wish(&udid)
    };
    let refusal = assert_refused(
        anna.ask(differs).await,
        Code::AlreadyExists,
        "REQUEST_ID_CONFLICT",
    );
    let fields = refusal.violations.iter().map(|(field, _)| field.as_str());
    assert_eq!(fields.collect::<Vec<_>>(), ["priority", "ttl"]);
    assert_eq!(made(&stage).await, 2);
    // In another spelling it is the same wish.
    let spelt = udid.to_ascii_lowercase();
    assert_eq!(anna.take(wish(&spelt)).await.id, lease.id);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_comes_many_times_at_once_makes_one_lease() {
    let stage = Stage::plain(3).await;
    let anna = stage.anna();
    let mut asking = JoinSet::new();
    for _ in 0..24 {
        let anna = anna.clone();
        asking.spawn(async move {
            let wish = pb::CreateLeaseRequest {
                request_id: "at once".to_owned(),
                ..any(1)
            };
            anna.take(wish).await
        });
    }
    let leases = asking.join_all().await;
    let same = |lease: &pb::Lease| (lease.id.clone(), lease.epoch, lease.devices.clone());
    assert!(leases.iter().all(|lease| same(lease) == same(&leases[0])));
    assert_eq!(made(&stage).await, 1);
    stage.stop().await;
}
