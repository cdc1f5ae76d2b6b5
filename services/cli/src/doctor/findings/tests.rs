//! Each kind of finding, from the evidence that shows it.

use fleetgate_proto::v1::{
    Alarm, Cordon, Device, DeviceState, GetGatewayResponse, LaunchFailure, LaunchKind,
    LedgerHealth, MuxHost, Runner,
};

use super::*;
use crate::doctor::evidence::{Answers, Host, LedgerFile, Local, Mux, NoGateway, Parts, Space};

const GIB: u64 = 1 << 30;
const UDID: &str = "00008110-000978540290401E";

fn host() -> MuxHost {
    MuxHost {
        name: "local".to_owned(),
        address: "UNIX:/var/run/usbmuxd".to_owned(),
        connected: true,
        ..MuxHost::default()
    }
}

fn ledger() -> LedgerHealth {
    LedgerHealth {
        path: "/var/lib/fleetgate/ledger.db".to_owned(),
        writable: true,
        free_bytes: Some(9 * GIB),
        ..LedgerHealth::default()
    }
}

fn phone() -> Device {
    Device {
        udid: UDID.to_owned(),
        alias: Some("anna".to_owned()),
        state: DeviceState::Ready.into(),
        state_reason: "RUNNER_READY".to_owned(),
        host: Some("local".to_owned()),
        runner_port: Some(8100),
        trusted: Some(true),
        runner: Some(Runner {
            launch_kind: LaunchKind::Static.into(),
            ..Runner::default()
        }),
        ..Device::default()
    }
}

/// A phone whose runner this gateway launches, and that failed.
fn failing(reason: &str, state: DeviceState) -> Device {
    Device {
        state: state.into(),
        runner: Some(Runner {
            launch_kind: LaunchKind::Command.into(),
            last_failure: Some(LaunchFailure {
                reason: reason.to_owned(),
                message: "exit status: 65".to_owned(),
                time: None,
                log_tail: vec!["Developer Mode is off".to_owned()],
            }),
            next_launch_time: Some(prost_types::Timestamp {
                seconds: 1_796_040_000,
                nanos: 0,
            }),
            ..Runner::default()
        }),
        ..phone()
    }
}

fn answers(devices: Vec<Device>) -> Evidence {
    let gateway = GetGatewayResponse {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        mux_hosts: vec![host()],
        ledger: Some(ledger()),
        ..GetGatewayResponse::default()
    };
    Evidence {
        server: "http://127.0.0.1:7700".to_owned(),
        gateway: Ok(Answers { gateway, devices }),
        space: None,
        local: None,
    }
}

fn about_gateway(change: impl FnOnce(&mut GetGatewayResponse)) -> Evidence {
    let mut evidence = answers(vec![phone()]);
    if let Ok(answers) = &mut evidence.gateway {
        change(&mut answers.gateway);
    }
    evidence
}

fn no_gateway(parts: Result<Parts, String>) -> Evidence {
    Evidence {
        gateway: Err(NoGateway::Unreachable("no gateway there".to_owned())),
        local: Some(Local {
            config: Some("/etc/fleetgate.toml".into()),
            parts,
        }),
        ..answers(Vec::new())
    }
}

fn on_this_host(mux: Mux) -> Evidence {
    no_gateway(Ok(Parts {
        hosts: vec![Host {
            name: "local".to_owned(),
            address: "UNIX:/var/run/usbmuxd".to_owned(),
            mux,
        }],
        ledger: file(None, 9 * GIB),
    }))
}

fn file(unwritable: Option<&str>, free: u64) -> LedgerFile {
    LedgerFile {
        path: "/var/lib/fleetgate/ledger.db".into(),
        unwritable: unwritable.map(str::to_owned),
        space: Some(Space {
            free,
            total: 100 * GIB,
        }),
    }
}

/// The kinds that were found, with how bad they are.
fn kinds(evidence: &Evidence) -> Vec<(Severity, &'static str)> {
    let found = findings(evidence);
    for finding in &found {
        assert!(!finding.what.is_empty(), "{finding:?}");
        assert!(!finding.place.is_empty(), "{finding:?}");
        assert!(!finding.advice.is_empty(), "{finding:?}");
    }
    found
        .iter()
        .map(|finding| (finding.severity, finding.code))
        .collect()
}

fn only(evidence: &Evidence) -> Finding {
    let mut found = findings(evidence);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

use Severity::{Error, Info, Warning};

#[test]
fn a_fleet_that_is_well_has_no_findings() {
    assert_eq!(kinds(&answers(vec![phone()])), []);
}

#[test]
fn a_gateway_that_is_not_there_is_the_first_of_what_is_wrong() {
    let phones = Mux::Phones {
        cabled: 1,
        networked: 0,
    };
    assert_eq!(kinds(&on_this_host(phones)), [(Error, "NO_GATEWAY")]);
    let odd = Evidence {
        gateway: Err(NoGateway::Odd("UNIMPLEMENTED".to_owned())),
        local: None,
        ..answers(Vec::new())
    };
    assert_eq!(kinds(&odd), [(Error, "GATEWAY_ODD")]);
}

#[test]
fn a_configuration_that_cannot_be_read_hides_all_that_it_would_name() {
    let evidence = no_gateway(Err("line 2: unknown field `speed`".to_owned()));
    assert_eq!(
        kinds(&evidence),
        [(Error, "NO_GATEWAY"), (Error, "CONFIG_UNUSABLE")]
    );
    assert_eq!(findings(&evidence)[1].place, "/etc/fleetgate.toml");
}

#[test]
fn a_usbmuxd_on_this_host_is_missing_or_refuses_or_is_silent_or_none() {
    for (mux, code) in [
        (Mux::Missing, "USBMUXD_MISSING"),
        (Mux::Refused, "USBMUXD_REFUSES"),
        (Mux::Forbidden, "USBMUXD_REFUSES"),
        (Mux::Silent, "USBMUXD_SILENT"),
        (Mux::Odd("HTTP".to_owned()), "USBMUXD_ODD"),
    ] {
        let evidence = on_this_host(mux);
        assert_eq!(kinds(&evidence), [(Error, "NO_GATEWAY"), (Error, code)]);
        assert!(
            findings(&evidence)[1].place.contains("/var/run/usbmuxd"),
            "{code}"
        );
    }
}

#[test]
fn a_usbmuxd_without_a_phone_by_cable_has_no_phones() {
    let evidence = on_this_host(Mux::Phones {
        cabled: 0,
        networked: 3,
    });
    assert_eq!(
        kinds(&evidence),
        [(Error, "NO_GATEWAY"), (Error, "NO_PHONES")]
    );
}

#[test]
fn a_ledger_that_could_not_be_written_or_would_soon_be_full_is_found_without_a_gateway() {
    for (ledger, severity, code) in [
        (file(Some("denied"), 9 * GIB), Error, "LEDGER_UNWRITABLE"),
        (file(None, GIB), Warning, "DISK_LOW"),
        (file(None, 1000), Error, "DISK_FULL"),
    ] {
        let evidence = no_gateway(Ok(Parts {
            hosts: Vec::new(),
            ledger,
        }));
        assert_eq!(kinds(&evidence), [(Error, "NO_GATEWAY"), (severity, code)]);
    }
}

#[test]
fn a_usbmuxd_that_the_gateway_cannot_reach_is_named_with_the_reason() {
    let evidence = about_gateway(|gateway| {
        gateway.mux_hosts = vec![MuxHost {
            connected: false,
            last_error: Some("connection refused".to_owned()),
            ..host()
        }];
    });
    let finding = only(&evidence);
    assert_eq!(
        (finding.severity, finding.code),
        (Error, "USBMUXD_UNREACHABLE")
    );
    assert!(finding.what.contains("connection refused"));
    assert!(finding.place.contains("/var/run/usbmuxd"));
}

#[test]
fn no_phones_is_said_only_of_a_usbmuxd_that_is_heard() {
    assert_eq!(kinds(&answers(Vec::new())), [(Error, "NO_PHONES")]);
    let gone = Device {
        state: DeviceState::Detached.into(),
        ..phone()
    };
    assert_eq!(
        kinds(&answers(vec![gone])),
        [(Error, "NO_PHONES"), (Info, "DETACHED")]
    );
    let mut unheard = answers(Vec::new());
    if let Ok(answers) = &mut unheard.gateway {
        answers.gateway.mux_hosts[0].connected = false;
    }
    assert_eq!(kinds(&unheard), [(Error, "USBMUXD_UNREACHABLE")]);
}

#[test]
fn a_phone_that_does_not_trust_its_host_is_not_blamed_for_its_runner() {
    let device = Device {
        trusted: Some(false),
        ..failing("EXITED", DeviceState::Launching)
    };
    let finding = only(&answers(vec![device]));
    assert_eq!((finding.severity, finding.code), (Error, "UNTRUSTED"));
    assert_eq!(finding.place, format!("anna ({UDID})"));
    assert!(finding.advice.contains("Trust"));
}

#[test]
fn a_runner_that_does_not_start_comes_with_its_reason_and_the_tail_of_its_log() {
    for (reason, advice) in [
        ("EXITED", "Developer Mode"),
        ("LISTENER_FAILED", "Developer Mode"),
        ("START_TIMEOUT", "start_timeout"),
        ("NOT_READY", "start_timeout"),
        ("NOT_STARTED", "may be run"),
    ] {
        let finding = only(&answers(vec![failing(reason, DeviceState::Launching)]));
        assert_eq!(
            (finding.severity, finding.code),
            (Error, "RUNNER_NOT_STARTED")
        );
        assert!(finding.what.contains(reason), "{}", finding.what);
        assert!(finding.what.contains("exit status: 65"), "{}", finding.what);
        assert!(finding.what.contains("2026-11-30"), "{}", finding.what);
        assert!(finding.advice.contains(advice), "{}", finding.advice);
        assert_eq!(finding.log, ["Developer Mode is off"]);
    }
}

#[test]
fn a_wedged_runner_is_for_whoever_launched_it() {
    let wedged = |kind: LaunchKind| {
        only(&answers(vec![Device {
            state: DeviceState::Wedged.into(),
            runner: Some(Runner {
                launch_kind: kind.into(),
                ..Runner::default()
            }),
            ..phone()
        }]))
    };
    for kind in [LaunchKind::Static, LaunchKind::Command] {
        let finding = wedged(kind);
        assert_eq!((finding.severity, finding.code), (Error, "RUNNER_WEDGED"));
    }
    assert!(wedged(LaunchKind::Command).advice.contains("recycle"));
    assert!(!wedged(LaunchKind::Static).advice.contains("recycle"));
}

#[test]
fn a_phone_in_quarantine_says_why_once() {
    let device = Device {
        state_detail: Some("5 failures".to_owned()),
        ..failing("EXITED", DeviceState::Quarantined)
    };
    let finding = only(&answers(vec![device]));
    assert_eq!((finding.severity, finding.code), (Error, "QUARANTINED"));
    assert!(
        finding.what.contains("5 failures") && finding.what.contains("EXITED"),
        "{}",
        finding.what
    );
    assert!(finding.advice.contains(&format!("recycle {UDID}")));
    assert_eq!(finding.log.len(), 1);
}

#[test]
fn a_cordon_is_a_note() {
    let device = Device {
        cordon: Some(Cordon {
            reason: "new battery".to_owned(),
            who: "ops".to_owned(),
            ..Cordon::default()
        }),
        ..phone()
    };
    let finding = only(&answers(vec![device]));
    assert_eq!((finding.severity, finding.code), (Info, "CORDONED"));
    assert!(finding.what.contains("new battery") && finding.what.contains("ops"));
}

#[test]
fn the_phones_of_a_lost_host_are_one_finding_and_not_blamed() {
    let lost = |udid: &str| Device {
        udid: udid.to_owned(),
        stale: true,
        ..failing("EXITED", DeviceState::Launching)
    };
    let names = ["a", "b", "c", "d", "e", "f"];
    let finding = only(&answers(names.map(lost).to_vec()));
    assert_eq!((finding.severity, finding.code), (Warning, "HOST_STALE"));
    assert_eq!(finding.place, "host local");
    assert!(finding.what.contains("and 1 more"), "{}", finding.what);
}

#[test]
fn alarms_are_warnings_and_drift_has_advice_of_its_own() {
    let alarm = |code: &str| Alarm {
        code: code.to_owned(),
        message: "3 recorded, none suppressed".to_owned(),
        time: None,
    };
    let device = Device {
        alarms: vec![alarm("RUNNER_DRIFT"), alarm("OTHER")],
        ..phone()
    };
    let evidence = answers(vec![device]);
    assert_eq!(
        kinds(&evidence),
        [(Warning, "RUNNER_DRIFT"), (Warning, "ALARM")]
    );
    assert!(findings(&evidence)[0].advice.contains("Xcode"));
}

#[test]
fn a_ledger_that_fails_is_an_error_and_one_with_little_room_a_warning() {
    let failing = about_gateway(|gateway| {
        gateway.ledger = Some(LedgerHealth {
            writable: false,
            last_error: Some("database or disk is full".to_owned()),
            free_bytes: Some(4096),
            ..ledger()
        });
    });
    let finding = only(&failing);
    assert_eq!((finding.severity, finding.code), (Error, "LEDGER_FAILING"));
    assert!(finding.what.contains("disk is full"), "{}", finding.what);
    assert!(finding.what.contains("4.0 KiB"), "{}", finding.what);

    let with_free = |free: u64| {
        about_gateway(|gateway| {
            gateway.ledger = Some(LedgerHealth {
                free_bytes: Some(free),
                ..ledger()
            });
        })
    };
    assert_eq!(kinds(&with_free(500 << 20)), []);
    assert_eq!(kinds(&with_free((500 << 20) - 1)), [(Warning, "DISK_LOW")]);
    assert_eq!(kinds(&with_free(4096)), [(Error, "DISK_FULL")]);
}

#[test]
fn on_the_gateways_own_host_a_twentieth_of_the_disk_is_little_too() {
    let with_space = |free: u64| Evidence {
        space: Some(Space {
            free,
            total: 100 * GIB,
        }),
        ..answers(vec![phone()])
    };
    assert_eq!(kinds(&with_space(5 * GIB)), []);
    assert_eq!(kinds(&with_space(5 * GIB - 1)), [(Warning, "DISK_LOW")]);
}

#[test]
fn a_phone_whose_runner_nobody_knows_the_port_of_is_told_so() {
    let unknown = Device {
        state: DeviceState::Attached.into(),
        state_reason: "RUNNER_UNKNOWN".to_owned(),
        runner_port: None,
        runner: None,
        ..phone()
    };
    let plugged = Device {
        state_reason: "PLUGGED".to_owned(),
        ..unknown.clone()
    };
    for device in [unknown, plugged] {
        let finding = only(&answers(vec![device]));
        assert_eq!(
            (finding.severity, finding.code),
            (Error, "RUNNER_PORT_UNKNOWN")
        );
        assert!(finding.advice.contains("runner_port"));
    }
}

#[test]
fn a_runner_that_somebody_else_starts_and_that_does_not_answer_is_found() {
    for reason in ["RUNNER_UNREACHABLE", "RUNNER_DIED"] {
        let device = Device {
            state: DeviceState::Attached.into(),
            state_reason: reason.to_owned(),
            ..phone()
        };
        let finding = only(&answers(vec![device]));
        assert_eq!(
            (finding.severity, finding.code),
            (Error, "RUNNER_UNREACHABLE")
        );
        assert!(finding.what.contains("8100"), "{}", finding.what);
    }
    let not_yet_probed = Device {
        state: DeviceState::Attached.into(),
        state_reason: "PLUGGED".to_owned(),
        ..phone()
    };
    assert_eq!(kinds(&answers(vec![not_yet_probed])), []);
}

#[test]
fn a_gateway_that_drains_or_is_of_another_version_says_so() {
    let evidence = about_gateway(|gateway| {
        gateway.draining = true;
        "0.0.1".clone_into(&mut gateway.version);
        gateway.mux_hosts[0].ignored_entries = 2;
    });
    assert_eq!(
        kinds(&evidence),
        [
            (Warning, "GATEWAY_DRAINING"),
            (Info, "VERSIONS_DIFFER"),
            (Info, "ENTRIES_IGNORED")
        ]
    );
}

#[test]
fn the_worst_comes_first() {
    let cordoned = Device {
        cordon: Some(Cordon::default()),
        alarms: vec![Alarm::default()],
        ..failing("EXITED", DeviceState::Quarantined)
    };
    let severities: Vec<_> = findings(&answers(vec![cordoned]))
        .iter()
        .map(|finding| finding.severity)
        .collect();
    assert_eq!(severities, [Error, Warning, Info]);
}
