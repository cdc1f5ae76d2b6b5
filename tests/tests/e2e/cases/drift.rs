//! Case 14: an Xcode that has changed its wording: failures are recorded that
//! ought to have been suppressed.

use std::net::SocketAddr;

use fleetgate_proto::v1::{DeviceState, RecycleRunnerRequest};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::effects;
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::{Rig, launching, plain, plain_lab, refused};
use tonic::Code;

use super::{
    LAUNCHED, LAUNCHING, OFTEN, PLUGGED, all_ready, assert_history, lands, until_launches,
};

/// Taps that land, each with a failure on XCTest's record, until the runner is
/// suspected.
async fn drift(rig: &Rig, round: u32) {
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(
        Fault::from(Injection::RecordedFailure)
            .on(CommandKind::Tap)
            .times(3),
    );
    for n in 0..3 {
        let id = format!("tap-{round}-{n}");
        let refusal = refused(plain::send(rig, &udid, CommandKind::Tap, &id).await);
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::Unknown, "XCTEST_RECORDED_FAILURE")
        );
        assert_eq!(effects(&phone, &id).len(), 1, "it landed all the same");
    }
}

async fn recycle(rig: &Rig) {
    let request = RecycleRunnerRequest {
        device: rig.udid(0),
        reason: "the wording is known again".to_owned(),
        force: false,
    };
    rig.fleet().recycle_runner(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_drifts_is_an_alarm_and_is_replaced_a_few_times_and_then_no_more() {
    let rig = launching::rig(plain_lab(2, 0.05), |config| {
        config.health.probe_interval = OFTEN;
        config.health.probe_failures = 1000.try_into().unwrap();
        config.health.quarantine_after = 3.try_into().unwrap();
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        config.admin.listen = Some(anywhere.try_into().unwrap());
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    all_ready(&rig, &mut mirror).await;
    let up = format!("fleetgate_device_alarms{{code=\"RUNNER_DRIFT\",device_id=\"{udid}\"}}");
    let raised = "fleetgate_device_alarms_raised_total{code=\"RUNNER_DRIFT\"}";
    let recycled =
        "fleetgate_device_transitions_total{reason=\"RUNNER_DRIFT\",state=\"RECYCLING\"}";
    for name in [&*up, raised, recycled] {
        assert_eq!(rig.metric(name).await, 0, "{name}");
    }

    let mut expected = vec![PLUGGED, LAUNCHING, LAUNCHED];
    for round in 1..=3 {
        until_launches(&mut mirror, &udid, round).await;
        drift(&rig, round).await;
        let drifts = |seen: &Seen| {
            let reasons = seen.reasons(&udid);
            let drifts = reasons.iter().filter(|reason| **reason == "RUNNER_DRIFT");
            drifts.count() == round as usize
        };
        mirror.until("a drift", drifts).await;
        expected.push("READY RUNNER_DRIFT RECYCLING");
        if round < 3 {
            expected.extend(["RECYCLING LAUNCHING LAUNCHING", LAUNCHED]);
        }
        assert_eq!(rig.metric(&up).await, 1, "it stands");
        assert_eq!(rig.metric(raised).await, 1, "it is one");
        assert_eq!(rig.metric(recycled).await, u64::from(round));
    }
    let left = mirror.until_state(&udid, DeviceState::Quarantined).await;
    expected.push("RECYCLING QUARANTINED QUARANTINED");
    assert_history(&rig, &udid, &expected).await;
    let why = left.state_detail.unwrap();
    assert!(why.contains("3 failures in a row"), "{why}");
    assert!(why.contains("no issue suppressed"), "{why}");
    let [alarm] = &left.alarms[..] else {
        panic!("{:?}", left.alarms)
    };
    assert_eq!(alarm.code, "RUNNER_DRIFT");
    mirror.look(|seen| {
        let [told] = &seen.alarms[..] else {
            panic!("{:?}", seen.alarms)
        };
        assert_eq!((told.alarm.as_ref(), told.ended), (Some(alarm), false));
        assert_eq!(told.device, udid);
    });
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "late").await);
    assert_eq!(refusal.reason, "DEVICE_QUARANTINED");
    assert_eq!(phone.report().launches, 3);
    assert_history(&rig, &rig.udid(1), &[PLUGGED, LAUNCHING, LAUNCHED]).await;

    // An operator knows better; and a runner that suppresses again ends it.
    recycle(&rig).await;
    until_launches(&mut mirror, &udid, 4).await;
    lands(&rig, &phone, "again").await;
    assert!(phone.set_runner_counters(Some(1), Some(0)));
    let ended = |seen: &Seen| seen.alarms.len() == 2;
    let seen = mirror.until("the end of the alarm", ended).await;
    assert!(seen.alarms[1].ended);
    assert_eq!(seen.devices[&udid].alarms, []);
    assert_eq!(rig.metric(&up).await, 0);
    rig.stop().await;
}
