//! The table, without a daemon in front of it.

use super::*;

fn udid(n: u8) -> Udid {
    format!("00008110-00000000000000{n:02}").parse().unwrap()
}

fn numbers(mux: &Mux) -> Vec<(u32, Udid)> {
    mux.look(|table| {
        table
            .attached
            .iter()
            .map(|(device, one)| (device.0, one.udid.clone()))
            .collect()
    })
}

fn two_phones() -> Mux {
    let mux = Mux::new();
    for n in [1, 2] {
        mux.attach(&udid(n), udid(n).as_str(), Transport::Usb);
    }
    mux
}

#[test]
fn a_replug_gives_a_new_number_and_cancels_the_old_attachment() {
    let mux = two_phones();
    let old = mux.look(|table| table.attachments()[&MuxDeviceId(1)].unplugged.clone());
    mux.replug(&udid(1));
    assert_eq!(numbers(&mux), [(2, udid(2)), (3, udid(1))]);
    assert!(old.is_cancelled());
}

#[test]
fn a_restart_can_give_an_old_number_to_another_phone() {
    let mux = two_phones();
    let old = mux.look(|table| table.gone.clone());
    mux.start(Ids::Reused);
    assert_eq!(numbers(&mux), [(1, udid(2)), (2, udid(1))]);
    assert!(old.is_cancelled());
    mux.start(Ids::Fresh);
    assert_eq!(numbers(&mux), [(3, udid(1)), (4, udid(2))]);
}

#[test]
fn what_is_plugged_in_while_the_daemon_is_down_is_seen_when_it_starts() {
    let mux = two_phones();
    mux.stop();
    mux.detach(&udid(1), Transport::Usb);
    mux.attach(&udid(2), udid(2).as_str(), Transport::Network);
    assert_eq!(numbers(&mux), []);
    mux.start(Ids::Fresh);
    assert_eq!(numbers(&mux), [(3, udid(2)), (4, udid(2))]);
    assert_eq!(mux.plugged(&udid(2)), [Transport::Usb, Transport::Network]);
}

#[test]
fn a_phone_hangs_on_a_transport_once() {
    let mux = two_phones();
    mux.attach(&udid(1), udid(1).as_str(), Transport::Usb);
    assert_eq!(numbers(&mux).len(), 2);
}

#[test]
fn a_daemon_that_is_down_cannot_stall() {
    let mux = two_phones();
    mux.stop();
    mux.stall(true);
    assert_eq!(mux.look(|table| table.daemon), Daemon::Down);
}
