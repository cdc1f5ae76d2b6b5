//! Leases by the page, and why one waits.

use std::collections::BTreeSet;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceObstacle::{
    Busy, Cordoned, Detached, Leased, Quarantined, Reserved,
};
use fleetgate_proto::v1::{DeviceObstacle, DeviceState, LeaseState};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::moment;
use fleetgate_tests::leasing::{self, Caller, any, seconds, these};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{launching, plain_lab};
use tonic::Code;

use super::{Stage, in_hand};

/// All pages of what matches.
async fn listed(who: &Caller, filter: pb::ListLeasesRequest) -> Vec<String> {
    let mut ids = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListLeasesRequest {
            page_token,
            ..filter.clone()
        };
        let page = who
            .leases()
            .list_leases(request)
            .await
            .unwrap()
            .into_inner();
        let most = usize::try_from(filter.page_size).unwrap();
        assert!(
            most == 0 || page.leases.len() <= most,
            "{}",
            page.leases.len()
        );
        ids.extend(page.leases.into_iter().map(|lease| lease.id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return ids;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_are_listed_by_the_page_the_newest_first_and_by_whatever_is_asked_for() {
    let stage = Stage::plain(2).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let udids = [stage.rig.udid(0), stage.rig.udid(1)];
    let mut released = Vec::new();
    for n in 0..5 {
        let lease = anna.take(these(&[&udids[n % 2]])).await;
        anna.release(&lease.id).await.unwrap();
        released.push(lease.id);
    }
    let held = anna.take(these(&udids[..1])).await.id;
    let waits = berta.queue(these(&udids[..1])).await.id;
    let mut all: Vec<_> = released.iter().chain([&held, &waits]).cloned().collect();
    all.reverse();
    for page_size in [0, 1, 3, 7, 1000] {
        let filter = pb::ListLeasesRequest {
            page_size,
            ..pb::ListLeasesRequest::default()
        };
        assert_eq!(listed(&anna, filter).await, all, "{page_size}");
    }
    let states = |states: &[LeaseState]| pb::ListLeasesRequest {
        states: states.iter().map(|state| (*state).into()).collect(),
        page_size: 2,
        ..pb::ListLeasesRequest::default()
    };
    let owner = |owner: &Caller| pb::ListLeasesRequest {
        owner: owner.principal(),
        page_size: 2,
        ..pb::ListLeasesRequest::default()
    };
    let device = |device: &str| pb::ListLeasesRequest {
        device: device.to_owned(),
        ..pb::ListLeasesRequest::default()
    };
    let open = states(&[LeaseState::Active, LeaseState::Queued]);
    assert_eq!(listed(&anna, open).await, [waits.as_str(), held.as_str()]);
    let ended = listed(&anna, states(&[LeaseState::Released])).await;
    assert_eq!(ended, all[2..]);
    assert_eq!(listed(&anna, owner(&berta)).await, [waits.as_str()]);
    assert_eq!(listed(&berta, owner(&anna)).await, all[1..]);
    let spelt = udids[1].to_ascii_lowercase().replace('-', "");
    let second = [released[3].as_str(), released[1].as_str()];
    assert_eq!(listed(&anna, device(&spelt)).await, second);
    // One that waits has no phone yet.
    let first: BTreeSet<_> = listed(&anna, device(&udids[0])).await.into_iter().collect();
    assert!(first.contains(&held) && !first.contains(&waits));

    let wrong = pb::ListLeasesRequest {
        states: vec![0, 77],
        page_size: -1,
        page_token: "none".to_owned(),
        ..pb::ListLeasesRequest::default()
    };
    let refusal = fleetgate_tests::refused(anna.leases().list_leases(wrong).await);
    assert_eq!(refusal.code, Code::InvalidArgument);
    let fields: Vec<_> = refusal
        .violations
        .iter()
        .map(|(field, _)| &**field)
        .collect();
    assert_eq!(fields, ["states", "page_size", "page_token"]);

    let stage = stage.restart().await;
    let every = listed(&stage.anna(), pb::ListLeasesRequest::default()).await;
    assert_eq!(every, all, "the same after a restart");
    stage.stop().await;
}

/// What stands in the way of each phone.
fn obstacles(why: &pb::ExplainLeaseResponse) -> Vec<DeviceObstacle> {
    let devices = why.devices.iter();
    devices.map(pb::DeviceExplanation::obstacle).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_lease_waits_is_told_in_words_and_phone_by_phone() {
    let stage = Stage::plain(5).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let udid = |n| stage.rig.udid(n);
    let long = pb::CreateLeaseRequest {
        ttl: seconds(300),
        ..these(&[udid(0)])
    };
    let short = anna.take(these(&[udid(1)])).await;
    let long = anna.take(long).await;
    let cordon = pb::CordonDeviceRequest {
        device: udid(2),
        reason: "battery".to_owned(),
        until: None,
    };
    stage.boss().fleet().cordon_device(cordon).await.unwrap();
    let mut mirror = Mirror::follow(stage.rig.channel()).await;
    stage.rig.phone(3).detach();
    mirror.until_state(&udid(3), DeviceState::Detached).await;
    // A command without a lease is under way on the last.
    let slow = Injection::Slow {
        by: Duration::from_secs(2),
    };
    let busy = stage.rig.phone(4);
    busy.fault(Fault::from(slow).on(CommandKind::Tap));
    let tap = anna.tapping(&udid(4), "implicit", None);
    in_hand(&busy).await;

    let waits = berta.queue(any(1)).await;
    let behind = stage.carla().queue(these(&[udid(4)])).await;
    let why = berta.explain(&waits.id).await;
    assert_eq!(obstacles(&why), [Leased, Leased, Cordoned, Detached, Busy]);
    let udids: Vec<_> = why.devices.iter().map(|device| &*device.device).collect();
    assert_eq!(udids, [0, 1, 2, 3, 4].map(udid));
    let leases = why.devices.iter().map(pb::DeviceExplanation::lease_id);
    let leases: Vec<_> = leases.collect();
    assert_eq!(leases, [long.id.as_str(), short.id.as_str(), "", "", ""]);
    let (said, then) = why.summary.split_once(" until ").unwrap();
    assert_eq!(said, "5 match, 1 wanted: 1 kept for it and busy, 2 leased");
    let (time, rest) = then.split_once(", ").unwrap();
    assert_eq!(rest, "1 unplugged, 1 cordoned");
    let last = moment(why.devices[0].until);
    let last = prost_types::Timestamp::from(last).to_string();
    let clock = time.strip_suffix('Z').unwrap();
    assert!(last.contains(&format!("T{clock}")), "{time} of {last}");
    assert_eq!((why.wanted, why.leases_ahead.len()), (1, 0));
    assert_eq!(why.lease.unwrap().queue_position(), 1);

    let why = berta.explain(&behind.id).await;
    assert_eq!(obstacles(&why), [Reserved]);
    assert_eq!(why.devices[0].lease_id(), waits.id);
    assert_eq!(why.summary, "1 matches, 1 wanted: 1 kept for others");
    assert_eq!(why.leases_ahead, [waits.id.as_str()]);

    tap.told().await.unwrap();
    let granted = berta.until(&waits.id, LeaseState::Active).await;
    assert_eq!(granted.devices, [udid(4)], "as was said");
    assert_eq!(berta.explain(&waits.id).await.summary, "granted");
    berta.release(&waits.id).await.unwrap();
    let why = berta.explain(&waits.id).await;
    assert_eq!(why.summary, "it does not wait: it is RELEASED");
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_whose_runner_does_not_come_up_is_granted_when_it_has() {
    let mut lab = plain_lab(2, 0.02);
    lab.phones[0].locked = true;
    let mut cast = None;
    let rig = launching::rig(lab, |config| cast = Some(leasing::attend(config))).await;
    let stage = Stage::of((rig, cast.unwrap()));
    let (anna, berta) = (stage.anna(), stage.berta());
    let udids = [stage.rig.udid(0), stage.rig.udid(1)];
    let mut mirror = Mirror::follow(stage.rig.channel()).await;
    mirror.until_state(&udids[1], DeviceState::Ready).await;
    mirror
        .until_state(&udids[0], DeviceState::Quarantined)
        .await;
    assert_eq!(anna.take(any(1)).await.devices, [udids[1].as_str()]);
    let waits = berta.queue(any(1)).await;
    let why = berta.explain(&waits.id).await;
    assert_eq!(obstacles(&why), [Quarantined, Leased]);
    let (said, then) = why.summary.split_once(" until ").unwrap();
    assert_eq!(said, "2 match, 1 wanted: 1 leased");
    assert!(then.ends_with("Z, 1 quarantined"), "{then}");

    stage.rig.phone(0).set_locked(false);
    let request = pb::RecycleRunnerRequest {
        device: udids[0].clone(),
        reason: "unlocked".to_owned(),
        force: false,
    };
    stage.boss().fleet().recycle_runner(request).await.unwrap();
    let granted = berta.until(&waits.id, LeaseState::Active).await;
    assert_eq!(granted.devices, udids[..1]);
    assert_eq!(berta.device(&udids[0]).await.state(), DeviceState::Ready);
    stage.stop().await;
}
