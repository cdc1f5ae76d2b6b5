//! The table as a function of events.

use proptest::prelude::*;

use super::*;

const ALICE: &str = "00008110-000978540290401E";
const BOB: &str = "00008020-00060D691AD8003A";

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
    let mut inventory = Inventory::new(0);
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
            (known.usb, known.network),
            (Link::Absent, Link::Here(MuxDeviceId(2)))
        );
        assert!(!known.by_cable() && !known.is_stale());

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
    let inventory = after(&[usb(1, ALICE), usb(1, BOB)]);
    assert_eq!(routed(&inventory, ALICE), None);
    assert_eq!(routed(&inventory, BOB), Some(1));
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

/// Whether a phone is known, and if so whether that is stale.
fn stale(inventory: &Inventory, serial: &str) -> Option<bool> {
    inventory.get(&udid(serial)).map(Known::is_stale)
}

#[tokio::test]
async fn a_lost_connection_keeps_the_phones_and_routes_none() {
    let mut inventory = after(&[usb(1, ALICE), network(2, BOB)]);
    inventory.settle();
    inventory.lose("gone".to_owned());
    for (serial, by_cable) in [(ALICE, true), (BOB, false)] {
        assert_eq!(routed(&inventory, serial), None);
        assert_eq!(stale(&inventory, serial), Some(true));
        assert_eq!(inventory.get(&udid(serial)).unwrap().by_cable(), by_cable);
    }
    assert_eq!(inventory.last_error.as_deref(), Some("gone"));
    inventory.lose("still gone".to_owned());
    assert_eq!(stale(&inventory, ALICE), Some(true));
}

#[tokio::test]
async fn a_new_generation_drops_what_it_has_not_announced_when_it_settles() {
    let mut inventory = after(&[usb(1, ALICE), usb(2, BOB), network(3, BOB)]);
    inventory.settle();
    inventory.lose("gone".to_owned());
    inventory.begin();
    assert_eq!((inventory.generation, &inventory.last_error), (2, &None));
    // A number of the old generation means nothing in the new one.
    inventory.apply(&Event::Detached(MuxDeviceId(1)));
    assert_eq!(stale(&inventory, ALICE), Some(true));

    inventory.apply(&network(1, BOB));
    assert_eq!(
        stale(&inventory, BOB),
        Some(true),
        "it may still be on a cable"
    );
    inventory.apply(&usb(2, BOB));
    assert_eq!(
        (stale(&inventory, BOB), routed(&inventory, BOB)),
        (Some(false), Some(2))
    );
    assert_eq!(stale(&inventory, ALICE), Some(true));

    inventory.settle();
    assert_eq!(stale(&inventory, ALICE), None);
    assert_eq!(routed(&inventory, BOB), Some(2));
    assert_eq!(inventory.get(&udid(BOB)).unwrap().generation, 2);
}

#[tokio::test]
async fn a_generation_that_ends_before_it_settles_has_dropped_nobody() {
    let mut inventory = after(&[usb(1, ALICE), usb(2, BOB)]);
    for _ in 0..3 {
        inventory.lose("gone".to_owned());
        inventory.begin();
        inventory.apply(&usb(1, BOB));
    }
    assert_eq!(
        (stale(&inventory, ALICE), stale(&inventory, BOB)),
        (Some(true), Some(false))
    );
    assert_eq!(inventory.get(&udid(ALICE)).unwrap().generation, 1);
}

#[tokio::test]
async fn trust_is_counted_for_the_phone_that_the_number_means() {
    let mut inventory = after(&[usb(1, ALICE), usb(2, BOB)]);
    let paired = |inventory: &Inventory, serial| inventory.get(&udid(serial)).unwrap().paired;
    assert_eq!(paired(&inventory, ALICE), 0);
    let mut before = 0;
    for number in [1, 9, 1] {
        inventory.apply(&Event::Paired(MuxDeviceId(number)));
        let now = paired(&inventory, ALICE);
        assert_eq!(now != before, number == 1, "{now} after {before}");
        before = now;
    }
    assert_eq!(paired(&inventory, BOB), 0);
}

#[tokio::test]
async fn a_phone_that_turned_up_elsewhere_is_only_dropped_if_it_is_merely_remembered() {
    let mut inventory = after(&[usb(1, ALICE), usb(2, BOB), network(3, BOB)]);
    inventory.supersede(&udid(ALICE));
    assert_eq!(routed(&inventory, ALICE), Some(1));
    inventory.lose("gone".to_owned());
    inventory.begin();
    inventory.apply(&network(3, BOB));
    for serial in [ALICE, BOB] {
        inventory.supersede(&udid(serial));
    }
    assert_eq!(stale(&inventory, ALICE), None);
    let bob = inventory.get(&udid(BOB)).unwrap();
    assert!(!bob.by_cable() && !bob.is_stale());
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
async fn only_a_route_of_this_generation_can_be_denied() {
    let mut inventory = after(&[usb(1, ALICE)]);
    let old = inventory.route(&udid(ALICE)).unwrap();
    inventory.begin();
    inventory.apply(&usb(1, ALICE));
    assert!(!inventory.deny(old));
    let new = inventory.route(&udid(ALICE)).unwrap();
    assert_ne!(old, new);
    assert!(inventory.deny(new));
    assert!(!inventory.deny(new), "that is no news");
    assert_eq!(routed(&inventory, ALICE), None);
}

#[tokio::test]
async fn a_denied_number_leaves_its_phone_known_until_usbmuxd_says_more() {
    let denied = || {
        let mut inventory = after(&[usb(1, ALICE), network(2, ALICE)]);
        let route = inventory.route(&udid(ALICE)).unwrap();
        inventory.deny(route);
        inventory.settle();
        assert_eq!(
            (stale(&inventory, ALICE), routed(&inventory, ALICE)),
            (Some(true), None)
        );
        inventory
    };
    let mut again = denied();
    again.apply(&usb(1, ALICE));
    assert_eq!(routed(&again, ALICE), Some(1));
    let mut detached = denied();
    detached.apply(&Event::Detached(MuxDeviceId(1)));
    assert!(!detached.get(&udid(ALICE)).unwrap().by_cable());
    let mut lost = denied();
    lost.lose("gone".to_owned());
    assert_eq!(stale(&lost, ALICE), Some(true));
}

const PHONES: [&str; 3] = [ALICE, BOB, "abcdef0123456789abcdef0123456789abcdef01"];

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
        let numbers: BTreeMap<_, _> = inventory
            .devices
            .iter()
            .flat_map(|(udid, known)| {
                [known.usb, known.network].map(|link| link.number().map(|it| (it, udid)))
            })
            .flatten()
            .collect();
        let index: BTreeMap<_, _> = inventory.numbers.iter().map(|(at, udid)| (*at, udid)).collect();
        prop_assert_eq!(numbers, index, "one number, one phone");
    }
}
