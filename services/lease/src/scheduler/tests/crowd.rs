//! A thousand phones and five hundred that wait.

use super::support::*;
use crate::*;

#[test]
fn a_crowd_is_served_in_order_once_the_phones_are_there() {
    let mut desk = Desk::new(0);
    let racks = ["a", "b", "c", "d"];
    let rack = |number: u64| racks[usize::try_from(number % 4).unwrap()];
    let views = |service| {
        let numbers = 1..=1000;
        let views = numbers.map(|number| view(number, rack(number), service));
        Input::Devices(views.collect())
    };
    assert_eq!(desk.told(views(Service::Detached)), "");
    for number in 0..500 {
        // Of each rack at most as many as there are.
        let count = 1 + u32::try_from(number % 2).unwrap();
        let wants = of_rack(rack(number), count);
        let made = desk.ask(wish(&format!("w{number:03}"), wants));
        assert_eq!(made, format!("w{number:03} Created"));
    }
    let acts = desk.try_step(views(Service::InService)).unwrap();
    let closed = acts.iter().map(|act| match act {
        Act::Close(_, lease) => lease.to_string(),
        Act::Changed(..) | Act::Open(..) | Act::Free(_) => panic!("{act:?}"),
    });
    let expected = (0..500).flat_map(|number| {
        let count = usize::try_from(1 + number % 2).unwrap();
        std::iter::repeat_n(format!("w{number:03}"), count)
    });
    assert_eq!(closed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    desk.all_idle();
    assert_eq!(desk.queue(), "");
    // The others are free, and some are too few.
    assert_eq!(desk.ask(wish("more", some(251))), "more Created");
    assert_eq!(desk.explain("more").devices.len(), 1000);
    let free = desk.explain("more").to_string();
    assert_eq!(free, "1000 match, 251 wanted: 250 free, 750 leased");
}
