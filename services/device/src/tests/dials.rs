//! How usbmuxd is dialled: a few at a time, again and again, and not for ever.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fleetgate_runner::SendError;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::daemon::{ALICE, Daemon, host, udid, until, usb};
use crate::{Dialer, HostConfig, Hosts, MuxError, UsbmuxdConfig};

#[tokio::test(start_paused = true)]
async fn a_herd_that_arrives_while_nothing_is_accepted_gets_through_a_few_at_a_time() {
    const OUTAGE: Duration = Duration::from_secs(3);
    let (scripted, mut daemon) = Daemon::new();
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let outage = Arc::new(OnceLock::<Instant>::new());
    let began = Arc::clone(&outage);
    let dialer = Dialer::from_fn("herd", move || {
        let (scripted, now, most) = (scripted.clone(), Arc::clone(&now), Arc::clone(&most));
        let began = Arc::clone(&began);
        Box::pin(async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_millis(1)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            if began.get().is_some_and(|began| began.elapsed() < OUTAGE) {
                Err(io::ErrorKind::WouldBlock.into())
            } else {
                scripted.dial().await
            }
        })
    });
    let config = UsbmuxdConfig {
        max_dials: 8,
        ..UsbmuxdConfig::default()
    };
    let (hosts, _task) = Hosts::spawn(vec![HostConfig {
        usbmuxd: config,
        ..host("local", dialer)
    }]);
    let _listener = daemon.listening(&[usb(1, ALICE)]).await;
    until(&hosts, |view| view.devices.contains_key(&udid(ALICE))).await;
    let began = *outage.get_or_init(Instant::now);

    let mut herd = JoinSet::new();
    for _ in 0..200 {
        let hosts = hosts.clone();
        herd.spawn(async move { hosts.connect(&udid(ALICE), 8100).await });
    }
    for _ in 0..200 {
        daemon.connecting(1, 8100).await.result(0).await;
    }
    while let Some(outcome) = herd.join_next().await {
        outcome.unwrap().unwrap();
    }
    assert!(began.elapsed() >= OUTAGE && began.elapsed() < Duration::from_secs(5));
    assert_eq!(peak.load(Ordering::Relaxed), 8);
}

#[tokio::test(start_paused = true)]
async fn a_dial_that_hangs_is_given_up() {
    let (scripted, mut daemon) = Daemon::new();
    let first = AtomicBool::new(true);
    let dialer = Dialer::from_fn("hangs", move || {
        let scripted = scripted.clone();
        let first = first.swap(false, Ordering::Relaxed);
        Box::pin(async move {
            if !first {
                std::future::pending::<()>().await;
            }
            scripted.dial().await
        })
    });
    let (hosts, _task) = Hosts::spawn(vec![host("local", dialer)]);
    let _listener = daemon.listening(&[usb(1, ALICE)]).await;
    let began = Instant::now();
    let error = hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
    let SendError::Connect(cause) = &error else {
        panic!("{error:?}")
    };
    assert!(
        matches!(cause.downcast_ref(), Some(MuxError::Dial(error)) if error.kind() == io::ErrorKind::TimedOut),
        "{error:?}"
    );
    assert!(began.elapsed() < Duration::from_secs(10));
}
