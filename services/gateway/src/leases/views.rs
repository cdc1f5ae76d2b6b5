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
        pb::DeviceState::Ready => Service::InService,
        // What somebody sent before may still act on its screen.
        pb::DeviceState::Reconciling
        | pb::DeviceState::Unspecified
        | pb::DeviceState::Detached
        | pb::DeviceState::Attached
        | pb::DeviceState::Draining
        | pb::DeviceState::Wedged
        | pb::DeviceState::Launching
        | pb::DeviceState::Recycling
        | pb::DeviceState::Quarantined => Service::NotReady,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(state: pb::DeviceState) -> pb::Device {
        pb::Device {
            udid: "00008110-000978540290401E".to_owned(),
            state: state.into(),
            model: Some("iPhone14,5".to_owned()),
            labels: [("rack".to_owned(), "a".to_owned())].into(),
            ..pb::Device::default()
        }
    }

    fn service_of(device: &pb::Device) -> Service {
        view(device).unwrap().service
    }

    #[test]
    fn only_a_phone_that_is_ready_and_that_nobody_keeps_back_is_in_service() {
        use pb::DeviceState as State;
        for (state, expected) in [
            (State::Ready, Service::InService),
            (State::Reconciling, Service::NotReady),
            (State::Detached, Service::Detached),
            (State::Quarantined, Service::Quarantined),
            (State::Attached, Service::NotReady),
            (State::Launching, Service::NotReady),
            (State::Draining, Service::NotReady),
            (State::Wedged, Service::NotReady),
            (State::Recycling, Service::NotReady),
        ] {
            assert_eq!(service_of(&device(state)), expected, "{state:?}");
        }
        let stale = pb::Device {
            stale: true,
            ..device(State::Ready)
        };
        assert_eq!(service_of(&stale), Service::Detached);
        let cordoned = pb::Device {
            cordon: Some(pb::Cordon::default()),
            ..device(State::Ready)
        };
        assert_eq!(service_of(&cordoned), Service::Cordoned);
    }

    #[test]
    fn what_a_lease_asks_for_is_taken_over() {
        let seen = view(&device(pb::DeviceState::Ready)).unwrap();
        assert_eq!(seen.udid.as_str(), "00008110-000978540290401E");
        assert_eq!(seen.model.as_deref(), Some("iPhone14,5"));
        assert_eq!(seen.labels["rack"], "a");
        assert!(view(&pb::Device::default()).is_none());
    }
}
