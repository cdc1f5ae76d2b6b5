//! What a phone is shown as.

use std::time::{Duration, SystemTime};

use fleetgate_proto::v1::{
    Alarm, Cordon, Device, DeviceLease, DeviceState, LaunchFailure, LaunchKind, MuxHost, Runner,
};
use prost_types::Timestamp;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::*;

/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000;

/// So many seconds after noon.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp {
        seconds: NOON + seconds,
        nanos: 0,
    }
}

/// An hour after noon.
pub(crate) fn now() -> SystemTime {
    SystemTime::try_from(at(0)).unwrap() + Duration::from_secs(3600)
}

/// A phone that is well.
pub(crate) fn anna() -> Device {
    Device {
        udid: "00008110-000978540290401E".to_owned(),
        alias: Some("anna".to_owned()),
        state: DeviceState::Ready.into(),
        runner_port: Some(8100),
        mux_address: Some("UNIX:/var/run/usbmuxd".to_owned()),
        state_time: Some(at(0)),
        state_reason: "RUNNER_READY".to_owned(),
        host: Some("local".to_owned()),
        name: Some("Anna's phone".to_owned()),
        model: Some("iPhone14,5".to_owned()),
        os_version: Some("18.1".to_owned()),
        labels: [("rack", "a3"), ("pool", "ci")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        trusted: Some(true),
        runner: Some(Runner {
            launch_kind: LaunchKind::Command.into(),
            launches: 2,
            launch_time: Some(at(-60)),
            pid: Some(4242),
            log_path: Some("/var/lib/fleetgate/runners/logs/anna.log".to_owned()),
            probe_time: Some(at(3590)),
            uptime: Some(prost_types::Duration {
                seconds: 3650,
                nanos: 5_000_000,
            }),
            suppressed_issues: Some(7),
            recorded_failures: Some(1),
            ..Runner::default()
        }),
        ..Device::default()
    }
}

/// A phone with all that can be wrong with one.
pub(crate) fn bert() -> Device {
    Device {
        udid: "00008020-00060D691AD8003A".to_owned(),
        alias: Some("bert".to_owned()),
        state: DeviceState::Quarantined.into(),
        state_time: Some(at(3000)),
        state_reason: "QUARANTINED".to_owned(),
        state_detail: Some("the runner failed 5 times in a row".to_owned()),
        stale: true,
        host: Some("rack-b".to_owned()),
        model: Some("iPhone11,8".to_owned()),
        os_version: Some("17.7".to_owned()),
        trusted: Some(false),
        queued_commands: 2,
        cordon: Some(Cordon {
            reason: "new battery".to_owned(),
            who: "ops".to_owned(),
            time: Some(at(0)),
            until: Some(at(7200)),
        }),
        runner: Some(Runner {
            launch_kind: LaunchKind::Command.into(),
            launches: 5,
            launch_time: Some(at(2900)),
            failures: 5,
            last_failure: Some(LaunchFailure {
                reason: "EXITED".to_owned(),
                message: "exit status: 65".to_owned(),
                time: Some(at(2990)),
                log_tail: vec![
                    "Testing failed:".to_owned(),
                    "  Developer Mode is off\u{1b}[2J".to_owned(),
                ],
            }),
            next_launch_time: Some(at(3700)),
            ..Runner::default()
        }),
        alarms: vec![Alarm {
            code: "RUNNER_DRIFT".to_owned(),
            message: "3 failures were recorded and none suppressed".to_owned(),
            time: Some(at(60)),
        }],
        ..Device::default()
    }
}

/// A host that is lost.
pub(crate) fn lost_host() -> MuxHost {
    MuxHost {
        address: "10.0.0.2:27015".to_owned(),
        connected: false,
        generation: 3,
        last_error: Some("connection refused".to_owned()),
        name: "rack-b".to_owned(),
        device_count: 1,
        ignored_entries: 0,
    }
}

#[test]
fn a_phone_is_one_line_of_a_table_that_fits_120_columns() {
    let caro = Device {
        udid: "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334".to_owned(),
        state: DeviceState::Detached.into(),
        state_time: Some(at(3595)),
        state_reason: "UNPLUGGED".to_owned(),
        ..Device::default()
    };
    let text = table(&[&bert(), &anna(), &caro], now());
    assert_eq!(
        text,
        "UDID                                      ALIAS  STATE        REASON        FOR  HOST    MODEL            LABELS           REMARKS\n\
         00008020-00060D691AD8003A                 bert   quarantined  QUARANTINED   10m  rack-b  iPhone11,8 17.7  -                cordoned, stale, untrusted, 2 queued, RUNNER_DRIFT\n\
         00008110-000978540290401E                 anna   ready        RUNNER_READY  1h   local   iPhone14,5 18.1  pool=ci,rack=a3  -\n\
         a1b2c3d4e5f60718293a4b5c6d7e8f9001122334  -      detached     UNPLUGGED     5s   -       -                -                -\n"
    );
    let lease = DeviceLease {
        owner: "token:ci".to_owned(),
        ..DeviceLease::default()
    };
    let held = Device {
        lease: Some(lease),
        ..anna()
    };
    assert_eq!(remarks(&held), ["leased by token:ci"]);
    let unreachable = Device {
        state: DeviceState::Attached.into(),
        state_reason: "RUNNER_UNREACHABLE".to_owned(),
        cordon: bert().cordon,
        ..anna()
    };
    for line in table(&[&anna(), &unreachable], now()).lines() {
        assert!(line.width() <= 120, "{}: {line}", line.width());
    }
}

#[test]
fn a_narrow_terminal_gets_what_matters_most() {
    let devices = [&bert(), &anna()];
    let at_most = |room| {
        let text = table_within(&devices, now(), room);
        text.lines().next().unwrap().to_owned()
    };
    let headers = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        headers(&at_most(200)),
        "UDID ALIAS STATE REASON FOR HOST MODEL LABELS REMARKS"
    );
    assert_eq!(
        headers(&at_most(120)),
        "UDID ALIAS STATE REASON FOR REMARKS"
    );
    assert_eq!(headers(&at_most(80)), "UDID STATE REMARKS");
    assert_eq!(headers(&at_most(10)), "UDID STATE REMARKS");
}

#[test]
fn what_no_phone_has_takes_no_column() {
    let plain = Device {
        udid: "00008110-000978540290401E".to_owned(),
        state: DeviceState::Attached.into(),
        state_reason: "PLUGGED".to_owned(),
        ..Device::default()
    };
    assert_eq!(
        table(&[&plain], now()),
        "UDID                       STATE     REASON\n\
         00008110-000978540290401E  attached  PLUGGED\n"
    );
    assert_eq!(table(&[], now()), "no devices\n");
}

#[test]
fn long_names_and_labels_are_cut_in_the_table_only() {
    let long = "a-name-that-goes-on-and-on";
    let device = Device {
        alias: Some(long.to_owned()),
        labels: [(long.to_owned(), long.to_owned())].into(),
        ..anna()
    };
    let text = table(&[&device], now());
    assert!(!text.contains(long), "{text}");
    assert!(text.contains("a-name-that-goe\u{2026}"), "{text}");
    let json = serde_json::to_value(DeviceView::from(device)).unwrap();
    assert_eq!(
        (&json["alias"], &json["labels"][long]),
        (&json!(long), &json!(long))
    );
}

#[test]
fn json_has_everything_under_stable_keys() {
    assert_eq!(
        serde_json::to_value(DeviceView::from(anna())).unwrap(),
        json!({
            "udid": "00008110-000978540290401E",
            "alias": "anna",
            "state": "ready",
            "state_reason": "RUNNER_READY",
            "state_detail": null,
            "state_time": "2026-11-30T12:00:00.000Z",
            "stale": false,
            "runner_port": 8100,
            "queued_commands": 0,
            "command_in_flight": null,
            "host": "local",
            "mux_address": "UNIX:/var/run/usbmuxd",
            "name": "Anna's phone",
            "model": "iPhone14,5",
            "os_version": "18.1",
            "trusted": true,
            "labels": { "pool": "ci", "rack": "a3" },
            "cordon": null,
            "lease": null,
            "runner": {
                "launch_kind": "command",
                "launches": 2,
                "launch_time": "2026-11-30T11:59:00.000Z",
                "pid": 4242,
                "log_path": "/var/lib/fleetgate/runners/logs/anna.log",
                "probe_time": "2026-11-30T12:59:50.000Z",
                "uptime_ms": 3_650_005.0,
                "suppressed_issues": 7,
                "recorded_failures": 1,
                "failures": 0,
                "last_failure": null,
                "next_launch_time": null,
            },
            "alarms": [],
        })
    );
    let json = serde_json::to_value(DeviceView::from(bert())).unwrap();
    assert_eq!(json["cordon"]["until"], "2026-11-30T14:00:00.000Z");
    assert_eq!(
        json["runner"]["last_failure"]["log_tail"][0],
        "Testing failed:"
    );
    assert_eq!(json["alarms"][0]["code"], "RUNNER_DRIFT");
}

#[test]
fn what_a_person_should_look_at_is_known() {
    assert!(!needs_attention(&anna()));
    assert!(needs_attention(&bert()));
    let cordoned = Device {
        cordon: bert().cordon,
        ..anna()
    };
    assert!(needs_attention(&cordoned));
}
