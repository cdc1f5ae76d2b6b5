//! Pipes to phones: by which number, and what usbmuxd's answers mean.

use std::time::Duration;

use fleetgate_runner::{Disposition, SendError};
use fleetgate_usbmux::{Client, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use super::daemon::{ALICE, BOB, Daemon, Lab, detached, host, network, udid, until, usb};
use crate::{HostConfig, Hosts, MuxError, UsbmuxdConfig};

/// The cause of a failure to connect.
fn cause(error: &SendError) -> &MuxError {
    let (SendError::Connect(cause) | SendError::Misunderstood(cause)) = error else {
        panic!("{error:?}")
    };
    cause.downcast_ref().unwrap()
}

#[tokio::test(start_paused = true)]
async fn every_result_of_a_connect_means_what_the_protocol_says() {
    let mut lab = Lab::with(&[usb(3, ALICE)]).await;
    for number in [1, 3, 4, 5, 6, 99, -1] {
        let device = udid(ALICE);
        let (outcome, ()) = tokio::join!(lab.hosts.connect(&device, 8100), async {
            lab.daemon.connecting(3, 8100).await.result(number).await;
        });
        let error = outcome.unwrap_err();
        assert_eq!(error.disposition(), Disposition::NotExecuted);
        let misunderstood = matches!(error, SendError::Misunderstood(_));
        assert_eq!(misunderstood, matches!(number, 1 | 6), "{error:?}");
        match number {
            3 | 4 => assert!(
                matches!(error, SendError::NotListening { port: Some(8100) }),
                "{error:?}"
            ),
            _ => assert!(
                matches!(cause(&error), MuxError::Refused { result } if result.number() == number),
                "{error:?}"
            ),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn answers_that_do_not_fit_are_errors() {
    let absent = b"<plist><dict><key>MessageType</key><string>Result</string></dict></plist>";
    let with_header = |tag: u32, payload: &[u8]| -> Vec<u8> {
        let length = u32::try_from(16 + payload.len()).unwrap();
        let header = [length, 1, 8, tag].into_iter().flat_map(u32::to_le_bytes);
        header.chain(payload.iter().copied()).collect()
    };
    let wrong_tag = Reply::Result(0.into()).encode(77).unwrap().to_vec();
    let not_a_result = Reply::Buid("buid".to_owned()).encode(1).unwrap().to_vec();
    let bad_frame = [15_u32, 1, 8, 1]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();
    let cases = [
        (with_header(1, absent), "the key `Number` is missing"),
        (with_header(1, b"garbage"), "unreadable property list"),
        (
            wrong_tag,
            "expected the answer to request 1, got that to 77",
        ),
        (not_a_result, "another question"),
        (bad_frame, "cannot hold its own header"),
    ];
    let mut lab = Lab::with(&[usb(3, ALICE)]).await;
    for (answer, complaint) in cases {
        let device = udid(ALICE);
        let (outcome, ()) = tokio::join!(lab.hosts.connect(&device, 8100), async {
            lab.daemon.connecting(3, 8100).await.raw(&answer).await;
        });
        let error = outcome.unwrap_err();
        assert!(cause(&error).to_string().contains(complaint), "{error}");
        assert_eq!(error.disposition(), Disposition::NotExecuted);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_glued_to_the_answer_are_the_first_of_the_pipe() {
    let mut lab = Lab::with(&[usb(3, ALICE)]).await;
    let device = udid(ALICE);
    let (pipe, mut peer) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        let mut peer = lab.daemon.connecting(3, 8100).await;
        let mut burst = Reply::Result(0.into()).encode(peer.tag).unwrap().to_vec();
        burst.extend(b"early, ");
        peer.raw(&burst).await;
        peer
    });
    peer.raw(b"late").await;
    drop(peer);
    let mut text = String::new();
    pipe.unwrap().read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "early, late");
}

#[tokio::test(start_paused = true)]
async fn twins_are_connected_to_by_cable_or_not_at_all() {
    let mut lab = Lab::with(&[network(2, ALICE), usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let (pipe, ()) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        lab.daemon.connecting(1, 8100).await.result(0).await;
    });
    pipe.unwrap();

    sleep(Duration::from_secs(1)).await;
    lab.listener.events(&[detached(1)]).await;
    until(&lab.hosts, |view| !view.devices[&device].by_cable).await;
    let dials = lab.daemon.dials();
    let error = lab.hosts.connect(&device, 8100).await.unwrap_err();
    assert!(matches!(error, SendError::NotAttached), "{error:?}");
    assert_eq!(lab.daemon.dials(), dials, "nothing was dialled");
}

#[tokio::test(start_paused = true)]
async fn a_route_is_not_confirmed_after_usbmuxds_end_although_nobody_has_noticed_that() {
    let lab = Lab::with(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let route = lab.hosts.route(&device).unwrap();
    assert!(lab.hosts.confirm(&device, route).await);
    drop(lab.listener);
    assert!(lab.hosts.route(&device) == Some(route), "nobody has looked");
    assert!(!lab.hosts.confirm(&device, route).await);
}

#[tokio::test(start_paused = true)]
async fn a_route_is_confirmed_or_not_by_events_that_have_arrived_and_were_not_yet_taken_in() {
    let mut lab = Lab::with(&[usb(1, ALICE), usb(2, BOB)]).await;
    let (alice, bob) = (udid(ALICE), udid(BOB));
    let route = |device| lab.hosts.route(device).unwrap();
    let (to_alice, to_bob) = (route(&alice), route(&bob));
    lab.listener.events(&[detached(1)]).await;
    let (first, second) = tokio::join!(
        lab.hosts.confirm(&alice, to_alice),
        lab.hosts.confirm(&bob, to_bob)
    );
    assert_eq!((first, second), (false, true));
}

#[tokio::test(start_paused = true)]
async fn a_refused_number_is_resolved_again_once_when_the_phone_was_replugged() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let (pipe, ()) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        lab.daemon.connecting(1, 8100).await.result(2).await;
        sleep(Duration::from_millis(200)).await;
        lab.listener.events(&[detached(1), usb(7, ALICE)]).await;
        lab.daemon.connecting(7, 8100).await.result(0).await;
    });
    pipe.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_number_that_stays_refused_is_tried_twice_and_no_more() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let (hosts, device) = (lab.hosts.clone(), udid(ALICE));
    let (outcome, ()) = tokio::join!(hosts.connect(&device, 8100), async {
        lab.daemon.connecting(1, 8100).await.result(2).await;
        until(&lab.hosts, |view| view.devices[&device].stale).await;
        lab.listener.events(&[usb(1, ALICE)]).await;
        lab.daemon.connecting(1, 8100).await.result(2).await;
    });
    assert!(
        matches!(outcome, Err(SendError::NotAttached)),
        "{outcome:?}"
    );
    assert_eq!(lab.daemon.dials(), 3, "one to listen and two to connect");
}

#[tokio::test(start_paused = true)]
async fn a_refused_number_makes_a_settled_listener_learn_the_numbers_anew() {
    let mut lab = Lab::with(&[usb(1, ALICE), usb(2, BOB)]).await;
    sleep(Duration::from_secs(60)).await;
    let device = udid(ALICE);
    let (pipe, listener) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        lab.daemon.connecting(1, 8100).await.result(2).await;
        let listener = lab.daemon.listening(&[usb(2, BOB), usb(3, ALICE)]).await;
        lab.daemon.connecting(3, 8100).await.result(0).await;
        listener
    });
    let route = pipe.unwrap().route();
    assert_eq!(route.generation, 2);
    drop(listener);
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_usbmuxd_does_not_list_after_a_refusal_is_not_attached() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let began = Instant::now();
    let (outcome, ()) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        lab.daemon.connecting(1, 8100).await.result(2).await;
    });
    assert!(
        matches!(outcome, Err(SendError::NotAttached)),
        "{outcome:?}"
    );
    assert!(
        began.elapsed() <= Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_number_never_crosses_a_restart_not_even_during_a_connect() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let listener = lab.listener;
    let daemon = &mut lab.daemon;
    let (pipe, _kept) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        let mut asked_for_alice = daemon.connecting(1, 8100).await;
        // The daemon that is asked now is another one, and 1 is another phone.
        drop(listener);
        let listener = daemon.listening(&[usb(1, BOB), usb(2, ALICE)]).await;
        // Nobody may listen to its answer any more.
        let answer = Reply::Result(0.into()).encode(asked_for_alice.tag).unwrap();
        asked_for_alice.stream.write_all(&answer).await.ok();
        daemon.connecting(2, 8100).await.result(0).await;
        assert!(
            asked_for_alice.hung_up().await.is_empty(),
            "nothing may reach the wrong phone"
        );
        listener
    });
    assert_eq!(pipe.unwrap().route().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_breaks_before_the_answer_is_made_again_while_patience_lasts() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let (pipe, ()) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        for _ in 0..3 {
            drop(lab.daemon.connecting(1, 8100).await);
        }
        lab.daemon.connecting(1, 8100).await.result(0).await;
    });
    pipe.unwrap();

    let began = Instant::now();
    let breaking = async {
        loop {
            let mut peer = lab.daemon.connecting(1, 8100).await;
            let half = Reply::Result(0.into()).encode(peer.tag).unwrap();
            peer.raw(&half[..20]).await;
        }
    };
    let error = tokio::select! {
        outcome = lab.hosts.connect(&device, 8100) => outcome.unwrap_err(),
        () = breaking => unreachable!("it breaks for ever"),
    };
    assert!(
        matches!(cause(&error), MuxError::Closed { mid_packet: true }),
        "{error:?}"
    );
    let patience = UsbmuxdConfig::default().patience;
    assert!(began.elapsed() <= patience && began.elapsed() > patience / 2);
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_is_back_in_a_moment_is_waited_for() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    lab.daemon.refuse(true);
    lab.listener.hang_up().await;
    until(&lab.hosts, |view| !view.hosts[0].connected).await;
    let device = udid(ALICE);
    let (pipe, _kept) = tokio::join!(lab.hosts.connect(&device, 8100), async {
        sleep(Duration::from_secs(2)).await;
        lab.daemon.refuse(false);
        // The phones come a moment after the answer to Listen.
        let mut listener = lab.daemon.listening(&[]).await;
        sleep(Duration::from_millis(100)).await;
        listener.events(&[usb(9, ALICE)]).await;
        lab.daemon.connecting(9, 8100).await.result(0).await;
        listener
    });
    pipe.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_usbmuxd_that_stays_away_is_an_error_that_says_why() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    lab.daemon.refuse(true);
    lab.listener.hang_up().await;
    sleep(Duration::from_secs(20)).await;
    let began = Instant::now();
    let error = lab.hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
    assert!(
        matches!(cause(&error), MuxError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("connection refused"), "{error}");
    assert_eq!(
        began.elapsed(),
        Duration::ZERO,
        "a long outage is not waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn port_0_is_refused() {
    let lab = Lab::with(&[usb(1, ALICE)]).await;
    let error = lab.hosts.connect(&udid(ALICE), 0).await.unwrap_err();
    assert!(matches!(cause(&error), MuxError::Port(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_connect_hangs_up() {
    let mut lab = Lab::with(&[usb(1, ALICE)]).await;
    let device = udid(ALICE);
    let (outcome, mut peer) = tokio::join!(
        timeout(Duration::from_secs(45), lab.hosts.connect(&device, 8100)),
        lab.daemon.connecting(1, 8100),
    );
    outcome.unwrap_err();
    assert!(peer.hung_up().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_request_names_its_client() {
    let (dialer, mut daemon) = Daemon::new();
    let client = Client::new("rack-7", "2.1");
    let config = UsbmuxdConfig {
        client: client.clone(),
        ..UsbmuxdConfig::default()
    };
    let (hosts, _task) = Hosts::spawn(vec![HostConfig {
        usbmuxd: config,
        ..host("local", dialer)
    }]);
    let listener = daemon.listening(&[usb(1, ALICE)]).await;
    assert_eq!(listener.client, Some(client.clone()));
    let device = udid(ALICE);
    let (pipe, ()) = tokio::join!(hosts.connect(&device, 8100), async {
        let mut peer = daemon.connecting(1, 8100).await;
        assert_eq!(peer.client, Some(client));
        peer.result(0).await;
    });
    pipe.unwrap();
}
