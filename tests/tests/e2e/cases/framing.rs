//! Case 5: bytes of usbmuxd that are cut, glued, dripped, or no packets at all.
//!
//! What is legal is heard as if nothing were odd about it; what is not costs a
//! connection to usbmuxd, and no phone its state.

use std::time::Duration;

use fleetgate_proto::v1::DeviceState;
use fleetgate_simulator::{Asked, Ids, Lab, Odd, Oddity, Stray};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, pause, plain_lab, soon};
use tokio::task::JoinSet;

use super::{
    PLUGGED, READY, SELDOM, all_ready, assert_history, lands, mux_host, ready, seldom_asked,
};

const SCALE: f64 = 0.2;

/// An odd event, then two odd answers to whoever listens anew: the phones are
/// ready all the time and driven as before.
pub(super) async fn is_survived(event: Odd, answer: Odd) {
    let rig = seldom_asked(Reach::Unix, plain_lab(2, SCALE)).await;
    let mut mirror = ready(&rig).await;
    let before = mux_host(&rig).await;
    let twice = Oddity::from(answer.clone()).on(Asked::Listen).times(2);
    rig.lab.oddity(twice);
    rig.lab.oddity(Oddity::from(event.clone()).on(Asked::Event));
    rig.lab.stray(Stray::default());
    soon("another connection", async {
        loop {
            let now = mux_host(&rig).await;
            if now.connected && now.generation > before.generation {
                assert_eq!(now.generation, before.generation + 1, "{answer:?}");
                return;
            }
            pause().await;
        }
    })
    .await;
    all_ready(&rig, &mut mirror).await;
    let (lost, back) = ("READY HOST_LOST READY", "READY HOST_BACK READY");
    for n in 0..2 {
        lands(&rig, &rig.phone(n), &format!("after-{n}")).await;
        assert_history(&rig, &rig.udid(n), &[PLUGGED, READY, lost, back]).await;
    }
    rig.stop().await;
}

/// The same odd thing wherever usbmuxd speaks to the gateway: nobody notices.
pub(super) async fn is_as_good_as_any(odd: Odd, scale: f64, asked: &[Asked]) {
    let lab = Lab::start(plain_lab(2, scale));
    for asked in asked {
        lab.oddity(Oddity::from(odd.clone()).on(*asked));
    }
    let rig = Rig::before(lab, scale, Reach::Unix, |config| {
        config.health.probe_interval = SELDOM;
    })
    .await;
    let mut mirror = ready(&rig).await;
    // And once more, now that the phones are known.
    for asked in asked {
        rig.lab.oddity(Oddity::from(odd.clone()).on(*asked));
    }
    rig.phone(1).detach();
    mirror
        .until_state(&rig.udid(1), DeviceState::Detached)
        .await;
    rig.phone(1).attach();
    all_ready(&rig, &mut mirror).await;
    for n in 0..2 {
        lands(&rig, &rig.phone(n), &format!("tap-{n}")).await;
    }
    assert_history(&rig, &rig.udid(0), &[PLUGGED, READY]).await;
    let cable = "READY UNPLUGGED DETACHED";
    assert_history(&rig, &rig.udid(1), &[PLUGGED, READY, cable, PLUGGED, READY]).await;
    let host = mux_host(&rig).await;
    assert_eq!((host.generation, host.last_error), (1, None), "{odd:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packets_of_illegal_lengths_and_ends_in_mid_header_cost_no_phone_its_state() {
    let mut all = JoinSet::new();
    for length in [0, 15, u32::MAX] {
        let odd = Odd::Length { length };
        all.spawn(is_survived(odd.clone(), odd));
    }
    let cut = Odd::Cut { bytes: 4 };
    all.spawn(is_survived(cut.clone(), cut));
    all.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_byte_at_a_time_is_as_good_as_all_at_once() {
    // In real time, so that an answer of 300 bytes fits into every window.
    let every = Duration::from_millis(1);
    let asked = [Asked::Listen, Asked::Event, Asked::Connect];
    is_as_good_as_any(Odd::Trickle { every }, 1.0, &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_500_phones_is_one_fleet_in_many_writes_and_in_one() {
    const PHONES: usize = 500;
    let rig = seldom_asked(Reach::Unix, plain_lab(500, SCALE)).await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    let ready = |seen: &Seen| seen.count(DeviceState::Ready) == PHONES;
    mirror.until("500 phones", ready).await;
    let host = mux_host(&rig).await;
    assert_eq!((host.generation, host.device_count), (1, 500));

    rig.lab.stop_usbmuxd();
    let stale = |seen: &Seen| seen.devices.values().all(|device| device.stale);
    mirror.until("the end", stale).await;
    // Now all of them come in one write with the answer.
    rig.lab.oddity(Oddity::from(Odd::Glued).on(Asked::Listen));
    rig.lab.start_usbmuxd(Ids::Reused);
    let seen = mirror.until("500 phones again", ready).await;
    assert_eq!(seen.devices.len(), PHONES);
    let (lost, back) = ("READY HOST_LOST READY", "READY HOST_BACK READY");
    for n in [0, PHONES / 2, PHONES - 1] {
        lands(&rig, &rig.phone(n), &format!("tap-{n}")).await;
        assert_history(&rig, &rig.udid(n), &[PLUGGED, READY, lost, back]).await;
    }
    rig.stop().await;
}
