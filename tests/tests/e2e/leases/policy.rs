//! What operators say about phones and leases.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{DeviceState, LeaseState};
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::effects;
use fleetgate_tests::leasing::{self, any, by, these};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::plain_lab;
use tonic::Code;

use super::{KeptOut, Stage, assert_refused};

async fn cordon(stage: &Stage, device: &str) {
    let request = pb::CordonDeviceRequest {
        device: device.to_owned(),
        reason: "battery swells".to_owned(),
        until: None,
    };
    stage.boss().fleet().cordon_device(request).await.unwrap();
}

async fn uncordon(stage: &Stage, device: &str) {
    let device = device.to_owned();
    let request = pb::UncordonDeviceRequest { device };
    stage.boss().fleet().uncordon_device(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_taken_out_of_service_stays_its_holders_and_is_nobodys_after() {
    let stage = Stage::plain(1).await;
    let (anna, berta, udid) = (stage.anna(), stage.berta(), stage.rig.udid(0));
    let lease = anna.take(these(&[&udid])).await;
    cordon(&stage, &udid).await;
    anna.tap(&udid, "holder", by(&lease)).await.unwrap();
    let viewport = anna.send(&udid, CommandKind::Viewport, "looks", by(&lease));
    viewport.await.unwrap();
    assert_eq!(effects(&stage.rig.phone(0), "holder").len(), 1);
    let waits = berta.queue(these(&[&udid])).await;
    anna.release(&lease.id).await.unwrap();
    let why = berta.explain(&waits.id).await;
    assert_eq!(why.summary, "1 matches, 1 wanted: 1 cordoned");
    assert_eq!(berta.get(&waits.id).await.state(), LeaseState::Queued);
    let told = berta.tap(&udid, "unleased", None).await;
    assert_refused(told, Code::FailedPrecondition, "DEVICE_CORDONED");
    super::assert_untouched(&stage.rig.phone(0), "unleased");

    uncordon(&stage, &udid).await;
    let granted = berta.until(&waits.id, LeaseState::Active).await;
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    // One whose holder has it is not given to others when it is back.
    cordon(&stage, &udid).await;
    uncordon(&stage, &udid).await;
    berta.tap(&udid, "still", by(&granted)).await.unwrap();
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_leases_are_required_nobody_drives_without_one() {
    let rig = leasing::configured(plain_lab(1, 1.0), |config| config.leases.required = true);
    let stage = Stage::of(rig.await);
    let (anna, udid) = (stage.anna(), stage.rig.udid(0));
    let drives = |kind: &CommandKind| kind.is_mutation() || *kind == CommandKind::Viewport;
    for kind in fleetgate_tests::plain::queued().filter(drives) {
        let without = KeptOut {
            who: &anna,
            device: &udid,
            kind,
            lease: None,
            code: Code::FailedPrecondition,
            reason: "LEASE_REQUIRED",
        };
        let refusal = without.assert(&stage, &format!("without-{kind}")).await;
        assert!(!refusal.meta("hint").is_empty(), "{refusal:?}");
    }
    for kind in [
        CommandKind::Snapshot,
        CommandKind::Screenshot,
        CommandKind::Status,
    ] {
        let id = format!("look-{kind}");
        stage.guest().send(&udid, kind, &id, None).await.unwrap();
    }
    let lease = anna.take(any(1)).await;
    anna.tap(&udid, "with", by(&lease)).await.unwrap();
    anna.release(&lease.id).await.unwrap();
    assert_eq!(super::order(&stage.rig.phone(0)), ["with"]);
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_has_more_leases_open_than_one_may() {
    let rig = leasing::configured(plain_lab(1, 1.0), |config| {
        config.limits.max_open_leases = 2.try_into().unwrap();
    });
    let stage = Stage::of(rig.await);
    let (anna, berta) = (stage.anna(), stage.berta());
    let held = anna.take(any(1)).await;
    anna.queue(any(1)).await;
    let told = anna.ask(any(1)).await;
    let refusal = assert_refused(told, Code::ResourceExhausted, "QUOTA_EXCEEDED");
    assert!(refusal.retry_delay.is_some(), "{refusal:?}");
    assert_eq!(refusal.meta("limit"), "2");
    berta.queue(any(1)).await;
    anna.release(&held.id).await.unwrap();
    anna.queue(any(1)).await;
    stage.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_that_is_unplugged_stays_its_holders_and_is_granted_to_nobody_while_it_is_away() {
    let stage = Stage::plain(1).await;
    let (anna, berta) = (stage.anna(), stage.berta());
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let mut mirror = Mirror::follow(stage.rig.channel()).await;
    let lease = anna.take(any(1)).await;
    let waits = berta.queue(any(1)).await;
    phone.detach();
    mirror.until_state(&udid, DeviceState::Detached).await;
    let told = anna.tap(&udid, "away", by(&lease)).await;
    assert_refused(told, Code::Unavailable, "DEVICE_UNATTACHED");
    phone.attach();
    mirror.until_state(&udid, DeviceState::Ready).await;
    anna.tap(&udid, "back", by(&lease)).await.unwrap();

    phone.detach();
    mirror.until_state(&udid, DeviceState::Detached).await;
    anna.release(&lease.id).await.unwrap();
    let why = berta.explain(&waits.id).await;
    assert_eq!(why.summary, "1 matches, 1 wanted: 1 unplugged");
    assert_eq!(berta.get(&waits.id).await.state(), LeaseState::Queued);
    phone.attach();
    let granted = berta.until(&waits.id, LeaseState::Active).await;
    berta.tap(&udid, "next", by(&granted)).await.unwrap();
    assert_eq!(super::order(&phone), ["back", "next"]);
    stage.stop().await;
}
