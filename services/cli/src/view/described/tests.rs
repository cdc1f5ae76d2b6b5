//! A phone, described.

use fleetgate_proto::v1::{DeviceState, DeviceTransition};

use super::*;
use crate::view::device::tests::{anna, at, bert, now};

fn history() -> Vec<DeviceTransition> {
    let transition = |seq, from: DeviceState, to: DeviceState, reason: &str| DeviceTransition {
        seq,
        time: Some(at(0)),
        device: anna().udid,
        from: from.into(),
        to: to.into(),
        reason: reason.to_owned(),
        detail: None,
    };
    vec![
        transition(
            9,
            DeviceState::Launching,
            DeviceState::Ready,
            "RUNNER_READY",
        ),
        DeviceTransition {
            detail: Some("by cable".to_owned()),
            ..transition(8, DeviceState::Detached, DeviceState::Attached, "PLUGGED")
        },
    ]
}

#[test]
fn a_phone_that_is_well_is_told_in_sections() {
    let view = DescribedView::new(anna(), history(), now());
    assert_eq!(
        view.text(),
        "anna (00008110-000978540290401E)\n\
         \x20 state:   ready, RUNNER_READY, since 2026-11-30T12:00:00.000Z (1h ago)\n\
         \x20 host:    local at UNIX:/var/run/usbmuxd\n\
         \x20 name:    Anna's phone\n\
         \x20 model:   iPhone14,5\n\
         \x20 iOS:     18.1\n\
         \x20 labels:  pool=ci,rack=a3\n\
         \x20 trusted: yes\n\
         \n\
         runner\n\
         \x20 launched by:       this gateway\n\
         \x20 port:              8100\n\
         \x20 pid:               4242\n\
         \x20 launched:          2 times, last 2026-11-30T11:59:00.000Z (1h ago)\n\
         \x20 log:               /var/lib/fleetgate/runners/logs/anna.log\n\
         \x20 answered:          2026-11-30T12:59:50.000Z (10s ago)\n\
         \x20 uptime:            1h 50s\n\
         \x20 suppressed issues: 7\n\
         \x20 recorded failures: 1\n\
         \n\
         history\n\
         \x20 WHEN                      FROM       TO        REASON        DETAIL\n\
         \x20 2026-11-30T12:00:00.000Z  launching  ready     RUNNER_READY  -\n\
         \x20 2026-11-30T12:00:00.000Z  detached   attached  PLUGGED       by cable\n"
    );
}

#[test]
fn whatever_is_wrong_with_a_phone_is_told() {
    let text = DescribedView::new(bert(), Vec::new(), now()).text();
    assert_eq!(
        text,
        "bert (00008020-00060D691AD8003A)\n\
         \x20 state:    quarantined, QUARANTINED, since 2026-11-30T12:50:00.000Z (10m ago)\n\
         \x20 detail:   the runner failed 5 times in a row\n\
         \x20 stale:    its host is not being listened to: this is what was last known\n\
         \x20 host:     rack-b\n\
         \x20 model:    iPhone11,8\n\
         \x20 iOS:      17.7\n\
         \x20 trusted:  no: unlock it and tap Trust\n\
         \x20 cordoned: new battery, by ops, since 2026-11-30T12:00:00.000Z (1h ago), until 2026-11-30T14:00:00.000Z\n\
         \x20 queued:   2\n\
         \n\
         runner\n\
         \x20 launched by: this gateway\n\
         \x20 launched:    5 times, last 2026-11-30T12:48:20.000Z (11m ago)\n\
         \x20 next launch: 2026-11-30T13:01:40.000Z\n\
         \x20 failed:      5 in a row\n\
         \x20 last failure: EXITED, at 2026-11-30T12:49:50.000Z (10m ago), exit status: 65\n\
         \x20   Testing failed:\n\
         \x20     Developer Mode is off [2J\n\
         \n\
         alarms\n\
         \x20 RUNNER_DRIFT, since 2026-11-30T12:01:00.000Z (59m ago): 3 failures were recorded and none suppressed\n"
    );
}

#[test]
fn json_is_the_phone_and_its_transitions() {
    let json = serde_json::to_value(DescribedView::new(anna(), history(), now())).unwrap();
    assert_eq!(json["udid"], anna().udid);
    assert_eq!(json["transitions"][0]["seq"], 9);
    assert_eq!(json["transitions"][1]["detail"], "by cable");
}

#[test]
fn a_phone_that_somebody_has_is_said_to_be_theirs() {
    let lease = pb::DeviceLease {
        lease_id: "l-1".to_owned(),
        owner: "token:ci".to_owned(),
        epoch: 7,
        until: Some(at(60)),
    };
    let held = pb::Device {
        lease: Some(lease),
        ..anna()
    };
    let view = DescribedView::new(held, Vec::new(), now());
    let text = view.text();
    assert!(
        text.contains("leased:  by token:ci, l-1, epoch 7, until 2026-11-30T12:01:00.000Z\n"),
        "{text}"
    );
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["lease"]["owner"], "token:ci");
}
