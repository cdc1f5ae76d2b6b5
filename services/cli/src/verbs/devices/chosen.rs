//! The phones that a watch is about, and the lines that it prints of them.

use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_proto::v1::{Device, MuxHost, WatchFleetResponse};

use crate::labels::Selector;
use crate::mirror::Mirror;
use crate::view::fleet::FleetLine;

/// Part of a fleet.
#[derive(Debug)]
pub(super) struct Chosen {
    selector: Selector,
    fleet: Mirror,
}

impl Chosen {
    /// Those that are selected, once the stream tells of them.
    pub(super) fn new(selector: Selector) -> Self {
        Self {
            selector,
            fleet: Mirror::default(),
        }
    }

    /// The phones in the order of their UDIDs.
    pub(super) fn devices(&self) -> impl Iterator<Item = &Device> {
        self.fleet
            .devices()
            .filter(|device| self.selector.matches(device))
    }

    /// All hosts.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &MuxHost> {
        self.fleet.hosts()
    }

    /// Whether these are the phones as they were at the last message.
    pub(super) fn is_synced(&self) -> bool {
        self.fleet.is_synced()
    }

    /// Takes a message in and gives the lines that it is worth. A phone that
    /// loses its labels is told of a last time.
    pub(super) fn take(&mut self, message: WatchFleetResponse) -> Vec<FleetLine> {
        let was = subject(&message).is_some_and(|udid| self.has(udid));
        self.fleet.take(&message);
        FleetLine::all(message, &|udid| was || self.has(udid))
    }

    fn has(&self, udid: &str) -> bool {
        self.selector.is_everything()
            || self
                .fleet
                .device(udid)
                .is_some_and(|device| self.selector.matches(device))
    }
}

/// The phone that has changed.
fn subject(message: &WatchFleetResponse) -> Option<&str> {
    let Some(Item::Event(event)) = &message.item else {
        return None;
    };
    match event.event.as_ref()? {
        Event::DeviceChanged(changed) => Some(&changed.device.as_ref()?.udid),
        Event::Alarm(_) | Event::Command(_) | Event::HostChanged(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::{CommandFate, DeviceChanged, FleetEvent, FleetSnapshot};

    use super::*;

    fn message(item: Item) -> WatchFleetResponse {
        WatchFleetResponse {
            cursor: "c".to_owned(),
            item: Some(item),
        }
    }

    fn event(event: Event) -> WatchFleetResponse {
        message(Item::Event(FleetEvent {
            event: Some(event),
            ..FleetEvent::default()
        }))
    }

    fn phone(udid: &str, pool: &str) -> Device {
        Device {
            udid: udid.to_owned(),
            labels: [("pool".to_owned(), pool.to_owned())].into(),
            ..Device::default()
        }
    }

    fn changed(udid: &str, pool: &str) -> WatchFleetResponse {
        event(Event::DeviceChanged(DeviceChanged {
            device: Some(phone(udid, pool)),
            transition: None,
        }))
    }

    fn command(udid: &str) -> WatchFleetResponse {
        event(Event::Command(CommandFate {
            device: udid.to_owned(),
            ..CommandFate::default()
        }))
    }

    #[test]
    fn only_what_concerns_the_selected_phones_is_told() {
        let mut chosen = Chosen::new(Selector::new(vec!["pool=ci".parse().unwrap()]));
        let snapshot = FleetSnapshot {
            devices: vec![phone("a", "ci"), phone("b", "lab")],
            mux_hosts: Vec::new(),
        };
        assert_eq!(chosen.take(message(Item::Snapshot(snapshot))).len(), 1);
        assert_eq!(chosen.take(changed("b", "lab")).len(), 0);
        assert_eq!(chosen.take(command("a")).len(), 1);
        assert_eq!(chosen.take(command("b")).len(), 0);
        assert_eq!(chosen.devices().count(), 1);
    }

    #[test]
    fn a_phone_that_is_selected_no_more_is_told_of_a_last_time() {
        let mut chosen = Chosen::new(Selector::new(vec!["pool=ci".parse().unwrap()]));
        chosen.take(changed("a", "ci"));
        assert_eq!(chosen.take(changed("a", "lab")).len(), 1);
        assert_eq!(chosen.take(changed("a", "lab")).len(), 0);
        assert_eq!(chosen.devices().count(), 0);
    }
}
