//! One phone with all that is known of it, and what it went through.

use std::time::SystemTime;

use fleetgate_proto::v1 as pb;
use prost_types::Timestamp;
use serde::Serialize;

use crate::output::{clean, lines, pairs};
use crate::view::device::{DeviceView, label, labels};
use crate::view::transition::{self, TransitionView};
use crate::{when, words};

#[cfg(test)]
mod tests;

/// A phone and its history as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct DescribedView {
    #[serde(flatten)]
    device: DeviceView,
    /// The newest first.
    transitions: Vec<TransitionView>,
    /// For people.
    #[serde(skip)]
    text: String,
}

impl DescribedView {
    /// What a gateway says of a phone; ages are counted up to `now`.
    pub(crate) fn new(
        device: pb::Device,
        transitions: Vec<pb::DeviceTransition>,
        now: SystemTime,
    ) -> Self {
        let mut text = about(&device, now);
        if let Some(runner) = &device.runner {
            text += &about_runner(runner, device.runner_port, now);
        }
        text += &about_alarms(&device.alarms, now);
        let transitions: Vec<_> = transitions.into_iter().map(TransitionView::from).collect();
        if !transitions.is_empty() {
            text += "\nhistory\n";
            text += &indented(transition::lines(&transitions).lines());
        }
        Self {
            device: device.into(),
            transitions,
            text,
        }
    }

    /// All of it, in sections.
    pub(crate) fn text(&self) -> String {
        self.text.clone()
    }
}

/// A moment and how long ago it was.
fn moment(time: Option<Timestamp>, now: SystemTime) -> Option<String> {
    let time = time?;
    let age = when::age(time, now).map(|age| format!(" ({age} ago)"));
    Some(when::stamp(time)? + &age.unwrap_or_default())
}

/// A word, and what belongs to it.
fn joined(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn indented<'a>(text: impl IntoIterator<Item = &'a str>) -> String {
    lines(text.into_iter().map(|line| format!("  {line}")))
}

fn about(device: &pb::Device, now: SystemTime) -> String {
    let state = joined([
        Some(words::device_state(device.state)),
        Some(device.state_reason.clone()).filter(|reason| !reason.is_empty()),
        moment(device.state_time, now).map(|moment| format!("since {moment}")),
    ]);
    let host = match (&device.host, &device.mux_address) {
        (Some(host), Some(address)) => Some(format!("{host} at {address}")),
        (host, address) => host.clone().or_else(|| address.clone()),
    };
    let unheard = device
        .stale
        .then(|| "its host is not being listened to: this is what was last known".to_owned());
    let trusted = device.trusted.map(|trusted| {
        let words = if trusted {
            "yes"
        } else {
            "no: unlock it and tap Trust"
        };
        words.to_owned()
    });
    let cordon = device.cordon.as_ref().map(|cordon| {
        joined([
            Some(cordon.reason.clone()),
            Some(format!("by {}", cordon.who)),
            moment(cordon.time, now).map(|moment| format!("since {moment}")),
            cordon
                .until
                .and_then(when::stamp)
                .map(|until| format!("until {until}")),
        ])
    });
    let queued = (device.queued_commands > 0).then(|| device.queued_commands.to_string());
    let labels = Some(labels(&device.labels)).filter(|labels| !labels.is_empty());
    format!(
        "{}\n{}",
        clean(&label(device)),
        pairs(
            2,
            [
                ("state", Some(state)),
                ("detail", device.state_detail.clone()),
                ("stale", unheard),
                ("host", host),
                ("name", device.name.clone()),
                ("model", device.model.clone()),
                ("iOS", device.os_version.clone()),
                ("labels", labels),
                ("trusted", trusted),
                ("cordoned", cordon),
                ("leased", device.lease.as_ref().map(held_by)),
                ("in flight", device.command_in_flight.clone()),
                ("queued", queued),
            ],
        )
    )
}

/// Who has a phone, in a few words.
fn held_by(lease: &pb::DeviceLease) -> String {
    joined([
        Some(format!("by {}", lease.owner)),
        Some(lease.lease_id.clone()),
        Some(format!("epoch {}", lease.epoch)),
        Some(match lease.until.and_then(when::stamp) {
            Some(until) => format!("until {until}"),
            None => "until its last command has ended".to_owned(),
        }),
    ])
}

fn about_runner(runner: &pb::Runner, port: Option<u32>, now: SystemTime) -> String {
    let launched = (runner.launches > 0).then(|| {
        joined([
            Some(match runner.launches {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            }),
            moment(runner.launch_time, now).map(|moment| format!("last {moment}")),
        ])
    });
    let number = |number: Option<u64>| number.map(|number| number.to_string());
    let failures = (runner.failures > 0).then(|| format!("{} in a row", runner.failures));
    let facts = pairs(
        2,
        [
            ("launched by", Some(launcher(runner.launch_kind()))),
            ("port", port.map(|port| port.to_string())),
            ("pid", runner.pid.map(|pid| pid.to_string())),
            ("launched", launched),
            ("next launch", runner.next_launch_time.and_then(when::stamp)),
            ("log", runner.log_path.clone()),
            ("answered", moment(runner.probe_time, now)),
            ("uptime", runner.uptime.and_then(when::whole)),
            ("suppressed issues", number(runner.suppressed_issues)),
            ("recorded failures", number(runner.recorded_failures)),
            ("failed", failures),
        ],
    );
    let failure = runner.last_failure.as_ref().map(|failure| {
        let what = joined([
            Some(failure.reason.clone()),
            moment(failure.time, now).map(|moment| format!("at {moment}")),
            Some(failure.message.clone()).filter(|message| !message.is_empty()),
        ]);
        let tail = failure
            .log_tail
            .iter()
            .map(|line| format!("    {}", clean(line)));
        format!("  last failure: {}\n{}", clean(&what), lines(tail))
    });
    format!("\nrunner\n{facts}{}", failure.unwrap_or_default())
}

fn launcher(kind: pb::LaunchKind) -> String {
    match kind {
        pb::LaunchKind::Unspecified => "nobody: how it comes up is not configured",
        pb::LaunchKind::Static => "somebody else: its port is in the configuration",
        pb::LaunchKind::Command => "this gateway",
    }
    .to_owned()
}

fn about_alarms(alarms: &[pb::Alarm], now: SystemTime) -> String {
    if alarms.is_empty() {
        return String::new();
    }
    let alarms = alarms.iter().map(|alarm| {
        let since = moment(alarm.time, now).map(|moment| format!("since {moment}"));
        let what = joined([Some(alarm.code.clone()), since]);
        format!("  {}: {}", clean(&what), clean(&alarm.message))
    });
    format!("\nalarms\n{}", lines(alarms))
}
