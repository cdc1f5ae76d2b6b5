//! What the fleet's stream tells, one line each.
//!
//! A phone of a snapshot and a phone that has changed are the same line, so that
//! a program needs one rule: the last line of a phone is how it is.

use std::collections::BTreeMap;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::watch_fleet_response::Item;
use serde::Serialize;

use crate::output::clean;
use crate::view::device::{AlarmView, DeviceView, label, remarks};
use crate::view::transition::TransitionView;
use crate::{when, words};

#[cfg(test)]
mod tests;

/// One line of a watch.
#[derive(Debug, Serialize)]
pub(crate) struct FleetLine {
    /// Where the stream can be taken up again after this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// True for what was so before the watch began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    snapshot: bool,
    #[serde(flatten)]
    what: What,
    /// For people.
    #[serde(skip)]
    words: String,
}

/// What it tells.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum What {
    Device {
        device: Box<DeviceView>,
        #[serde(skip_serializing_if = "Option::is_none")]
        transition: Option<TransitionView>,
    },
    Alarm {
        udid: String,
        alarm: Option<AlarmView>,
        ended: bool,
    },
    Command {
        command_id: String,
        udid: String,
        kind: String,
        fate: String,
        effect: String,
        reason: Option<String>,
        revised: bool,
    },
    Host {
        host: HostView,
    },
    Synced,
    Gap {
        missed: Option<u64>,
    },
    /// Of a newer gateway.
    Unknown,
}

/// A usbmuxd.
#[derive(Debug, Serialize)]
struct HostView {
    name: String,
    address: String,
    connected: bool,
    generation: u64,
    last_error: Option<String>,
    device_count: u32,
    ignored_entries: u64,
}

impl FleetLine {
    /// The message's lines, without those about phones that are not `wanted`.
    pub(crate) fn all(message: pb::WatchFleetResponse, wanted: &dyn Fn(&str) -> bool) -> Vec<Self> {
        let cursor = Some(message.cursor).filter(|cursor| !cursor.is_empty());
        let plain = |what, words: &str| {
            vec![Self {
                words: words.to_owned(),
                ..Self::new(cursor.clone(), what)
            }]
        };
        match message.item {
            Some(Item::Snapshot(snapshot)) => Self::snapshot(snapshot, wanted),
            Some(Item::Synced(_)) => plain(What::Synced, "synced     what follows happens now"),
            Some(Item::Gap(pb::FleetGap { missed })) => {
                plain(What::Gap { missed }, &format!("gap        {}", gap(missed)))
            }
            Some(Item::Event(event)) => Self::event(event, cursor, wanted).into_iter().collect(),
            Some(Item::Heartbeat(_)) | None => Vec::new(),
        }
    }

    fn new(cursor: Option<String>, what: What) -> Self {
        Self {
            cursor,
            seq: None,
            time: None,
            snapshot: false,
            what,
            words: String::new(),
        }
    }

    fn snapshot(snapshot: pb::FleetSnapshot, wanted: &dyn Fn(&str) -> bool) -> Vec<Self> {
        let hosts = snapshot.mux_hosts.into_iter().map(|host| Self {
            words: host_words(&host),
            snapshot: true,
            ..Self::new(None, host_what(host))
        });
        let devices = snapshot.devices.into_iter();
        let devices = devices.filter(|device| wanted(&device.udid));
        let devices = devices.map(|device| Self {
            words: device_words(&device, None),
            snapshot: true,
            ..Self::new(
                None,
                What::Device {
                    device: Box::new(device.into()),
                    transition: None,
                },
            )
        });
        hosts.chain(devices).collect()
    }

    fn event(
        event: pb::FleetEvent,
        cursor: Option<String>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Option<Self> {
        let (what, words) = match event.event {
            Some(Event::DeviceChanged(pb::DeviceChanged { device, transition })) => {
                let device = device.filter(|device| wanted(&device.udid))?;
                let words = device_words(&device, transition.as_ref());
                let device = Box::new(device.into());
                let transition = transition.map(TransitionView::from);
                (What::Device { device, transition }, words)
            }
            Some(Event::Alarm(alarm)) if wanted(&alarm.device) => {
                (alarm_what(&alarm), alarm_words(&alarm))
            }
            Some(Event::Command(fate)) if wanted(&fate.device) => command(fate),
            Some(Event::Alarm(_) | Event::Command(_)) => return None,
            Some(Event::HostChanged(host)) => {
                let words = host_words(&host);
                (host_what(host), words)
            }
            None => (
                What::Unknown,
                "an event that this version does not know".to_owned(),
            ),
        };
        Some(Self {
            seq: Some(event.seq),
            time: event.time.and_then(when::stamp),
            words,
            ..Self::new(cursor, what)
        })
    }

    /// Whether it tells of something that happened.
    pub(crate) fn is_news(&self) -> bool {
        match self.what {
            What::Device { .. } | What::Host { .. } => !self.snapshot,
            What::Alarm { .. } | What::Command { .. } | What::Gap { .. } | What::Unknown => true,
            What::Synced => false,
        }
    }

    /// What is missing before this line, if anything is.
    pub(crate) fn gap(&self) -> Option<String> {
        match self.what {
            What::Gap { missed } => Some(gap(missed)),
            What::Device { .. }
            | What::Alarm { .. }
            | What::Command { .. }
            | What::Host { .. }
            | What::Synced
            | What::Unknown => None,
        }
    }

    /// The line for people.
    pub(crate) fn text(&self) -> String {
        let time = self.time.as_deref();
        let time = time.unwrap_or(if self.snapshot { "as it is" } else { "" });
        clean(format!("{time:24}  {}", self.words).trim_end())
    }

    /// The same for a place where the day is known.
    pub(crate) fn brief(&self) -> String {
        let time = self.time.as_deref().and_then(|time| time.get(11..19));
        clean(&format!("{:8}  {}", time.unwrap_or_default(), self.words))
    }
}

/// What a gap means, in words.
fn gap(missed: Option<u64>) -> String {
    let missed = missed.map_or_else(|| "some".to_owned(), |missed| missed.to_string());
    format!("{missed} events are missing; the fleet as it is follows")
}

fn device_words(device: &pb::Device, transition: Option<&pb::DeviceTransition>) -> String {
    let name = label(device);
    let mut words = match transition {
        Some(pb::DeviceTransition {
            from, to, reason, ..
        }) => format!(
            "device     {name}  {} -> {}  {reason}",
            words::device_state(*from),
            words::device_state(*to)
        ),
        None => format!(
            "device     {name}  {}  {}",
            words::device_state(device.state),
            device.state_reason
        ),
    };
    let remarks = remarks(device).join(", ");
    if !remarks.is_empty() {
        words = format!("{words}  [{remarks}]");
    }
    let detail = transition.and_then(|transition| transition.detail.as_ref());
    match detail {
        Some(detail) => format!("{words}  {detail}"),
        None => words,
    }
}

fn alarm_words(alarm: &pb::AlarmChanged) -> String {
    let pb::Alarm { code, message, .. } = alarm.alarm.clone().unwrap_or_default();
    let device = &alarm.device;
    if alarm.ended {
        format!("alarm      {device}  {code} has ended")
    } else {
        format!("alarm      {device}  {code}: {message}")
    }
}

fn alarm_what(alarm: &pb::AlarmChanged) -> What {
    What::Alarm {
        udid: alarm.device.clone(),
        alarm: alarm.alarm.clone().map(AlarmView::from),
        ended: alarm.ended,
    }
}

fn command(fate: pb::CommandFate) -> (What, String) {
    let kind = words::kind(fate.kind);
    let effect = words::effect(fate.effect);
    let word = words::fate(fate.fate);
    let revised = if fate.revised { " after all" } else { "" };
    let words = format!(
        "command    {}  {}  {kind}  {word}{revised}, effect {effect}  {}",
        fate.device,
        fate.command_id,
        fate.reason.as_deref().unwrap_or_default()
    );
    let what = What::Command {
        command_id: fate.command_id,
        udid: fate.device,
        kind,
        fate: word,
        effect,
        reason: fate.reason,
        revised: fate.revised,
    };
    (what, words.trim_end().to_owned())
}

fn host_what(host: pb::MuxHost) -> What {
    What::Host {
        host: HostView {
            name: host.name,
            address: host.address,
            connected: host.connected,
            generation: host.generation,
            last_error: host.last_error,
            device_count: host.device_count,
            ignored_entries: host.ignored_entries,
        },
    }
}

fn host_words(host: &pb::MuxHost) -> String {
    format!(
        "host       {}  {}  {}",
        host.name,
        host.address,
        host_state(host)
    )
}

/// How a host fares, in words.
pub(crate) fn host_state(host: &pb::MuxHost) -> String {
    if host.connected {
        format!("connected, {} by cable", host.device_count)
    } else {
        let why = host.last_error.as_deref();
        format!("not connected: {}", why.unwrap_or("no reason given"))
    }
}

/// A summary of phones: how many in which state, in the order of the states'
/// numbers, and of how many that is only what was last known.
pub(crate) fn census<'a>(devices: impl Iterator<Item = &'a pb::Device>) -> String {
    let mut counts = BTreeMap::<i32, usize>::new();
    let (mut total, mut stale) = (0_usize, 0_usize);
    for device in devices {
        *counts.entry(device.state).or_default() += 1;
        total += 1;
        stale += usize::from(device.stale);
    }
    let counts: Vec<_> = counts
        .into_iter()
        .map(|(state, count)| format!("{count} {}", words::device_state(state)))
        .collect();
    let noun = if total == 1 { "phone" } else { "phones" };
    let stale = match stale {
        0 => String::new(),
        stale => format!("; {stale} of them stale"),
    };
    match counts.as_slice() {
        [] => "no phones".to_owned(),
        counts => format!("{total} {noun}: {}{stale}", counts.join(", ")),
    }
}
