//! Case 12: a phone whose screen is locked: its runner is well and takes
//! pictures, and no app can be driven.

use fleetgate_proto::v1::DeviceState;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::PhoneReport;
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, launching, plain, plain_lab, refused};
use tonic::Code;

use super::{
    LAUNCHED, LAUNCHING, OFTEN, PLUGGED, all_ready, arrivals, assert_history, lands, until_launches,
};

/// Asserts that the runner is well and that no other was launched.
async fn is_left_alone(rig: &Rig, round: &str) {
    for kind in [CommandKind::Status, CommandKind::Screenshot] {
        let id = format!("{round}-{kind}");
        plain::send(rig, &rig.udid(0), kind, &id).await.unwrap();
    }
    let asked = rig.phone(0).report().arrivals_of(CommandKind::Status);
    let again = |phone: &PhoneReport| phone.arrivals_of(CommandKind::Status) > asked + 2;
    let report = rig.phone(0).wait_until(again).await;
    assert_eq!((report.launches, report.incarnations), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_phone_is_said_to_be_and_neither_its_runner_nor_another_phone_suffers() {
    let rig = launching::rig(plain_lab(2, 0.03), |config| {
        config.health.probe_interval = OFTEN;
        config.health.probe_failures = 1000.try_into().unwrap();
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let mut mirror = Mirror::follow(rig.channel()).await;
    all_ready(&rig, &mut mirror).await;
    let mut expected = vec![PLUGGED, LAUNCHING, LAUNCHED];

    // Commands for an app stall until the runner gives them up.
    phone.lock_and_stall();
    for n in 0..2 {
        let id = format!("stalls-{n}");
        let other = rig.phone(1);
        let (stalled, ()) = tokio::join!(
            plain::send(&rig, &udid, CommandKind::Snapshot, &id),
            async {
                phone.wait_until(|phone| phone.in_flight == 1).await;
                for tap in 0..3 {
                    lands(&rig, &other, &format!("elsewhere-{n}-{tap}")).await;
                }
            }
        );
        let refusal = refused(stalled);
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::DeadlineExceeded, "COMMAND_TIMED_OUT")
        );
        assert!(refusal.meta("hint").contains("unlock"), "{refusal:?}");
        expected.extend(["READY RUNNER_BUSY DRAINING", "DRAINING RUNNER_FREE READY"]);
        assert_history(&rig, &udid, &expected).await;
        is_left_alone(&rig, &id).await;
    }

    // Or they are answered at once.
    phone.set_locked(true);
    for n in 0..3 {
        let id = format!("locked-{n}");
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, &id).await);
        assert_eq!(
            (refusal.code, &*refusal.reason),
            (Code::FailedPrecondition, "APP_NOT_AVAILABLE")
        );
        assert!(refusal.meta("hint").contains("unlock"), "{refusal:?}");
        assert_eq!(arrivals(&phone, CommandKind::Tap, &id), 1);
    }
    is_left_alone(&rig, "locked").await;

    phone.set_locked(false);
    lands(&rig, &phone, "unlocked").await;
    let device = until_launches(&mut mirror, &udid, 1).await;
    assert_eq!(device.state(), DeviceState::Ready);
    assert_eq!(device.runner.unwrap().failures, 0);
    assert_history(&rig, &udid, &expected).await;
    assert_history(&rig, &rig.udid(1), &[PLUGGED, LAUNCHING, LAUNCHED]).await;
    rig.stop().await;
}
