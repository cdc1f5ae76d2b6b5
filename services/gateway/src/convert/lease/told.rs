//! How leases are told, and why they wait.

use std::time::SystemTime;

use fleetgate_lease::{Begin, End, Lease, LeaseId, LeaseState, LeaseTime, Obstacle, Wants};
use fleetgate_proto::v1 as pb;

use crate::convert::time::{duration, timestamp};
use crate::leases::{Explained, LeaseClock, LeaseView};

/// A lease as the API tells it, by a clock that runs.
pub(crate) fn lease(view: &LeaseView, clock: LeaseClock) -> pb::Lease {
    let LeaseView { lease, position } = view;
    let terms = lease.terms();
    let end = lease.end();
    let deadline = lease.deadline();
    let udids = lease.devices().iter().map(ToString::to_string);
    pb::Lease {
        id: lease.id().to_string(),
        state: state(lease.state()).into(),
        owner: lease.owner().to_owned(),
        epoch: lease.epoch().map_or(0, fleetgate_lease::Epoch::get),
        devices: udids.collect(),
        wants: Some(wants(lease.wants())),
        priority: lease.priority().0,
        ttl: Some(duration(terms.ttl)),
        max_duration: Some(duration(terms.max_duration)),
        queue_timeout: Some(duration(terms.queue_timeout)),
        begin_time: lease.begin().map(|Begin { time, .. }| timestamp(time)),
        labels: lease.labels().clone().into_iter().collect(),
        context: lease.context().clone().into_iter().collect(),
        create_time: Some(timestamp(lease.created())),
        grant_time: lease.granted().map(|(_, time)| timestamp(time)),
        end_time: end.map(|End { time, .. }| timestamp(*time)),
        expire_time: deadline.map(|deadline| timestamp(clock.wall(deadline))),
        end_reason: end.map(|end| end.reason.to_string()),
        end_detail: end.and_then(|end| end.detail.clone()),
        ended_by: end.and_then(|end| end.by.clone()),
        queue_position: position.and_then(|position| u32::try_from(position).ok()),
        remaining: deadline.map(|deadline| duration(clock.until(deadline))),
    }
}

fn wants(wants: &Wants) -> pb::lease::Wants {
    match wants {
        Wants::Devices(devices) => pb::lease::Wants::DeviceList(pb::DeviceList {
            devices: devices.iter().map(ToString::to_string).collect(),
        }),
        Wants::Matching { selector, count } => pb::lease::Wants::DeviceMatch(pb::DeviceMatch {
            selector: Some(pb::DeviceSelector {
                labels: selector.labels.clone().into_iter().collect(),
                model: selector.model.clone(),
                os_version: selector.os_version.clone(),
                host: selector.host.clone(),
            }),
            count: count.get(),
        }),
    }
}

/// The lease that has a phone, as is told with the phone.
pub(crate) fn device_lease(lease: &Lease, clock: LeaseClock) -> pb::DeviceLease {
    pb::DeviceLease {
        lease_id: lease.id().to_string(),
        owner: lease.owner().to_owned(),
        epoch: lease.epoch().map_or(0, fleetgate_lease::Epoch::get),
        until: lease.deadline().map(|end| timestamp(clock.wall(end))),
    }
}

/// Why a lease waits, as the API tells it.
pub(crate) fn explanation(explained: &Explained, clock: LeaseClock) -> pb::ExplainLeaseResponse {
    let Explained { view, why } = explained;
    let told = |at: LeaseTime| timestamp(clock.wall(at));
    let device = |of: &fleetgate_lease::DeviceExplanation| {
        let (obstacle, lease_id, until) = obstacle(&of.obstacle);
        pb::DeviceExplanation {
            device: of.udid.to_string(),
            obstacle: obstacle.into(),
            lease_id: lease_id.map(ToString::to_string),
            until: until.map(told),
        }
    };
    pb::ExplainLeaseResponse {
        lease: Some(lease(view, clock)),
        summary: why.summary(|at| in_words(clock.wall(at))),
        wanted: u32::try_from(why.wanted).unwrap_or(u32::MAX),
        devices: why.devices.iter().map(device).collect(),
        leases_ahead: why.ahead.iter().map(ToString::to_string).collect(),
    }
}

/// A time of the day, to the second.
fn in_words(moment: SystemTime) -> String {
    let told = timestamp(moment).to_string();
    let time = told.split_once('T').map_or(told.as_str(), |(_, time)| time);
    let seconds = time.split_once('.').map_or(time, |(seconds, _)| seconds);
    format!("{}Z", seconds.trim_end_matches('Z'))
}

fn obstacle(obstacle: &Obstacle) -> (pb::DeviceObstacle, Option<&LeaseId>, Option<LeaseTime>) {
    match obstacle {
        Obstacle::None => (pb::DeviceObstacle::None, None, None),
        Obstacle::Leased { lease, until } => (pb::DeviceObstacle::Leased, Some(lease), *until),
        Obstacle::Busy => (pb::DeviceObstacle::Busy, None, None),
        Obstacle::Reserved { lease } => (pb::DeviceObstacle::Reserved, Some(lease), None),
        Obstacle::Detached => (pb::DeviceObstacle::Detached, None, None),
        Obstacle::Quarantined => (pb::DeviceObstacle::Quarantined, None, None),
        Obstacle::Cordoned => (pb::DeviceObstacle::Cordoned, None, None),
        Obstacle::NotReady => (pb::DeviceObstacle::NotReady, None, None),
    }
}

fn state(state: LeaseState) -> pb::LeaseState {
    match state {
        LeaseState::Scheduled => pb::LeaseState::Scheduled,
        LeaseState::Queued => pb::LeaseState::Queued,
        LeaseState::Active => pb::LeaseState::Active,
        LeaseState::Draining => pb::LeaseState::Draining,
        LeaseState::Released => pb::LeaseState::Released,
        LeaseState::Expired => pb::LeaseState::Expired,
        LeaseState::Revoked => pb::LeaseState::Revoked,
        LeaseState::Cancelled => pb::LeaseState::Cancelled,
        LeaseState::Unsatisfiable => pb::LeaseState::Unsatisfiable,
    }
}
