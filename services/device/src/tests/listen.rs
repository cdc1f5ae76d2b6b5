//! The listening connection: what it makes of a stream, and how it comes back.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_usbmux::{Event, MuxDeviceId, Reply, Request};
use tokio::time::{Instant, sleep};

use super::daemon::{ALICE, BOB, Daemon, Lab, detached, encoded, network, udid, usb};
use crate::{Dialer, Inventory, Usbmuxd, UsbmuxdConfig};

fn many(count: u32) -> Vec<Event> {
    (1..=count)
        .map(|number| usb(number, &format!("00008110-{number:016X}")))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_listen_result_and_500_phones_in_one_write_are_one_change() {
    let (dialer, mut daemon) = Daemon::new();
    let (usbmuxd, _task) = Usbmuxd::spawn(dialer, UsbmuxdConfig::default());
    let mut inventory = usbmuxd.inventory();
    let mut peer = daemon.accept().await;
    assert_eq!(peer.request().await, Request::Listen);
    let phones = many(500);
    let mut burst = Reply::Result(0.into()).encode(peer.tag).unwrap().to_vec();
    burst.extend(encoded(&phones));
    let ((), ()) = tokio::join!(peer.raw(&burst), async {
        inventory
            .wait_for(|inventory| inventory.devices.len() == 500)
            .await
            .unwrap();
    });
    assert_eq!(inventory.borrow().generation, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_drips_is_read_like_any_other() {
    let mut lab = Lab::with(&[]).await;
    for byte in encoded(&[usb(1, ALICE), network(2, ALICE)]) {
        lab.listener.raw(&[byte]).await;
        sleep(Duration::from_millis(10)).await;
    }
    let device = udid(ALICE);
    let inventory = lab
        .until(|inventory| inventory.devices.contains_key(&device))
        .await;
    assert_eq!(inventory.devices[&device].usb, Some(MuxDeviceId(1)));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_understood_is_ignored_and_the_rest_still_counts() {
    let mut lab = Lab::with(&[]).await;
    let no_plist = [20_u32, 1, 1, 0, 0].into_iter().flat_map(u32::to_le_bytes);
    let no_dictionary = [20_u32, 1, 8, 0, 0].into_iter().flat_map(u32::to_le_bytes);
    let mut stream: Vec<u8> = no_plist.chain(no_dictionary).collect();
    stream.extend(encoded(&[
        Event::Unknown {
            message_type: "Renamed".to_owned(),
        },
        Event::Paired(MuxDeviceId(4)),
        usb(1, ALICE),
    ]));
    lab.listener.raw(&stream).await;
    let inventory = lab.until(|inventory| inventory.devices.len() == 1).await;
    assert_eq!((inventory.generation, inventory.ignored), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_packet_begins_a_generation_in_which_numbers_are_new() {
    let mut lab = Lab::with(&[usb(1, ALICE), usb(2, BOB)]).await;
    let half = &encoded(&[detached(2)])[..30];
    lab.listener.raw(half).await;
    lab.listener.hang_up().await;
    let lost = lab.until(|inventory| !inventory.connected).await;
    assert!(
        lost.last_error
            .as_deref()
            .unwrap()
            .contains("in the middle of a packet")
    );
    assert_eq!(lost.devices.len(), 2, "they are still shown");
    assert_eq!(lost.route(&udid(ALICE)), None, "but not routed");

    lab.listener = lab.daemon.listening(&[usb(1, BOB)]).await;
    let back = lab.until(|inventory| inventory.connected).await;
    assert_eq!(back.generation, 2);
    assert_eq!(back.route(&udid(BOB)).unwrap().device, MuxDeviceId(1));
    assert!(!back.devices.contains_key(&udid(ALICE)));
}

#[tokio::test(start_paused = true)]
async fn illegal_lengths_end_the_connection_and_it_is_made_anew() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    for (round, length) in [0_u32, 15, u32::MAX].into_iter().enumerate() {
        let header: Vec<u8> = [length, 1, 8, 0]
            .into_iter()
            .flat_map(u32::to_le_bytes)
            .collect();
        lab.listener.raw(&header).await;
        assert!(lab.listener.hung_up().await.is_empty());
        lab.listener = lab.daemon.listening(&[usb(1, ALICE)]).await;
        let generation = 2 + round as u64;
        lab.until(|inventory| inventory.connected && inventory.generation == generation)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_is_gone_for_20_seconds_is_sought_at_a_growing_distance() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let before = lab.daemon.dials();
    lab.daemon.refuse(true);
    lab.listener.hang_up().await;
    sleep(Duration::from_secs(20)).await;
    let tries = lab.daemon.dials() - before;
    assert!((5..=16).contains(&tries), "{tries} tries in 20 s");

    lab.daemon.refuse(false);
    lab.listener = lab.daemon.listening(&[usb(1, BOB)]).await;
    let back = lab.until(|inventory| inventory.connected).await;
    assert_eq!(back.devices.keys().collect::<Vec<_>>(), [&udid(BOB)]);
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_accepts_and_hangs_up_is_not_hammered() {
    let (dialer, mut daemon) = Daemon::new();
    let (_usbmuxd, _task) = Usbmuxd::spawn(dialer, UsbmuxdConfig::default());
    let began = Instant::now();
    for _ in 0..8 {
        drop(daemon.listening(&[usb(1, ALICE)]).await);
    }
    daemon.accept().await;
    assert!(
        began.elapsed() > Duration::from_secs(9),
        "8 tries in {:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_never_answers_listen_is_given_up_and_tried_again() {
    let (dialer, mut daemon) = Daemon::new();
    let (usbmuxd, _task) = Usbmuxd::spawn(dialer, UsbmuxdConfig::default());
    let mut silent = daemon.accept().await;
    assert_eq!(silent.request().await, Request::Listen);
    assert!(silent.hung_up().await.is_empty());
    let mut inventory = usbmuxd.inventory();
    let lost = inventory
        .wait_for(|inventory| inventory.last_error.is_some())
        .await
        .unwrap();
    assert_eq!(
        lost.last_error.as_deref(),
        Some("usbmuxd did not answer in time")
    );
    drop(lost);
    daemon.listening(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_listen_is_reported_with_its_number() {
    let (dialer, mut daemon) = Daemon::new();
    let (usbmuxd, _task) = Usbmuxd::spawn(dialer, UsbmuxdConfig::default());
    let mut peer = daemon.accept().await;
    peer.request().await;
    peer.result(6).await;
    let mut inventory = usbmuxd.inventory();
    let lost = inventory
        .wait_for(|inventory| inventory.last_error.is_some())
        .await
        .unwrap();
    assert!(
        lost.last_error.as_deref().unwrap().contains("result 6"),
        "{lost:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn stopping_closes_the_connection_and_takes_every_phone_out_of_routing() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    lab.task.shutdown().await;
    assert!(lab.listener.hung_up().await.is_empty());
    assert_eq!(lab.usbmuxd.inventory().borrow().route(&udid(ALICE)), None);
    let error = lab.usbmuxd.connect(&udid(ALICE), 8100).await.unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_phone_is_not_routed_once_nobody_listens_any_more_even_after_a_panic() {
    let (dialer, mut daemon) = Daemon::new();
    let dials = std::sync::atomic::AtomicUsize::new(0);
    let panicking = Dialer::from_fn("panics", move || {
        let first = dials.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        let dialer = dialer.clone();
        Box::pin(async move {
            assert!(first, "the second dial panics");
            dialer.dial().await
        })
    });
    let (usbmuxd, _task) = Usbmuxd::spawn(panicking, UsbmuxdConfig::default());
    let mut listener = daemon.listening(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let mut inventory = usbmuxd.inventory();
    inventory
        .wait_for(|inventory| inventory.route(&device).is_some())
        .await
        .unwrap();
    listener.hang_up().await;
    let stopped = |inventory: &Arc<Inventory>| {
        inventory.last_error.as_deref() == Some("the work with this usbmuxd was stopped")
    };
    let stopped = inventory.wait_for(stopped).await.unwrap();
    assert_eq!(stopped.route(&device), None);
}
