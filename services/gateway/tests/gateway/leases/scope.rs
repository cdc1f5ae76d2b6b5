//! Leases for those who may not look at every phone: whose leases they hear of,
//! and how urgent theirs are.

use fleetgate_identity::{Grant, Role};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::create_lease_request::Wants;
use fleetgate_proto::v1::lease_service_client::LeaseServiceClient;
use fleetgate_proto::v1::{LeaseChange, LeaseState};
use tonic::metadata::AsciiMetadataValue;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::these;
use crate::guarded::{Guarded, RACK_A, RACK_B, everywhere, in_rack, soon};
use crate::support::reason;

type Says = Box<dyn FnMut(Request<()>) -> Result<Request<()>, Status> + Send + Sync>;
pub(super) type Client = LeaseServiceClient<InterceptedService<Channel, Says>>;

/// Two who drive in rack a, one of them as its admin, and one in both racks.
async fn guarded() -> Guarded {
    let (operator, admin) = (Role::Operator, Role::Admin);
    let both = vec![in_rack(admin, "a"), in_rack(operator, "b")];
    let callers: [(&str, Vec<Grant>); 4] = [
        ("ann", vec![in_rack(admin, "a")]),
        ("bob", vec![in_rack(operator, "a")]),
        ("cid", both),
        ("eve", everywhere(operator)),
    ];
    Guarded::knowing(callers, "").await
}

pub(super) async fn by(guarded: &Guarded, name: &str) -> Client {
    let says: AsciiMetadataValue = guarded.says(name).parse().unwrap();
    let says: Says = Box::new(move |mut request: Request<()>| {
        request.metadata_mut().insert("authorization", says.clone());
        Ok(request)
    });
    LeaseServiceClient::with_interceptor(guarded.channel().await, says)
}

fn any(racks: &[(&str, &str)]) -> pb::CreateLeaseRequest {
    let label = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pb::CreateLeaseRequest {
        wants: Some(Wants::DeviceMatch(pb::DeviceMatch {
            selector: Some(pb::DeviceSelector {
                labels: racks.iter().map(label).collect(),
                ..pb::DeviceSelector::default()
            }),
            count: 1,
        })),
        ..pb::CreateLeaseRequest::default()
    }
}

async fn make(client: &mut Client, wish: pb::CreateLeaseRequest) -> pb::Lease {
    let made = client.create_lease(wish).await.unwrap().into_inner();
    made.lease.unwrap()
}

fn watch(lease: &pb::Lease) -> pb::WatchLeaseRequest {
    pb::WatchLeaseRequest {
        lease_id: lease.id.clone(),
    }
}

async fn listed(client: &mut Client) -> Vec<String> {
    let listed = client.list_leases(pb::ListLeasesRequest::default()).await;
    let leases = listed.unwrap().into_inner().leases.into_iter();
    leases.map(|lease| lease.id).collect()
}

#[tokio::test]
async fn a_lease_that_takes_what_matches_is_nobody_elses_to_see_before_it_has_phones() {
    let guarded = guarded().await;
    let (mut ann, mut bob) = (by(&guarded, "ann").await, by(&guarded, "bob").await);
    let mut eve = by(&guarded, "eve").await;
    let lease = make(&mut ann, any(&[])).await;
    assert_eq!(lease.state(), LeaseState::Queued);
    let lease_id = || lease.id.clone();
    let hidden = (Code::NotFound, "LEASE_NOT_FOUND".to_owned());
    let get = || pb::GetLeaseRequest {
        lease_id: lease_id(),
    };
    let refused = bob.get_lease(get()).await.unwrap_err();
    assert_eq!(reason(&refused), hidden);
    let refused = bob.watch_lease(watch(&lease)).await.unwrap_err();
    assert_eq!(reason(&refused), hidden);
    assert_eq!(listed(&mut bob).await, Vec::<String>::new());
    for client in [&mut ann, &mut eve] {
        client.get_lease(get()).await.unwrap();
        assert_eq!(listed(client).await, [lease_id()]);
    }
    // One of phones that it may look at is told of.
    let named = make(&mut ann, these(&["left"])).await;
    assert_eq!(listed(&mut bob).await, [named.id]);
    drop((ann, bob, eve));
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn who_may_not_look_at_the_phones_any_more_hears_no_more_of_their_lease() {
    let guarded = guarded().await;
    let (mut ann, mut bob) = (by(&guarded, "ann").await, by(&guarded, "bob").await);
    let lease = make(&mut ann, these(&["left"])).await;
    let mut told = bob.watch_lease(watch(&lease)).await.unwrap().into_inner();
    let first = told.message().await.unwrap().unwrap();
    assert_eq!(first.change(), LeaseChange::Snapshot);
    let moved = pb::UpdateDeviceRequest {
        device: RACK_A.to_owned(),
        set_labels: [("rack".to_owned(), "c".to_owned())].into(),
        ..pb::UpdateDeviceRequest::default()
    };
    let mut admin = guarded.by(&guarded.admin).await;
    admin.fleet.update_device(moved).await.unwrap();
    let lease_id = lease.id.clone();
    let release = pb::ReleaseLeaseRequest { lease_id };
    ann.release_lease(release).await.unwrap();
    let ended = soon("the end of the watch", told.message()).await;
    let hidden = (Code::NotFound, "LEASE_NOT_FOUND".to_owned());
    assert_eq!(reason(&ended.unwrap_err()), hidden);
    drop((ann, bob, admin, told));
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn whatever_is_done_to_a_lease_that_is_hidden_there_is_none_and_that_is_on_record() {
    let guarded = guarded().await;
    let (mut cid, mut bob) = (by(&guarded, "cid").await, by(&guarded, "bob").await);
    let lease = make(&mut cid, these(&["right"])).await;
    let lease_id = || lease.id.clone();
    let renew = pb::RenewLeaseRequest {
        lease_id: lease_id(),
        epoch: 0,
    };
    let update = pb::UpdateLeaseRequest {
        lease_id: lease_id(),
        priority: Some(1),
        ..pb::UpdateLeaseRequest::default()
    };
    let release = || pb::ReleaseLeaseRequest {
        lease_id: lease_id(),
    };
    let explain = pb::ExplainLeaseRequest {
        lease_id: lease_id(),
    };
    let refused = [
        bob.renew_lease(renew).await.unwrap_err(),
        bob.update_lease(update).await.unwrap_err(),
        bob.release_lease(release()).await.unwrap_err(),
        bob.explain_lease(explain).await.unwrap_err(),
    ];
    cid.release_lease(release()).await.unwrap();
    let late = bob.release_lease(release()).await.unwrap_err();
    for refused in refused.iter().chain([&late]) {
        let hidden = (Code::NotFound, "LEASE_NOT_FOUND".to_owned());
        assert_eq!(reason(refused), hidden);
    }
    drop((cid, bob));
    let entries = guarded.end().await;
    assert_eq!(entries.len(), 5, "each once: {entries:?}");
    for entry in entries {
        assert_eq!(entry.operation.who, "token:bob");
        assert_eq!(entry.operation.detail["lease"], lease.id);
    }
}

#[tokio::test]
async fn why_a_lease_waits_says_nothing_of_phones_and_leases_that_are_hidden() {
    let guarded = guarded().await;
    let (mut bob, mut eve) = (by(&guarded, "bob").await, by(&guarded, "eve").await);
    let hidden = make(&mut eve, any(&[])).await;
    let seen = make(&mut eve, these(&["left"])).await;
    let own = make(&mut bob, these(&["left"])).await;
    let explain = pb::ExplainLeaseRequest { lease_id: own.id };
    let told = bob.explain_lease(explain).await.unwrap().into_inner();
    assert_eq!(told.leases_ahead, [seen.id], "and not {}", hidden.id);
    // A lease of two racks whose owner may look at one of them by now.
    let moved = pb::UpdateDeviceRequest {
        device: RACK_B.to_owned(),
        set_labels: [("rack".to_owned(), "a".to_owned())].into(),
        ..pb::UpdateDeviceRequest::default()
    };
    let mut admin = guarded.by(&guarded.admin).await;
    admin.fleet.update_device(moved.clone()).await.unwrap();
    let both = make(&mut bob, these(&["left", "right"])).await;
    let back = pb::UpdateDeviceRequest {
        set_labels: [("rack".to_owned(), "b".to_owned())].into(),
        ..moved
    };
    admin.fleet.update_device(back).await.unwrap();
    let explain = pb::ExplainLeaseRequest { lease_id: both.id };
    let told = bob.explain_lease(explain).await.unwrap().into_inner();
    assert_eq!(told.summary, "1 matches, 2 wanted: 1 unplugged");
    assert_eq!(told.devices.len(), 1);
    drop((bob, eve, admin));
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn an_admin_of_some_phones_is_an_admin_for_leases_of_those_alone() {
    let guarded = guarded().await;
    let urgent = |wish: pb::CreateLeaseRequest| pb::CreateLeaseRequest {
        priority: 50,
        ..wish
    };
    let rack_b = any(&[("rack", "b")]);
    for (who, wish, expected) in [
        ("ann", these(&["left"]), 50),
        ("ann", any(&[]), 50),
        ("bob", these(&["left"]), 10),
        ("bob", any(&[]), 10),
        ("cid", these(&["left"]), 50),
        ("cid", these(&["right"]), 10),
        ("cid", these(&["left", "right"]), 10),
        ("cid", rack_b, 10),
        ("eve", these(&["left"]), 10),
    ] {
        let mut client = by(&guarded, who).await;
        let lease = make(&mut client, urgent(wish.clone())).await;
        assert_eq!(lease.priority, expected, "{who} {wish:?}");
        let lower = make(&mut client, wish.clone()).await;
        let raise = pb::UpdateLeaseRequest {
            lease_id: lower.id,
            priority: Some(50),
            ..pb::UpdateLeaseRequest::default()
        };
        let raised = client.update_lease(raise).await.unwrap().into_inner();
        let raised = raised.lease.unwrap();
        assert_eq!(raised.priority, expected, "{who} {wish:?}");
    }
    guarded.gateway.shutdown().await;
}
