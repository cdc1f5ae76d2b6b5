//! Phones and their runners.

use Severity::{Error, Info, Warning};

use super::*;

#[test]
fn a_phone_that_does_not_trust_its_host_is_not_blamed_for_its_runner() {
    let device = Device {
        trusted: Some(false),
        ..failing("EXITED", DeviceState::Launching)
    };
    let finding = only(&answers(vec![device]));
    assert_eq!((finding.severity, finding.code), (Error, "UNTRUSTED"));
    assert_eq!(finding.places, [format!("anna ({UDID})")]);
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
fn a_runner_that_is_not_started_for_want_of_a_file_has_a_remedy_of_its_own() {
    for (error, advice) in [
        ("No space left on device (os error 28)", "make room"),
        ("Read-only file system (os error 30)", "writable"),
        ("No such file or directory (os error 2)", "mounted"),
        ("Permission denied (os error 13)", "user"),
    ] {
        let mut device = failing("NOT_STARTED", DeviceState::Launching);
        let failure = device.runner.as_mut().unwrap().last_failure.as_mut();
        failure.unwrap().message = format!("cannot make /var/lib/runners/logs/x.log: {error}");
        let finding = only(&answers(vec![device]));
        assert_eq!(finding.code, "RUNNER_NOT_STARTED");
        assert!(finding.advice.contains(advice), "{}", finding.advice);
        assert!(
            finding.advice.contains("runner.directory"),
            "{}",
            finding.advice
        );
    }
}

#[test]
fn a_phone_that_is_ready_and_has_not_answered_for_long_is_a_warning() {
    let probed = |ago: u64, state: DeviceState| Device {
        state: state.into(),
        runner: Some(Runner {
            launch_kind: LaunchKind::Static.into(),
            probe_time: Some(prost_types::Timestamp {
                seconds: (NOW - ago).try_into().unwrap(),
                nanos: 0,
            }),
            ..Runner::default()
        }),
        ..phone()
    };
    let finding = only(&answers(vec![probed(301, DeviceState::Ready)]));
    assert_eq!((finding.severity, finding.code), (Warning, "PROBE_OVERDUE"));
    assert!(finding.what.contains("2026-"), "{}", finding.what);
    for well in [
        probed(300, DeviceState::Ready),
        probed(9000, DeviceState::Launching),
        phone(),
    ] {
        assert_eq!(kinds(&answers(vec![well])), []);
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
    assert_eq!(finding.places, ["host local"]);
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
