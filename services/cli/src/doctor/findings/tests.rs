//! Each kind of finding, from the evidence that shows it.

use std::time::{Duration, SystemTime};

use fleetgate_proto::v1::{
    Alarm, Cordon, Device, DeviceState, GetGatewayResponse, LaunchFailure, LaunchKind,
    LedgerHealth, MuxHost, Runner,
};

use super::*;
use crate::doctor::evidence::{Answers, Host, LedgerFile, Local, Mux, NoGateway, Parts, Space};

mod credentials;
mod gateway;
mod local;
mod phones;

const GIB: u64 = 1 << 30;
/// In seconds.
const NOW: u64 = 1_796_040_000;
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
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(NOW),
        gateway: Ok(Answers { gateway, devices }),
        space: None,
        credentials: None,
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
        gateway: Err(NoGateway::Unreachable {
            why: "no gateway there".to_owned(),
            advice: "start one".to_owned(),
        }),
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
        assert!(
            finding.places.iter().all(|place| !place.is_empty()),
            "{finding:?}"
        );
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
fn what_is_the_same_with_many_phones_is_told_once() {
    let untrusted = |udid: &str| Device {
        udid: udid.to_owned(),
        alias: None,
        trusted: Some(false),
        ..phone()
    };
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let finding = only(&answers(names.map(untrusted).to_vec()));
    assert_eq!(finding.places, names);
    assert_eq!(named(&finding.places), "a, b, c, d, e and 2 more");
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
