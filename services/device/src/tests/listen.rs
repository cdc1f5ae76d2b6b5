//! The listening connection: what it makes of a stream, and how it comes back.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_usbmux::{Event, MuxDeviceId, Reply, Request};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::daemon::{
    ALICE, BOB, Daemon, Lab, Peer, detached, encoded, host, network, udid, until, until_gone, usb,
};
use crate::inventory::Link;
use crate::{Dialer, Hosts, HostsTask};

/// A daemon that nobody has served yet.
fn unserved() -> (Hosts, HostsTask, Daemon) {
    let (dialer, daemon) = Daemon::new();
    let (hosts, task) = Hosts::spawn(vec![host("local", dialer)]);
    (hosts, task, daemon)
}

fn many(count: u32) -> Vec<Event> {
    (1..=count)
        .map(|number| usb(number, &format!("00008110-{number:016X}")))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_listen_result_and_500_phones_in_one_write_are_one_change() {
    let (hosts, _task, mut daemon) = unserved();
    let mut view = hosts.view();
    let mut peer = daemon.accept().await;
    assert_eq!(peer.request().await, Request::Listen);
    let phones = many(500);
    let mut burst = Reply::Result(0.into()).encode(peer.tag).unwrap().to_vec();
    burst.extend(encoded(&phones));
    let ((), changed) = tokio::join!(peer.raw(&burst), view.changed());
    changed.unwrap();
    let view = view.borrow();
    assert_eq!((view.devices.len(), view.hosts[0].generation), (500, 1));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_phones_announced_one_by_one_are_a_handful_of_views() {
    let mut lab = Lab::with(&[]).await;
    let mut view = lab.hosts.view();
    let announce = async {
        for phone in many(1000) {
            lab.listener.events(&[phone]).await;
            tokio::task::yield_now().await;
        }
    };
    let count = async {
        let mut views = 0;
        while view.borrow_and_update().devices.len() < 1000 {
            view.changed().await.unwrap();
            views += 1;
        }
        views
    };
    let ((), views) = tokio::join!(announce, count);
    assert!(views < 10, "{views} views");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_drips_is_read_like_any_other() {
    let mut lab = Lab::with(&[]).await;
    for byte in encoded(&[usb(1, ALICE), network(2, ALICE)]) {
        lab.listener.raw(&[byte]).await;
        sleep(Duration::from_millis(10)).await;
    }
    let device = udid(ALICE);
    until(&lab.hosts, |view| view.is_reachable(&device)).await;
    let known = lab.known(ALICE).unwrap();
    assert_eq!(known.usb, Link::Here(MuxDeviceId(1)));
    assert_eq!(known.network, Link::Here(MuxDeviceId(2)));
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
    let view = until(&lab.hosts, |view| view.devices.len() == 1).await;
    assert_eq!((view.hosts[0].generation, view.hosts[0].ignored), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_packet_begins_a_generation_in_which_numbers_are_new() {
    let mut lab = Lab::with(&[usb(1, ALICE), usb(2, BOB)]).await;
    let half = &encoded(&[detached(2)])[..30];
    lab.listener.raw(half).await;
    lab.listener.hang_up().await;
    let lost = until(&lab.hosts, |view| !view.hosts[0].connected).await;
    let why = lost.hosts[0].last_error.as_deref().unwrap();
    assert!(why.contains("in the middle of a packet"), "{why}");
    for serial in [ALICE, BOB] {
        let presence = lost.devices[&udid(serial)];
        assert!(presence.stale && presence.by_cable, "still shown");
        assert_eq!(presence.number, None, "but not routed");
    }

    lab.listener = lab.daemon.listening(&[usb(1, BOB)]).await;
    let back = until(&lab.hosts, |view| view.hosts[0].connected).await;
    let host = &back.hosts[0];
    assert_eq!(
        (host.generation, &host.last_error, host.settled),
        (2, &None, false)
    );
    let bob = back.devices[&udid(BOB)];
    assert_eq!(
        (bob.number, bob.generation, bob.stale),
        (Some(MuxDeviceId(1)), 2, false)
    );
    let alice = back.devices[&udid(ALICE)];
    assert_eq!(
        (alice.number, alice.generation, alice.stale),
        (None, 1, true)
    );

    let settled = until_gone(&lab.hosts, ALICE).await;
    assert!(settled.hosts[0].settled);
    assert_eq!(settled.devices.keys().collect::<Vec<_>>(), [&udid(BOB)]);
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
        let view = until(&lab.hosts, |view| {
            view.hosts[0].connected && view.hosts[0].generation == generation
        });
        assert_eq!(view.await.devices.len(), 1);
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
    let back = until_gone(&lab.hosts, ALICE).await;
    assert_eq!(back.devices.keys().collect::<Vec<_>>(), [&udid(BOB)]);
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_accepts_and_hangs_up_is_not_hammered() {
    let (_hosts, _task, mut daemon) = unserved();
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
    let (hosts, _task, mut daemon) = unserved();
    let mut silent = daemon.accept().await;
    assert_eq!(silent.request().await, Request::Listen);
    assert!(silent.hung_up().await.is_empty());
    let lost = until(&hosts, |view| view.hosts[0].last_error.is_some()).await;
    assert_eq!(
        lost.hosts[0].last_error.as_deref(),
        Some("usbmuxd did not answer in time")
    );
    daemon.listening(&[]).await;
}

/// Ends the listening connection, or the next try to make one, in some way.
type End = fn(&mut Peer) -> BoxFuture<'_, ()>;

#[tokio::test(start_paused = true)]
async fn no_answer_of_a_daemon_and_no_end_of_its_turns_into_an_empty_fleet() {
    let ends: [(&str, End); 5] = [
        ("result 6", |peer| Box::pin(peer.result(6))),
        ("result 1", |peer| Box::pin(peer.result(1))),
        ("closed the connection", |peer| Box::pin(peer.hang_up())),
        ("over the limit", |peer| {
            Box::pin(peer.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n\0\0\0"))
        }),
        ("another question", |peer| {
            let buid = Reply::Buid("buid".to_owned()).encode(peer.tag).unwrap();
            Box::pin(async move { peer.raw(&buid).await })
        }),
    ];
    let mut lab = Lab::with(&[usb(1, ALICE), usb(2, BOB)]).await;
    lab.hosts.settled().await;
    lab.listener.hang_up().await;
    for (complaint, end) in ends {
        let mut peer = lab.daemon.accept().await;
        assert_eq!(peer.request().await, Request::Listen);
        end(&mut peer).await;
        let view = until(&lab.hosts, |view| {
            let error = view.hosts[0].last_error.as_deref();
            error.is_some_and(|error| error.contains(complaint))
        });
        let view = view.await;
        assert!(!view.hosts[0].connected && view.hosts[0].device_count == 2);
        assert_eq!(view.devices.len(), 2);
        assert!(view.devices.values().all(|presence| presence.stale));
    }
    let _listener = lab.daemon.listening(&[usb(1, ALICE), usb(2, BOB)]).await;
    until(&lab.hosts, |view| {
        view.devices.values().all(|presence| !presence.stale)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_phone_is_not_dropped_while_a_daemon_still_announces_others() {
    let mut lab = Lab::with(&many(20)).await;
    lab.hosts.settled().await;
    lab.listener.hang_up().await;
    let mut views = lab.hosts.view();
    lab.listener = lab.daemon.listening(&[]).await;
    let began = Instant::now();
    let announce = async {
        for phone in many(20) {
            sleep(Duration::from_millis(200)).await;
            lab.listener.events(&[phone]).await;
        }
    };
    let whole = async {
        loop {
            views.changed().await.unwrap();
            let view = views.borrow_and_update();
            assert_eq!(view.devices.len(), 20, "after {:?}", began.elapsed());
            if view.hosts[0].settled {
                break;
            }
        }
    };
    tokio::join!(announce, whole);
    assert!(
        began.elapsed() > Duration::from_secs(4),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_never_stops_announcing_settles_all_the_same() {
    let mut lab = Lab::with(&[usb(1, ALICE), usb(2, BOB)]).await;
    lab.hosts.settled().await;
    lab.listener.hang_up().await;
    lab.listener = lab.daemon.listening(&[]).await;
    let began = Instant::now();
    let announce = async {
        loop {
            lab.listener.events(&[usb(1, BOB)]).await;
            sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = announce => unreachable!("it never stops"),
        _ = until_gone(&lab.hosts, ALICE) => {}
    }
    assert!(
        began.elapsed() < Duration::from_secs(6),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn stopping_closes_the_connection_and_takes_every_phone_out_of_routing() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    lab.task.shutdown().await;
    assert!(lab.listener.hung_up().await.is_empty());
    let view = Arc::clone(&lab.hosts.view().borrow());
    assert!(view.devices[&udid(ALICE)].stale);
    let error = lab.hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
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
    let (hosts, _task) = Hosts::spawn(vec![host("local", panicking)]);
    let mut listener = daemon.listening(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    until(&hosts, |view| view.is_reachable(&device)).await;
    listener.hang_up().await;
    let stopped = until(&hosts, |view| {
        view.hosts[0].last_error.as_deref() == Some("the work with this usbmuxd was stopped")
    });
    assert!(stopped.await.devices[&device].stale);
}
