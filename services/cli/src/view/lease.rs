//! What a gateway says of leases.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::lease::Wants;
use serde::Serialize;

use crate::output::{clean, columns, pairs, sparse_columns};
use crate::view::device::labels;
use crate::{when, words};

#[cfg(test)]
mod tests;

/// A lease as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LeaseView {
    lease_id: String,
    state: String,
    owner: String,
    /// `None` before the grant.
    epoch: Option<u64>,
    devices: Vec<String>,
    wants: WantsView,
    priority: i32,
    ttl_ms: Option<f64>,
    max_duration_ms: Option<f64>,
    queue_timeout_ms: Option<f64>,
    begin_time: Option<String>,
    labels: BTreeMap<String, String>,
    context: BTreeMap<String, String>,
    create_time: Option<String>,
    grant_time: Option<String>,
    end_time: Option<String>,
    expire_time: Option<String>,
    remaining_ms: Option<f64>,
    end_reason: Option<String>,
    end_detail: Option<String>,
    ended_by: Option<String>,
    queue_position: Option<u32>,
}

/// What it wants.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct WantsView {
    /// These very phones.
    devices: Vec<String>,
    /// Or so many
    count: Option<u32>,
    /// of those with these labels,
    labels: BTreeMap<String, String>,
    /// of this model,
    model: Option<String>,
    /// with this iOS,
    os_version: Option<String>,
    /// on this host.
    host: Option<String>,
}

impl From<pb::Lease> for LeaseView {
    fn from(lease: pb::Lease) -> Self {
        Self {
            state: words::lease_state(lease.state),
            lease_id: lease.id,
            owner: lease.owner,
            epoch: (lease.epoch > 0).then_some(lease.epoch),
            devices: lease.devices,
            wants: lease.wants.map(WantsView::from).unwrap_or_default(),
            priority: lease.priority,
            ttl_ms: lease.ttl.and_then(when::millis),
            max_duration_ms: lease.max_duration.and_then(when::millis),
            queue_timeout_ms: lease.queue_timeout.and_then(when::millis),
            begin_time: lease.begin_time.and_then(when::stamp),
            labels: lease.labels.into_iter().collect(),
            context: lease.context.into_iter().collect(),
            create_time: lease.create_time.and_then(when::stamp),
            grant_time: lease.grant_time.and_then(when::stamp),
            end_time: lease.end_time.and_then(when::stamp),
            expire_time: lease.expire_time.and_then(when::stamp),
            remaining_ms: lease.remaining.and_then(when::millis),
            end_reason: lease.end_reason,
            end_detail: lease.end_detail,
            ended_by: lease.ended_by,
            queue_position: lease.queue_position,
        }
    }
}

impl From<Wants> for WantsView {
    fn from(wants: Wants) -> Self {
        match wants {
            Wants::DeviceList(list) => Self {
                devices: list.devices,
                ..Self::default()
            },
            Wants::DeviceMatch(wanted) => {
                let selector = wanted.selector.unwrap_or_default();
                Self {
                    devices: Vec::new(),
                    count: Some(wanted.count.max(1)),
                    labels: selector.labels.into_iter().collect(),
                    model: selector.model,
                    os_version: selector.os_version,
                    host: selector.host,
                }
            }
        }
    }
}

/// One lease over several lines.
pub(crate) fn text(lease: &pb::Lease) -> String {
    let map = |map: &HashMap<String, String>| Some(labels(map)).filter(|text| !text.is_empty());
    let number = |number: u64| (number > 0).then(|| number.to_string());
    let devices = (!lease.devices.is_empty()).then(|| lease.devices.join(", "));
    let left = lease.remaining.and_then(when::whole);
    let position = lease.queue_position.map(|position| position.to_string());
    let ends = lease.expire_time.and_then(when::stamp);
    format!(
        "{}\n{}",
        clean(&lease.id),
        pairs(
            2,
            [
                ("state", Some(words::lease_state(lease.state))),
                ("owner", Some(lease.owner.clone())),
                ("epoch", number(lease.epoch)),
                ("phones", devices),
                ("wants", lease.wants.as_ref().map(wants)),
                ("place in line", position),
                (
                    "priority",
                    (lease.priority != 0).then(|| lease.priority.to_string())
                ),
                ("left", left),
                ("ends", ends),
                ("ttl", lease.ttl.and_then(when::whole)),
                ("at most", lease.max_duration.and_then(when::whole)),
                ("waits at most", lease.queue_timeout.and_then(when::whole)),
                ("begins", lease.begin_time.and_then(when::stamp)),
                ("labels", map(&lease.labels)),
                ("context", map(&lease.context)),
                ("created", lease.create_time.and_then(when::stamp)),
                ("granted", lease.grant_time.and_then(when::stamp)),
                ("ended", lease.end_time.and_then(when::stamp)),
                ("why", why(lease)),
            ],
        )
    )
}

/// Why it ended, in a few words; `None` if it has not.
pub(crate) fn why(lease: &pb::Lease) -> Option<String> {
    let reason = lease.end_reason.as_ref()?;
    // That it was its owner goes without saying.
    let by = lease.ended_by.as_ref().filter(|by| **by != lease.owner);
    let by = by.map(|by| format!(" by {by}"));
    let detail = lease
        .end_detail
        .as_ref()
        .map(|detail| format!(": {detail}"));
    Some(format!(
        "{reason}{}{}",
        by.unwrap_or_default(),
        detail.unwrap_or_default()
    ))
}

/// What it wants, in a few words.
pub(crate) fn wants(wants: &Wants) -> String {
    match wants {
        Wants::DeviceList(list) => list.devices.join(", "),
        Wants::DeviceMatch(wanted) => {
            let selector = wanted.selector.clone().unwrap_or_default();
            let named = |name: &str, value: &Option<String>| {
                value.as_ref().map(|value| format!("{name} {value}"))
            };
            let conditions = [
                Some(labels(&selector.labels)).filter(|labels| !labels.is_empty()),
                named("model", &selector.model),
                named("iOS", &selector.os_version),
                named("host", &selector.host),
            ];
            let conditions: Vec<_> = conditions.into_iter().flatten().collect();
            let count = wanted.count.max(1);
            if conditions.is_empty() {
                format!("any {count}")
            } else {
                format!("{count} of {}", conditions.join(", "))
            }
        }
    }
}

/// Leases, one a line.
pub(crate) fn table(leases: &[pb::Lease], now: SystemTime) -> String {
    if leases.is_empty() {
        return "no leases\n".to_owned();
    }
    let rows = leases.iter().map(|lease| {
        let age = lease.create_time.and_then(|time| when::age(time, now));
        let place = lease.queue_position;
        [
            lease.id.clone(),
            words::lease_state(lease.state),
            lease.owner.clone(),
            if lease.devices.is_empty() {
                lease.wants.as_ref().map(wants).unwrap_or_default()
            } else {
                lease.devices.join(", ")
            },
            lease.remaining.and_then(when::whole).unwrap_or_default(),
            place.map(|place| place.to_string()).unwrap_or_default(),
            if lease.priority == 0 {
                String::new()
            } else {
                lease.priority.to_string()
            },
            age.unwrap_or_default(),
            why(lease).unwrap_or_default(),
        ]
    });
    let headers = [
        "LEASE", "STATE", "OWNER", "PHONES", "LEFT", "PLACE", "PRIORITY", "AGE", "WHY",
    ];
    sparse_columns(headers, rows)
}

/// Why a lease waits, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ExplainedView {
    lease: Option<LeaseView>,
    summary: String,
    wanted: u32,
    devices: Vec<ObstacleView>,
    leases_ahead: Vec<String>,
}

/// What is in the way of one phone.
#[derive(Debug, Serialize)]
struct ObstacleView {
    device: String,
    obstacle: String,
    lease_id: Option<String>,
    until: Option<String>,
}

impl From<pb::ExplainLeaseResponse> for ExplainedView {
    fn from(reply: pb::ExplainLeaseResponse) -> Self {
        let devices = reply.devices.into_iter().map(|device| ObstacleView {
            device: device.device,
            obstacle: words::obstacle(device.obstacle),
            lease_id: device.lease_id,
            until: device.until.and_then(when::stamp),
        });
        Self {
            devices: devices.collect(),
            lease: reply.lease.map(LeaseView::from),
            summary: reply.summary,
            wanted: reply.wanted,
            leases_ahead: reply.leases_ahead,
        }
    }
}

impl ExplainedView {
    /// All of it over several lines.
    pub(crate) fn text(&self) -> String {
        let state = self.lease.as_ref().map(|lease| {
            let place = lease
                .queue_position
                .map(|place| format!(", place {place} in line"));
            format!("{}{}", lease.state, place.unwrap_or_default())
        });
        let ahead = (!self.leases_ahead.is_empty()).then(|| self.leases_ahead.join(", "));
        let facts = pairs(
            2,
            [
                ("state", state),
                ("in short", Some(self.summary.clone())),
                ("ahead", ahead),
            ],
        );
        let rows = self.devices.iter().map(|device| {
            [
                device.device.clone(),
                device.obstacle.clone(),
                device.lease_id.clone().unwrap_or_else(|| "-".to_owned()),
                device.until.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        });
        let id = self
            .lease
            .as_ref()
            .map_or("", |lease| lease.lease_id.as_str());
        if self.devices.is_empty() {
            return format!("{}\n{facts}", clean(id));
        }
        let table = columns(["PHONE", "OBSTACLE", "LEASE", "UNTIL"], rows);
        format!("{}\n{facts}\n{table}", clean(id))
    }
}

/// One word on a lease that is watched, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct WatchedView {
    change: String,
    lease: Option<LeaseView>,
    #[serde(skip)]
    text: String,
}

impl From<pb::WatchLeaseResponse> for WatchedView {
    fn from(message: pb::WatchLeaseResponse) -> Self {
        let change = words::lease_change(message.change);
        let text = message.lease.as_ref().map(brief).unwrap_or_default();
        Self {
            text: clean(&format!("{change}: {text}")),
            change,
            lease: message.lease.map(LeaseView::from),
        }
    }
}

impl WatchedView {
    /// The word on one line.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// How a lease is, on one line.
pub(crate) fn brief(lease: &pb::Lease) -> String {
    let parts = [
        Some(words::lease_state(lease.state)),
        lease
            .queue_position
            .map(|place| format!("place {place} in line")),
        (lease.epoch > 0).then(|| format!("epoch {}", lease.epoch)),
        (!lease.devices.is_empty()).then(|| lease.devices.join(" ")),
        lease
            .remaining
            .and_then(when::whole)
            .map(|left| format!("{left} left")),
        why(lease),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
