//! The merged table as a function of the tables.

use fleetgate_usbmux::{ConnectionType, Event, Phone};
use proptest::prelude::*;

use super::*;
use crate::inventory::Route;

const PHONES: [&str; 3] = [
    "00008110-000978540290401E",
    "00008020-00060D691AD8003A",
    "abcdef0123456789abcdef0123456789abcdef01",
];

/// Something that befalls one host.
#[derive(Debug, Clone)]
enum Stroke {
    Event(Event),
    Lost,
    Back,
    Settled,
    Denied(&'static str),
}

fn stroke() -> impl Strategy<Value = Stroke> {
    let number = 1..4_u32;
    let serial = prop::sample::select(&PHONES[..]);
    let attached = (number.clone(), serial.clone(), prop::bool::weighted(0.7)).prop_map(
        |(number, serial, by_cable)| {
            Event::Attached(Phone {
                device: MuxDeviceId(number),
                connection: if by_cable {
                    ConnectionType::Usb
                } else {
                    ConnectionType::Network
                },
                serial: serial.to_owned(),
                product: None,
                location: None,
                speed: None,
            })
        },
    );
    prop_oneof![
        6 => attached.prop_map(Stroke::Event),
        3 => number.prop_map(|number| Stroke::Event(Event::Detached(MuxDeviceId(number)))),
        1 => Just(Stroke::Lost),
        1 => Just(Stroke::Back),
        1 => Just(Stroke::Settled),
        1 => serial.prop_map(Stroke::Denied),
    ]
}

impl Stroke {
    /// Whether a host takes it as it is: a lost one hears nothing.
    fn befalls(self, inventory: &mut Inventory) {
        match self {
            Self::Lost => inventory.lose("lost".to_owned()),
            Self::Back => inventory.begin(),
            Self::Event(event) if inventory.connected => inventory.apply(&event),
            Self::Settled if inventory.connected => inventory.settle(),
            Self::Denied(serial) if inventory.connected => {
                if let Some(route) = inventory.route(&serial.parse().unwrap()) {
                    inventory.deny(route);
                }
            }
            Self::Event(_) | Self::Settled | Self::Denied(_) => {}
        }
    }
}

fn merged(inventories: &[Inventory]) -> (BTreeMap<Udid, Presence>, Vec<(usize, Udid)>) {
    let mut merge = Merge::default();
    for inventory in inventories {
        merge.add(inventory);
    }
    merge.finish()
}

proptest! {
    #[test]
    fn a_phone_is_shown_where_it_would_be_reached_and_only_forgotten_where_it_is_not(
        strokes in prop::collection::vec((0..3_usize, stroke()), 0..60),
    ) {
        let mut inventories: Vec<_> = (0..3).map(Inventory::new).collect();
        for (host, stroke) in strokes {
            stroke.befalls(&mut inventories[host]);
            let (devices, moved) = merged(&inventories);
            let known: std::collections::BTreeSet<_> = inventories
                .iter()
                .flat_map(|inventory| inventory.devices().map(|(device, _)| device))
                .collect();
            prop_assert!(devices.keys().eq(known), "nobody is lost or made up");
            for (device, at) in &devices {
                let inventory = &inventories[at.host];
                let shown = at.number.map(|number| Route {
                    host: at.host,
                    device: number,
                    generation: at.generation,
                });
                prop_assert_eq!(shown, inventory.route(device), "as its host has it");
                prop_assert_eq!(shown.is_some(), at.by_cable && !at.stale);
                let routed = inventories.iter().any(|one| one.route(device).is_some());
                prop_assert_eq!(shown.is_some(), routed, "reached if by any");
                let latest = inventories
                    .iter()
                    .filter(|one| one.route(device).is_some())
                    .max_by_key(|one| one.get(device).unwrap().announced);
                prop_assert!(latest.is_none_or(|latest| latest.host == at.host));
                let by_cable = inventories
                    .iter()
                    .any(|one| one.get(device).is_some_and(Known::by_cable));
                prop_assert_eq!(at.by_cable, by_cable);
            }
            for (host, device) in moved {
                prop_assert!(devices[&device].number.is_some() && devices[&device].host != host);
                prop_assert_eq!(inventories[host].route(&device), None);
                inventories[host].supersede(&device);
            }
            prop_assert_eq!(merged(&inventories).0, devices, "forgetting changes nothing");
        }
    }
}
