//! Phones as leases see them.

use fleetgate_lease::{DeviceView, Service};
use fleetgate_proto::v1 as pb;

/// What counts of a phone; `None` for what is no phone of ours.
pub(crate) fn view(device: &pb::Device) -> Option<DeviceView> {
    Some(DeviceView {
        udid: device.udid.parse().ok()?,
        labels: device.labels.clone().into_iter().collect(),
        model: device.model.clone(),
        os_version: device.os_version.clone(),
        host: device.host.clone(),
        service: service(device),
    })
}

fn service(device: &pb::Device) -> Service {
    let state = device.state();
    if state == pb::DeviceState::Quarantined {
        return Service::Quarantined;
    }
    // Where nobody listens, nobody knows whether it is there.
    if state == pb::DeviceState::Detached || device.stale {
        return Service::Detached;
    }
    if device.cordon.is_some() {
        return Service::Cordoned;
    }
    match state {
        pb::DeviceState::Ready | pb::DeviceState::Reconciling => Service::InService,
        pb::DeviceState::Unspecified
        | pb::DeviceState::Detached
        | pb::DeviceState::Attached
        | pb::DeviceState::Draining
        | pb::DeviceState::Wedged
        | pb::DeviceState::Launching
        | pb::DeviceState::Recycling
        | pb::DeviceState::Quarantined => Service::NotReady,
    }
}
