//! Why a lease waits.

use super::support::*;
use crate::*;

fn obstacles(explanation: &Explanation) -> Vec<(u64, Obstacle)> {
    let devices = explanation.devices.iter();
    let devices = devices.map(|device| (number(&device.udid), device.obstacle.clone()));
    devices.collect()
}

fn leased(lease: &str, until: u64) -> Obstacle {
    Obstacle::Leased {
        lease: id(lease),
        until: Some(at(until)),
    }
}

fn reserved(lease: &str) -> Obstacle {
    Obstacle::Reserved { lease: id(lease) }
}

#[test]
fn every_phone_that_matches_is_explained() {
    let mut desk = Desk::new(8);
    for (number, service) in [
        (3, Service::Detached),
        (4, Service::Quarantined),
        (5, Service::Cordoned),
        (6, Service::NotReady),
    ] {
        desk.see(number, service);
    }
    desk.hold(wish("holder", these(&[1])));
    desk.hold(wish("drains", these(&[2])));
    desk.release("drains");
    desk.ask(wish("kept", these(&[7])));
    desk.ask(wish("a", some(2)));
    let drains = Obstacle::Leased {
        lease: id("drains"),
        until: None,
    };
    let explanation = desk.explain("a");
    assert_eq!(
        obstacles(&explanation),
        [
            (1, leased("holder", 600)),
            (2, drains),
            (3, Obstacle::Detached),
            (4, Obstacle::Quarantined),
            (5, Obstacle::Cordoned),
            (6, Obstacle::NotReady),
            (7, reserved("kept")),
            (8, Obstacle::None),
        ]
    );
    assert_eq!(explanation.wanted, 2);
    assert_eq!(explanation.ahead, [id("kept")]);
    assert_eq!(
        explanation.to_string(),
        "8 match, 2 wanted: 1 free, 2 leased, 1 kept for others, 1 unplugged, 1 quarantined, \
         1 cordoned, 1 not ready"
    );
}

#[test]
fn what_one_before_it_keeps_back_is_kept_for_that_one() {
    let mut desk = Desk::new(2);
    desk.hold(wish("holder", these(&[1])));
    desk.ask(wish("pair", some(2)));
    desk.ask(wish("single", some(1)));
    assert_eq!(
        obstacles(&desk.explain("pair")),
        [(1, leased("holder", 600)), (2, Obstacle::None)]
    );
    assert_eq!(
        obstacles(&desk.explain("single")),
        [(1, leased("holder", 600)), (2, reserved("pair"))]
    );
    assert_eq!(desk.explain("single").ahead, [id("pair")]);
}

#[test]
fn a_lease_that_waits_for_commands_to_end_is_told_so() {
    let mut desk = Desk::new(2);
    desk.ask(wish("a", some(2)));
    desk.idle(2);
    let explanation = desk.explain("a");
    assert_eq!(
        obstacles(&explanation),
        [(1, Obstacle::Busy), (2, Obstacle::None)]
    );
    assert_eq!(
        explanation.to_string(),
        "2 match, 2 wanted: 1 free, 1 kept for it and busy"
    );
}

#[test]
fn a_lease_that_is_granted_or_scheduled_is_told_so() {
    let mut desk = Desk::new(1);
    desk.hold(wish("a", some(1)));
    assert_eq!(desk.explain("a").to_string(), "granted");
    desk.ask(later(10, wish("later", some(1))));
    assert_eq!(
        desk.explain("later").to_string(),
        "its time has not come: 1 matches, 1 wanted: 1 leased"
    );
    assert_eq!(desk.scheduler.explain(&id("nobody"), desk.now), None);
}

#[test]
fn a_lease_whose_phones_do_not_match_any_more_is_told_how_many_do() {
    let mut desk = Desk::new(1);
    desk.hold(wish("holder", some(1)));
    desk.ask(wish("a", of_rack("a", 1)));
    let moved = vec![view(1, "b", Service::InService)];
    desk.told(Input::Devices(moved));
    assert_eq!(desk.explain("a").to_string(), "0 match, 1 wanted");
}
