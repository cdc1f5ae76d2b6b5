//! The fleet as a watcher knows it: what the stream has told, put together.
//!
//! Invariant: while it is not synced, it is not the fleet of any moment.

use std::collections::BTreeMap;

use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_proto::v1::{Device, FleetSnapshot, MuxHost, WatchFleetResponse};

/// A fleet.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    devices: BTreeMap<String, Device>,
    /// By address.
    hosts: BTreeMap<String, MuxHost>,
    synced: bool,
}

impl Mirror {
    /// The phones in the order of their UDIDs.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.devices.values()
    }

    /// One phone.
    pub(crate) fn device(&self, udid: &str) -> Option<&Device> {
        self.devices.get(udid)
    }

    /// The hosts in the order of their addresses.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = &MuxHost> {
        self.hosts.values()
    }

    /// Whether this is the fleet as it was at the last message.
    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    /// Takes a message in.
    pub(crate) fn take(&mut self, message: &WatchFleetResponse) {
        match &message.item {
            Some(Item::Snapshot(FleetSnapshot { devices, mux_hosts })) => {
                for device in devices {
                    self.devices.insert(device.udid.clone(), device.clone());
                }
                for host in mux_hosts {
                    self.hosts.insert(host.address.clone(), host.clone());
                }
            }
            Some(Item::Synced(_)) => self.synced = true,
            Some(Item::Gap(_)) => *self = Self::default(),
            Some(Item::Event(event)) => self.happened(event.event.as_ref()),
            Some(Item::Heartbeat(_)) | None => {}
        }
    }

    fn happened(&mut self, event: Option<&Event>) {
        match event {
            Some(Event::DeviceChanged(changed)) => {
                if let Some(device) = &changed.device {
                    self.devices.insert(device.udid.clone(), device.clone());
                }
            }
            Some(Event::HostChanged(host)) => {
                self.hosts.insert(host.address.clone(), host.clone());
            }
            // A change of the phone comes besides.
            Some(Event::Alarm(_) | Event::Command(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::{
        DeviceChanged, DeviceState, FleetEvent, FleetGap, FleetSynced, Heartbeat,
    };

    use super::*;

    fn message(item: Item) -> WatchFleetResponse {
        WatchFleetResponse {
            cursor: String::new(),
            item: Some(item),
        }
    }

    fn phone(udid: &str, state: DeviceState) -> Device {
        Device {
            udid: udid.to_owned(),
            state: state.into(),
            ..Device::default()
        }
    }

    fn snapshot(devices: Vec<Device>) -> WatchFleetResponse {
        message(Item::Snapshot(FleetSnapshot {
            devices,
            mux_hosts: vec![MuxHost::default()],
        }))
    }

    #[test]
    fn a_snapshot_in_parts_and_what_happened_since_make_the_fleet() {
        let mut mirror = Mirror::default();
        mirror.take(&snapshot(vec![phone("b", DeviceState::Ready)]));
        mirror.take(&snapshot(vec![phone("a", DeviceState::Ready)]));
        assert!(!mirror.is_synced());
        mirror.take(&message(Item::Synced(FleetSynced {})));
        let changed = DeviceChanged {
            device: Some(phone("b", DeviceState::Wedged)),
            transition: None,
        };
        let event = FleetEvent {
            event: Some(Event::DeviceChanged(changed)),
            ..FleetEvent::default()
        };
        mirror.take(&message(Item::Event(event)));
        mirror.take(&message(Item::Heartbeat(Heartbeat::default())));
        let states: Vec<_> = mirror
            .devices()
            .map(|device| (device.udid.as_str(), device.state()))
            .collect();
        assert_eq!(
            states,
            [("a", DeviceState::Ready), ("b", DeviceState::Wedged)]
        );
        assert_eq!(mirror.hosts().count(), 1);
        assert!(mirror.is_synced());
    }

    #[test]
    fn after_a_gap_nothing_that_was_known_counts() {
        let mut mirror = Mirror::default();
        mirror.take(&snapshot(vec![phone("gone", DeviceState::Ready)]));
        mirror.take(&message(Item::Synced(FleetSynced {})));
        mirror.take(&message(Item::Gap(FleetGap::default())));
        assert!(!mirror.is_synced());
        mirror.take(&snapshot(vec![phone("new", DeviceState::Ready)]));
        mirror.take(&message(Item::Synced(FleetSynced {})));
        assert!(mirror.device("gone").is_none() && mirror.device("new").is_some());
    }
}
