//! From the wish to the grant: one phone, several, and whatever they are called.

use std::time::{Duration, SystemTime};

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{DeviceObstacle, LeaseState};
use fleetgate_tests::facts::{effects, moment, wait};
use fleetgate_tests::leasing::{self, any, by, matching, these};
use fleetgate_tests::{plain_lab, refused};
use tonic::Code;

use super::{Stage, assert_ended, assert_sent_by, order};

#[tokio::test(flavor = "multi_thread")]
async fn a_free_phone_is_granted_at_once_driven_by_its_holder_and_given_back() {
    let stage = Stage::plain(1).await;
    let (rig, anna, udid) = (&stage.rig, stage.anna(), stage.rig.udid(0));
    let context = [("build".to_owned(), "4711".to_owned())];
    let wish = pb::CreateLeaseRequest {
        context: context.clone().into(),
        ..these(&[&udid])
    };
    let lease = anna.take(wish).await;
    assert_eq!(lease.owner, anna.principal());
    assert_eq!(lease.devices, [udid.as_str()]);
    assert_eq!(lease.context, context.into());
    let terms = [lease.ttl, lease.max_duration, lease.queue_timeout];
    assert_eq!(terms.map(|term| wait(term).as_secs()), [60, 1800, 900]);
    let remaining = wait(lease.remaining);
    assert!(remaining <= Duration::from_secs(60), "{lease:?}");
    assert!(remaining > Duration::from_secs(30), "{lease:?}");
    let expires = moment(lease.expire_time).duration_since(SystemTime::now());
    assert!(expires.unwrap() <= remaining, "{lease:?}");
    let (created, granted) = (moment(lease.create_time), moment(lease.grant_time));
    assert!(created <= granted && granted <= SystemTime::now());
    let rest = (lease.queue_position, lease.end_reason.as_ref());
    assert_eq!(rest, (None, None), "{lease:?}");
    assert_eq!(anna.get(&lease.id).await.epoch, lease.epoch);

    anna.tap(&udid, "tap", by(&lease)).await.unwrap();
    assert_eq!(effects(&rig.phone(0), "tap").len(), 1);
    assert_sent_by(&rig.find("tap").await.unwrap(), &anna, Some(&lease));

    let released = anna.release(&lease.id).await.unwrap();
    assert_ended(&released, LeaseState::Released, "RELEASED");
    assert_eq!(released.ended_by, Some(anna.principal()));
    assert_eq!(released.devices, lease.devices, "what it had");
    let expected = [
        "token:anna create-lease",
        "fleetgate grant-lease",
        "token:anna release-lease",
        "fleetgate end-lease",
    ];
    assert_eq!(stage.done_to(&lease.id).await, expected);
    let all = stage.records().operations().await;
    let grant = all.iter().find(|done| done.what == "grant-lease").unwrap();
    assert_eq!(grant.detail["epoch"].as_f64(), Some(1.0), "{grant:?}");
    assert_eq!(grant.detail["devices"][0].as_str(), Some(&*udid));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_for_several_phones_is_granted_with_all_of_them_or_waits_with_none() {
    let stage = Stage::plain(2).await;
    let [anna, berta, carla] = [stage.anna(), stage.berta(), stage.carla()];
    let udids = [stage.rig.udid(0), stage.rig.udid(1)];
    let first = anna.take(these(&udids[..1])).await;
    let both = berta.queue(any(2)).await;
    // There is a phone for this one, and it is kept for the one before.
    let one = carla.queue(these(&udids[1..])).await;
    assert_eq!([&both, &one].map(pb::Lease::queue_position), [1, 2]);
    let explained = carla.explain(&one.id).await;
    assert_eq!(explained.leases_ahead, [both.id.as_str()]);
    let [why] = &explained.devices[..] else {
        panic!("one phone, not {explained:?}")
    };
    assert_eq!(why.obstacle(), DeviceObstacle::Reserved, "{explained:?}");
    assert_eq!(why.lease_id(), both.id);
    assert_eq!(anna.device(&udids[1]).await.lease, None);

    anna.release(&first.id).await.unwrap();
    let both = berta.get(&both.id).await;
    assert_eq!(both.state(), LeaseState::Active);
    assert_eq!(both.devices, udids, "both at once");
    for (udid, id) in udids.iter().zip(["left", "right"]) {
        berta.tap(udid, id, by(&both)).await.unwrap();
    }
    assert_eq!(carla.get(&one.id).await.state(), LeaseState::Queued);
    berta.release(&both.id).await.unwrap();
    let one = carla.get(&one.id).await;
    assert_eq!(one.state(), LeaseState::Active);
    assert!(first.epoch < both.epoch && both.epoch < one.epoch);
    let orders = [0, 1].map(|n| order(&stage.rig.phone(n)));
    assert_eq!(orders, [["left"], ["right"]]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_phones_than_there_are_is_a_wish_that_ends_at_once() {
    let stage = Stage::plain(2).await;
    let anna = stage.anna();
    let held = anna.take(any(1)).await;
    let lease = anna.ask(any(3)).await.unwrap();
    assert_ended(&lease, LeaseState::Unsatisfiable, "UNSATISFIABLE");
    assert_eq!(lease.end_detail(), "2 match, 3 wanted");
    let done = ["token:anna create-lease", "fleetgate end-lease"];
    assert_eq!(stage.done_to(&lease.id).await, done);
    // Whether they can be had now does not matter.
    anna.queue(any(2)).await;
    anna.release(&held.id).await.unwrap();

    let nobody = these(&["00008110-0000000000000001"]);
    let refusal = refused(anna.ask(nobody).await);
    let words = (refusal.code, refusal.reason.as_str());
    assert_eq!(words, (Code::NotFound, "DEVICE_UNKNOWN"));
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn phones_are_chosen_by_labels_and_by_what_they_are() {
    let mut lab = plain_lab(3, 1.0);
    for (phone, (model, version)) in lab.phones.iter_mut().zip([
        ("iPhone14,5", "18.1"),
        ("iPhone14,5", "18.10"),
        ("iPhone15,2", "17.4"),
    ]) {
        (phone.model, phone.os_version) = (model.to_owned(), version.to_owned());
    }
    let stage = Stage::of(leasing::configured(lab, |config| config.health.facts = true).await);
    let anna = stage.anna();
    fleetgate_tests::soon("what the phones are", async {
        for n in 0..3 {
            while anna.device(&stage.rig.udid(n)).await.os_version.is_none() {
                fleetgate_tests::pause().await;
            }
        }
    })
    .await;
    let request = pb::UpdateDeviceRequest {
        device: stage.rig.udid(2),
        set_labels: [("rack".to_owned(), "7".to_owned())].into(),
        ..pb::UpdateDeviceRequest::default()
    };
    stage.boss().fleet().update_device(request).await.unwrap();

    let model = |model: &str| pb::DeviceSelector {
        model: Some(model.to_owned()),
        ..pb::DeviceSelector::default()
    };
    let version = |version: &str| pb::DeviceSelector {
        os_version: Some(version.to_owned()),
        ..pb::DeviceSelector::default()
    };
    let labelled = pb::DeviceSelector {
        labels: [("rack".to_owned(), "7".to_owned())].into(),
        ..pb::DeviceSelector::default()
    };
    let host = pb::DeviceSelector {
        host: Some("local".to_owned()),
        ..pb::DeviceSelector::default()
    };
    for (selector, expected) in [
        (version("18.1"), vec![0]),
        (version("18"), vec![0, 1]),
        (model("iPhone14,5"), vec![0, 1]),
        (labelled, vec![2]),
        (host, vec![0, 1, 2]),
    ] {
        let count = u32::try_from(expected.len()).unwrap();
        let lease = anna.take(matching(selector.clone(), count)).await;
        let udids: Vec<_> = expected.iter().map(|n| stage.rig.udid(*n)).collect();
        assert_eq!(lease.devices, udids, "{selector:?}");
        anna.release(&lease.id).await.unwrap();
        let more = anna.ask(matching(selector, count + 1)).await.unwrap();
        assert_eq!(more.state(), LeaseState::Unsatisfiable);
    }
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_leased_once_however_its_udid_is_spelt() {
    const DASHED: [&str; 3] = [
        "00008020-00060D691AD8003A",
        "00008020-00060d691ad8003a",
        "0000802000060D691AD8003A",
    ];
    const LONG: [&str; 2] = [
        "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567",
        "0A1B2C3D4E5F60718293A4B5C6D7E8F901234567",
    ];
    let mut lab = plain_lab(2, 1.0);
    for (phone, spellings) in lab.phones.iter_mut().zip([&DASHED[..], &LONG[..]]) {
        phone.udid = spellings[0].parse().unwrap();
        // usbmuxd has its own.
        spellings[spellings.len() - 1].clone_into(&mut phone.serial);
    }
    let stage = Stage::of(leasing::configured(lab, |_| {}).await);
    let [anna, berta] = [stage.anna(), stage.berta()];
    for spellings in [&DASHED[..], &LONG[..]] {
        for first in spellings {
            let lease = anna.take(these(&[first])).await;
            assert_eq!(lease.devices, [spellings[0]], "{first}");
            for second in spellings {
                let waits = berta.queue(these(&[second])).await;
                let wanted = pb::lease::Wants::DeviceList(pb::DeviceList {
                    devices: vec![spellings[0].to_owned()],
                });
                assert_eq!(waits.wants, Some(wanted), "{second}");
                berta.release(&waits.id).await.unwrap();
                let id = format!("{first}-{second}");
                anna.tap(second, &id, by(&lease)).await.unwrap();
                let kept_out = super::KeptOut {
                    who: &berta,
                    device: second,
                    kind: fleetgate_runner::CommandKind::Tap,
                    lease: None,
                    code: Code::PermissionDenied,
                    reason: "LEASE_HELD_BY_OTHER",
                };
                kept_out.assert(&stage, &format!("not-{id}")).await;
            }
            anna.release(&lease.id).await.unwrap();
        }
        let twice = refused(anna.ask(these(spellings)).await);
        assert_eq!(twice.code, Code::InvalidArgument, "{twice:?}");
        assert_eq!(twice.violations[0].0, "device_list.devices");
        assert!(twice.violations[0].1.contains(spellings[0]), "{twice:?}");
    }
    stage.stop().await;
}
