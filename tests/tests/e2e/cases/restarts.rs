//! Case 2: usbmuxd ends in the middle of a packet, is gone for a while, and
//! gives the numbers of its phones to others when it is back; or it is there and
//! says no.

use std::time::Duration;

use fleetgate_proto::v1::{DeviceState, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Asked, Ids, Odd, Oddity, Stray};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, history, pause, plain, plain_lab, refused, soon};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Code;

use super::{PLUGGED, READY, all_ready, lands, listed, mux_host, ready, seldom_asked};

/// How long usbmuxd stays away: a few of the gateway's tries to find it.
const AWAY: Duration = Duration::from_millis(900);

/// Asserts that all phones are known and stand in the state in which they were
/// last seen; whether they are there is not known.
async fn all_known(rig: &Rig) {
    for device in listed(rig).await {
        assert_eq!(device.state(), DeviceState::Ready, "{device:?}");
    }
    assert_eq!(listed(rig).await.len(), rig.lab.phones().len());
}

fn all_stale(seen: &Seen) -> bool {
    seen.devices.values().all(|device| device.stale)
}

/// Asserts that a phone was ready all the time, however often its host was lost
/// and found, and that it was found in the end.
async fn stayed_ready(rig: &Rig, udid: &str) {
    let told = history::of(rig.channel(), udid, 4).await;
    assert_eq!(told[..2], [PLUGGED, READY]);
    for (n, entry) in told[2..].iter().enumerate() {
        let expected = ["READY HOST_LOST READY", "READY HOST_BACK READY"][n % 2];
        assert_eq!(entry, expected, "{told:?}");
    }
    assert_eq!(told.len() % 2, 0, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn phones_outlast_a_usbmuxd_that_ends_in_mid_word_and_none_is_taken_for_another() {
    let rig = seldom_asked(Reach::Unix, plain_lab(2, 0.02)).await;
    let phones = [rig.phone(0), rig.phone(1)];
    let mut mirror = ready(&rig).await;
    for (phone, id) in phones.iter().zip(["before-0", "before-1"]) {
        lands(&rig, phone, id).await;
    }
    let before = mux_host(&rig).await;

    // Seven bytes of an event, then the end; and then not even a socket.
    rig.lab
        .oddity(Oddity::from(Odd::Cut { bytes: 7 }).on(Asked::Event));
    rig.lab.stray(Stray::default());
    soon("the end", async {
        loop {
            let now = mux_host(&rig).await;
            if !now.connected || now.generation > before.generation {
                return;
            }
            pause().await;
        }
    })
    .await;
    rig.lab.stop_usbmuxd();
    mirror.until("word of that", all_stale).await;
    let gone = Instant::now();
    let mut tried = 0;
    while gone.elapsed() < AWAY {
        all_known(&rig).await;
        for (n, phone) in phones.iter().enumerate() {
            let id = format!("away-{n}-{tried}");
            let udid = phone.udid().to_string();
            let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, &id).await);
            assert_eq!(
                (refusal.code, &*refusal.reason),
                (Code::Unavailable, "MUX_UNAVAILABLE")
            );
            assert_eq!(refusal.meta("fate"), "NOT_SENT");
            assert_eq!(rig.concluded(&id).await.fate(), Fate::NotSent);
        }
        tried += 1;
    }
    // Whoever comes now is told what was known last.
    let mut late = Mirror::follow(rig.channel()).await;
    let seen = late.until("the fleet", |seen| seen.synced == 1).await;
    assert!(seen.devices.len() == 2 && all_stale(&seen), "{seen:?}");
    assert_eq!(seen.hosts["local"].device_count, 2);

    rig.lab.start_usbmuxd(Ids::Reused);
    all_ready(&rig, &mut mirror).await;
    for (phone, id) in phones.iter().zip(["back-0", "back-1"]) {
        lands(&rig, phone, id).await;
        assert_eq!(phone.effects().len(), 2, "nothing else came to it");
        stayed_ready(&rig, phone.udid().as_str()).await;
        history::assert_was_told(rig.channel(), phone.udid().as_str(), &mirror.seen()).await;
    }
    assert!(mux_host(&rig).await.generation > before.generation);
    rig.stop().await;
}

/// usbmuxd comes up anew and answers every Listen with this number.
async fn refused_with(number: u32) {
    let rig = seldom_asked(Reach::Unix, plain_lab(3, 0.02)).await;
    let mut mirror = ready(&rig).await;
    let refusal = Oddity::from(Odd::Result { number }).on(Asked::Listen);
    rig.lab.oddity(refusal.times(u32::MAX));
    rig.lab.start_usbmuxd(Ids::Fresh);
    let said = format!("result {number} ");
    soon("the refusal", async {
        loop {
            // At every moment, and not only in the end.
            all_known(&rig).await;
            let host = mux_host(&rig).await;
            if host.last_error.is_some_and(|error| error.contains(&said)) {
                assert!(!host.connected);
                assert_eq!(host.device_count, 3);
                return;
            }
            pause().await;
        }
    })
    .await;
    mirror.until("word of that", all_stale).await;
    all_known(&rig).await;

    rig.lab.clear_oddities();
    all_ready(&rig, &mut mirror).await;
    for n in 0..3 {
        lands(&rig, &rig.phone(n), &format!("back-{n}")).await;
        stayed_ready(&rig, &rig.udid(n)).await;
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_usbmuxd_that_refuses_to_tell_of_its_phones_does_not_empty_the_fleet() {
    let mut all = JoinSet::new();
    for number in [1, 6, 99] {
        all.spawn(refused_with(number));
    }
    all.join_all().await;
}
