//! What a gateway says of its phones.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use fleetgate_proto::v1::{Alarm, Device, DeviceState, LaunchFailure, LaunchKind, Runner};

use super::{Finding, named};
use crate::doctor::evidence::Answers;
use crate::view::device::label;
use crate::when;

/// The code of the alarm that an Xcode's new wording raises.
const DRIFT: &str = "RUNNER_DRIFT";
/// Why a phone is attached and no more: nobody said where its runner is.
const RUNNER_UNKNOWN: &str = "RUNNER_UNKNOWN";
/// The same: its runner does not answer.
const RUNNER_SILENT: [&str; 2] = ["RUNNER_UNREACHABLE", "RUNNER_DIED"];

/// How a launch's message begins that is about a file of the gateway's own.
const FILE_ERROR: &str = "cannot ";
/// How old the last answer of a phone that is ready may be: a gateway that asks
/// every 30 s, as it does unless told otherwise, has asked ten times since.
const LONGEST_SILENCE: Duration = Duration::from_mins(5);

pub(super) fn examine(answers: &Answers, now: SystemTime, findings: &mut Vec<Finding>) {
    for device in &answers.devices {
        let place = label(device);
        findings.extend(trouble(device, &place));
        findings.extend(unheard(device, now, &place));
        findings.extend(device.alarms.iter().map(|raised| alarm(raised, &place)));
        findings.extend(cordon(device, &place));
    }
    stale(&answers.devices, findings);
    detached(&answers.devices, findings);
}

/// What keeps a phone from being driven.
fn trouble(device: &Device, place: &str) -> Option<Finding> {
    if device.state() == DeviceState::Quarantined {
        return Some(quarantined(device, place));
    }
    if device.stale || device.state() == DeviceState::Detached {
        return None;
    }
    if device.trusted == Some(false) {
        return Some(
            Finding::error("UNTRUSTED", place)
                .what("the phone does not trust its host")
                .advice("unlock it, and tap Trust; if it does not ask, unplug it and plug it in"),
        );
    }
    if device.state() == DeviceState::Wedged {
        return Some(wedged(device, place));
    }
    let runner = device.runner.as_ref();
    if let Some(failure) = runner.and_then(|runner| runner.last_failure.as_ref()) {
        let next = runner.and_then(|runner| runner.next_launch_time);
        return Some(not_started(failure, next, place));
    }
    let attached = device.state() == DeviceState::Attached;
    let reason = device.state_reason.as_str();
    if attached && (reason == RUNNER_UNKNOWN || has_no_way(device)) {
        return Some(port_unknown(place));
    }
    (attached && RUNNER_SILENT.contains(&reason)).then(|| silent(device, place))
}

fn launched_here(runner: Option<&Runner>) -> bool {
    runner.is_some_and(|runner| runner.launch_kind() == LaunchKind::Command)
}

/// Nobody has said how its runner comes up.
fn has_no_way(device: &Device) -> bool {
    device.runner_port.is_none() && !launched_here(device.runner.as_ref())
}

fn in_detail(what: &str, device: &Device) -> String {
    match &device.state_detail {
        Some(detail) => format!("{what}: {detail}"),
        None => what.to_owned(),
    }
}

fn quarantined(device: &Device, place: &str) -> Finding {
    let failure = device
        .runner
        .as_ref()
        .and_then(|runner| runner.last_failure.as_ref());
    let mut what = in_detail(
        "its runner failed again and again, and is left alone",
        device,
    );
    if let Some(LaunchFailure {
        reason, message, ..
    }) = failure
    {
        what = format!("{what}; the last time: {reason}: {message}");
    }
    Finding::error("QUARANTINED", place)
        .what(what)
        .advice(format!(
            "mend what its log tells of, then `fleetgate recycle {} --wait`, or plug it in anew",
            device.udid
        ))
        .log(failure.map_or_else(Vec::new, |failure| failure.log_tail.clone()))
}

fn wedged(device: &Device, place: &str) -> Finding {
    let advice = if launched_here(device.runner.as_ref()) {
        format!(
            "nothing: it is launched again once the command in flight has ended; \
             `fleetgate recycle {} --force --wait` does not wait for that",
            device.udid
        )
    } else {
        "end its runner and start it again: this gateway did not launch it, and cannot".to_owned()
    };
    Finding::error("RUNNER_WEDGED", place)
        .what(in_detail("its runner is stuck in a command", device))
        .advice(advice)
}

fn not_started(
    failure: &LaunchFailure,
    next: Option<prost_types::Timestamp>,
    place: &str,
) -> Finding {
    let next = next.and_then(when::stamp);
    let next = next.map_or_else(String::new, |next| format!("; it is tried again at {next}"));
    let advice = match failure.reason.as_str() {
        "START_TIMEOUT" | "NOT_READY" => {
            "see in its log what it waits for; if it is only slow, raise start_timeout of its [[launch]]"
        }
        "NOT_STARTED" if failure.message.starts_with(FILE_ERROR) => file_advice(&failure.message),
        "NOT_STARTED" => "see that the program of its [[launch]] is there and may be run",
        // EXITED, LISTENER_FAILED, and what a newer gateway may say.
        _ => {
            "see in its log what failed; a launch needs an unlocked, trusted phone with Developer Mode on"
        }
    };
    Finding::error("RUNNER_NOT_STARTED", place)
        .what(format!(
            "its runner did not come up: {}: {}{next}",
            failure.reason, failure.message
        ))
        .advice(advice)
        .log(failure.log_tail.clone())
}

/// What to do about a file in the directory of logs and records.
fn file_advice(message: &str) -> &'static str {
    let is = |error: &str| message.contains(error);
    if is("No space left on device") || is("quota exceeded") {
        "make room on the file system that has runner.directory"
    } else if is("Read-only file system") {
        "make the file system that has runner.directory writable, or name another directory"
    } else if is("No such file or directory") {
        "see that the file system that has runner.directory is mounted; what is missing in it is \
         made again with the next launch"
    } else {
        "see that runner.directory belongs to the gateway's user, and that its disk is well"
    }
}

/// A runner that answers probes has not for a while, and its phone is ready all
/// the same.
fn unheard(device: &Device, now: SystemTime, place: &str) -> Option<Finding> {
    if device.state() != DeviceState::Ready || device.stale {
        return None;
    }
    let probed = device.runner.as_ref()?.probe_time?;
    let silence = now
        .duration_since(SystemTime::try_from(probed).ok()?)
        .ok()?;
    (silence > LONGEST_SILENCE).then(|| {
        let since = when::stamp(probed).unwrap_or_default();
        Finding::warning("PROBE_OVERDUE", place)
            .what(format!(
                "it is ready, and its runner last answered at {since}"
            ))
            .advice(
                "nothing, if health.probe_interval is that long or this host's clock is not the \
                 gateway's; else see in the gateway's log why it asks no longer",
            )
    })
}

fn port_unknown(place: &str) -> Finding {
    Finding::error("RUNNER_PORT_UNKNOWN", place)
        .what("nobody said where its runner listens, or how one is launched")
        .advice(
            "name its port (runner_port of its [[device]], or port of [runner]), or a [[launch]] \
             that applies to it, and start the gateway again",
        )
}

fn silent(device: &Device, place: &str) -> Finding {
    let port = device
        .runner_port
        .map_or_else(String::new, |port| format!(" on port {port}"));
    let advice = if launched_here(device.runner.as_ref()) {
        "nothing: it is launched again; see its log if that does not help"
    } else {
        "start its runner, and see that it listens on the port that is configured"
    };
    Finding::error("RUNNER_UNREACHABLE", place)
        .what(in_detail(
            &format!("its runner does not answer{port}"),
            device,
        ))
        .advice(advice)
}

fn alarm(alarm: &Alarm, place: &str) -> Finding {
    let since = alarm.time.and_then(when::stamp);
    let since = since.map_or_else(String::new, |since| format!(" (since {since})"));
    if alarm.code == DRIFT {
        return Finding::warning("RUNNER_DRIFT", place)
            .what(format!("{}{since}", alarm.message))
            .advice(
                "an Xcode may have changed its wording: compare its version with the one that the \
                 runner was built for, and update the runner",
            );
    }
    Finding::warning("ALARM", place)
        .what(format!("{}: {}{since}", alarm.code, alarm.message))
        .advice("see what the alarm tells of")
}

fn cordon(device: &Device, place: &str) -> Option<Finding> {
    let cordon = device.cordon.as_ref()?;
    let until = cordon.until.and_then(when::stamp);
    let until = until.map_or_else(String::new, |until| format!(", until {until}"));
    Some(
        Finding::info("CORDONED", place)
            .what(format!(
                "{} took it out of service: {}{until}",
                cordon.who, cordon.reason
            ))
            .advice(format!(
                "`fleetgate uncordon {}`, when that is over",
                device.udid
            )),
    )
}

fn stale(devices: &[Device], findings: &mut Vec<Finding>) {
    let mut by_host = BTreeMap::<String, Vec<&Device>>::new();
    for device in devices.iter().filter(|device| device.stale) {
        let host = device.host.clone().or_else(|| device.mux_address.clone());
        by_host
            .entry(host.unwrap_or_default())
            .or_default()
            .push(device);
    }
    findings.extend(by_host.into_iter().map(|(host, devices)| {
        Finding::warning("HOST_STALE", &format!("host {host}"))
            .what(format!(
                "its usbmuxd is not being listened to; what is told of {} is what was last known",
                names(&devices)
            ))
            .advice("bring its usbmuxd back; nothing is to be done about the phones")
    }));
}

fn detached(devices: &[Device], findings: &mut Vec<Finding>) {
    let gone: Vec<_> = devices
        .iter()
        .filter(|device| device.state() == DeviceState::Detached && !device.stale)
        .collect();
    if !gone.is_empty() {
        let finding = Finding::info("DETACHED", "the gateway");
        findings.push(
            finding
                .what(format!("not attached by cable: {}", names(&gone)))
                .advice("plug them in, if they should be there"),
        );
    }
}

fn names(devices: &[&Device]) -> String {
    let names: Vec<_> = devices.iter().map(|device| label(device)).collect();
    named(&names)
}
