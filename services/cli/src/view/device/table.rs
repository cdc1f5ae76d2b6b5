//! Phones as a table, one a line. It fits 120 columns where names and labels
//! are of the usual length, and leaves out columns in which no phone has
//! anything.

use std::collections::HashMap;
use std::time::SystemTime;

use fleetgate_proto::v1::{Device, DeviceState};
use unicode_width::UnicodeWidthStr;

use crate::output::{cut, sparse_columns};
use crate::{when, words};

/// The widest that a name is shown.
const NAME: usize = 16;
/// The widest that labels are shown.
const LABELS: usize = 24;

const HEADERS: [&str; 9] = [
    "UDID", "ALIAS", "STATE", "REASON", "FOR", "HOST", "MODEL", "LABELS", "REMARKS",
];

/// Columns that can be done without, the first to go first.
const SPARE: [usize; 6] = [7, 6, 5, 4, 3, 1];

/// Phones under headers; ages are counted up to `now`.
pub(crate) fn table(devices: &[&Device], now: SystemTime) -> String {
    table_within(devices, now, usize::MAX)
}

/// The same in so many columns of a terminal, if leaving out what can be done
/// without is enough for that.
pub(crate) fn table_within(devices: &[&Device], now: SystemTime, room: usize) -> String {
    if devices.is_empty() {
        return "no devices\n".to_owned();
    }
    let mut rows: Vec<_> = devices.iter().map(|device| row(device, now)).collect();
    let mut text = sparse_columns(HEADERS, rows.iter().cloned());
    for spare in SPARE {
        if text.lines().all(|line| line.width() <= room) {
            break;
        }
        for row in &mut rows {
            row[spare].clear();
        }
        text = sparse_columns(HEADERS, rows.iter().cloned());
    }
    text
}

fn row(device: &Device, now: SystemTime) -> [String; 9] {
    let name = |name: &Option<String>| cut(name.as_deref().unwrap_or_default(), NAME);
    let model = [&device.model, &device.os_version];
    let model: Vec<_> = model.into_iter().flatten().map(String::as_str).collect();
    [
        device.udid.clone(),
        name(&device.alias),
        words::device_state(device.state),
        device.state_reason.clone(),
        device
            .state_time
            .and_then(|time| when::age(time, now))
            .unwrap_or_default(),
        name(&device.host),
        cut(&model.join(" "), NAME),
        cut(&labels(&device.labels), LABELS),
        remarks(device).join(", "),
    ]
}

/// Labels in the order of their keys.
pub(crate) fn labels(labels: &HashMap<String, String>) -> String {
    let mut labels: Vec<_> = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    labels.sort();
    labels.join(",")
}

/// What there is to know beyond its state, in a few words each.
pub(crate) fn remarks(device: &Device) -> Vec<String> {
    let flags = [
        (device.cordon.is_some(), "cordoned"),
        (device.stale, "stale"),
        (device.trusted == Some(false), "untrusted"),
        (device.command_in_flight.is_some(), "at work"),
    ];
    let mut remarks: Vec<_> = flags
        .into_iter()
        .filter(|(set, _)| *set)
        .map(|(_, flag)| flag.to_owned())
        .collect();
    remarks.extend(
        device
            .lease
            .as_ref()
            .map(|lease| format!("leased by {}", lease.owner)),
    );
    if device.queued_commands > 0 {
        remarks.push(format!("{} queued", device.queued_commands));
    }
    remarks.extend(device.alarms.iter().map(|alarm| alarm.code.clone()));
    remarks
}

/// How people know it: its alias, if it has one, and its UDID.
pub(crate) fn label(device: &Device) -> String {
    match &device.alias {
        Some(alias) => format!("{alias} ({})", device.udid),
        None => device.udid.clone(),
    }
}

/// Whether a person would want to see it before others.
pub(crate) fn needs_attention(device: &Device) -> bool {
    device.state() != DeviceState::Ready
        || device.stale
        || device.cordon.is_some()
        || device.trusted == Some(false)
        || !device.alarms.is_empty()
}
