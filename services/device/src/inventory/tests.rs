//! The table as a function of events.

use proptest::prelude::*;

use super::*;

const ALICE: &str = "00008110-000978540290401E";

fn udid(text: &str) -> Udid {
    text.parse().unwrap()
}

fn attached(number: u32, connection: ConnectionType, serial: &str) -> Event {
    Event::Attached(Phone {
        device: MuxDeviceId(number),
        connection,
        serial: serial.to_owned(),
        product: Some(4776),
        location: None,
        speed: None,
    })
}

fn usb(number: u32, serial: &str) -> Event {
    attached(number, ConnectionType::Usb, serial)
}

fn network(number: u32, serial: &str) -> Event {
    attached(number, ConnectionType::Network, serial)
}

fn after(events: &[Event]) -> Inventory {
    let mut inventory = Inventory::new();
    inventory.begin();
    for event in events {
        inventory.apply(event);
    }
    inventory
}

fn routed(inventory: &Inventory, serial: &str) -> Option<u32> {
    inventory.route(&udid(serial)).map(|route| route.device.0)
}

#[tokio::test]
async fn twins_are_one_phone_that_is_routed_by_cable_in_either_order() {
    for events in [
        [usb(1, ALICE), network(2, ALICE)],
        [network(2, ALICE), usb(1, ALICE)],
    ] {
        let mut inventory = after(&events);
        assert_eq!(inventory.devices.len(), 1);
        assert_eq!(routed(&inventory, ALICE), Some(1));

        inventory.apply(&Event::Detached(MuxDeviceId(1)));
        assert_eq!(routed(&inventory, ALICE), None, "never over Wi-Fi");
        let known = &inventory.devices[&udid(ALICE)];
        assert_eq!(
            *known,
            Attached {
                network: Some(MuxDeviceId(2)),
                ..Attached::default()
            }
        );

        inventory.apply(&Event::Detached(MuxDeviceId(2)));
        assert!(inventory.devices.is_empty());
    }
}

#[tokio::test]
async fn every_spelling_of_a_udid_is_the_same_phone() {
    let spelt = [
        ("0000802000060D691AD8003A", "00008020-00060d691ad8003a"),
        (
            "ABCDEF0123456789ABCDEF0123456789ABCDEF01",
            "abcdef0123456789abcdef0123456789abcdef01",
        ),
    ];
    for (one, other) in spelt {
        let inventory = after(&[usb(1, one), network(2, other)]);
        assert_eq!(inventory.devices.len(), 1);
        assert_eq!(routed(&inventory, other), Some(1));
    }
}

#[tokio::test]
async fn a_number_means_the_phone_that_it_was_last_given_to() {
    let bob = "00008020-00060D691AD8003A";
    let inventory = after(&[usb(1, ALICE), usb(1, bob)]);
    assert_eq!(routed(&inventory, ALICE), None);
    assert_eq!(routed(&inventory, bob), Some(1));
}

#[tokio::test]
async fn a_replugged_phone_is_routed_by_its_new_number_whatever_comes_first() {
    let detached = Event::Detached(MuxDeviceId(1));
    for events in [
        [usb(1, ALICE), detached.clone(), usb(5, ALICE)],
        [usb(1, ALICE), usb(5, ALICE), detached],
    ] {
        assert_eq!(routed(&after(&events), ALICE), Some(5));
    }
}

#[tokio::test]
async fn a_lost_connection_keeps_the_phones_and_routes_none() {
    let mut inventory = after(&[usb(1, ALICE)]);
    inventory.lose("gone".to_owned());
    assert_eq!(routed(&inventory, ALICE), None);
    assert!(inventory.devices.contains_key(&udid(ALICE)));
    assert_eq!(inventory.last_error.as_deref(), Some("gone"));

    inventory.begin();
    assert!(
        inventory.devices.is_empty(),
        "a new generation knows nothing of the old"
    );
    assert_eq!((inventory.generation, &inventory.last_error), (2, &None));
}

#[tokio::test]
async fn devices_that_are_no_phones_are_ignored_and_counted() {
    let inventory = after(&[
        usb(1, "not a udid"),
        attached(2, ConnectionType::Other("Bluetooth".to_owned()), ALICE),
        Event::Paired(MuxDeviceId(3)),
        Event::Unknown {
            message_type: "Renamed".to_owned(),
        },
        Event::Detached(MuxDeviceId(9)),
    ]);
    assert!(inventory.devices.is_empty());
    assert_eq!(inventory.ignored, 2);
}

#[tokio::test]
async fn only_a_route_of_this_generation_can_be_invalidated() {
    let mut inventory = after(&[usb(1, ALICE)]);
    let old = inventory.route(&udid(ALICE)).unwrap();
    inventory.begin();
    inventory.apply(&usb(1, ALICE));
    assert!(!inventory.invalidate(old));
    let new = inventory.route(&udid(ALICE)).unwrap();
    assert_ne!(old, new);
    assert!(inventory.invalidate(new));
    assert_eq!(routed(&inventory, ALICE), None);
}

const PHONES: [&str; 3] = [
    ALICE,
    "00008020-00060D691AD8003A",
    "abcdef0123456789abcdef0123456789abcdef01",
];

fn event() -> impl Strategy<Value = Event> {
    let number = 1..5_u32;
    let serial = prop::sample::select(&PHONES[..]);
    prop_oneof![
        (number.clone(), serial.clone()).prop_map(|(number, serial)| usb(number, serial)),
        (number.clone(), serial).prop_map(|(number, serial)| network(number, serial)),
        number.prop_map(|number| Event::Detached(MuxDeviceId(number))),
    ]
}

/// The number by which a phone is reached, read off the events alone: the one
/// that it was given last by cable, if nothing was said of that number since.
fn expected(events: &[Event], serial: &str) -> Option<u32> {
    let about = |event: &Event| match event {
        Event::Attached(phone) => Some(phone.device),
        Event::Detached(number) => Some(*number),
        Event::Paired(_) | Event::Unknown { .. } => None,
    };
    let given = events.iter().rposition(|event| {
        matches!(event, Event::Attached(phone)
            if phone.serial == serial && phone.connection == ConnectionType::Usb)
    })?;
    let number = about(&events[given])?;
    let void = events[given + 1..]
        .iter()
        .any(|event| about(event) == Some(number));
    (!void).then_some(number.0)
}

proptest! {
    #[test]
    fn a_phone_is_routed_by_the_last_number_that_it_has_by_cable(
        events in prop::collection::vec(event(), 0..40),
    ) {
        let inventory = after(&events);
        for serial in PHONES {
            prop_assert_eq!(routed(&inventory, serial), expected(&events, serial));
        }
        let numbers: Vec<_> = inventory
            .devices
            .values()
            .flat_map(|known| [known.usb, known.network])
            .flatten()
            .collect();
        let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
        prop_assert_eq!(distinct.len(), numbers.len(), "one number, one phone");
    }
}
