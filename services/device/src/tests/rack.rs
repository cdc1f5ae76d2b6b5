//! Several daemons as one: what becomes of phones that move, and of one host
//! while another is away.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{Clearance, Disposition, Exchange, SendError};
use fleetgate_usbmux::{Event, MuxDeviceId};
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tower::ServiceExt;

use super::daemon::{
    ALICE, BOB, Daemon, Peer, detached, encoded, host, network, udid, until, until_gone, usb,
};
use super::exchange::{DONE, exchange, fixed, tap};
use crate::{HostConfig, Hosts, HostsTask, HostsView, Presence, RunnerExchange, UsbmuxdConfig};

/// The hosts by index.
const A: usize = 0;
const B: usize = 1;

/// Two listened-to daemons.
pub(super) struct Rack {
    pub(super) hosts: Hosts,
    pub(super) daemons: [Daemon; 2],
    pub(super) listeners: [Peer; 2],
    _task: HostsTask,
}

impl Rack {
    /// Listens to both, and waits until all of these are known and settled.
    pub(super) async fn with(events: [&[Event]; 2]) -> Self {
        let ((at_a, mut a), (at_b, mut b)) = (Daemon::new(), Daemon::new());
        let (hosts, task) = Hosts::spawn(vec![host("a", at_a), host("b", at_b)]);
        let listeners = [a.listening(events[A]).await, b.listening(events[B]).await];
        until(&hosts, |view| view.hosts.iter().all(|host| host.settled)).await;
        Self {
            hosts,
            daemons: [a, b],
            listeners,
            _task: task,
        }
    }

    /// Takes a daemon away for good.
    pub(super) async fn kill(&mut self, host: usize) {
        self.daemons[host].refuse(true);
        self.listeners[host].hang_up().await;
        until(&self.hosts, |view| !view.hosts[host].connected).await;
    }

    /// Brings it back with these phones.
    async fn revive(&mut self, host: usize, events: &[Event]) {
        self.daemons[host].refuse(false);
        self.listeners[host] = self.daemons[host].listening(events).await;
        until(&self.hosts, |view| view.hosts[host].connected).await;
    }

    /// Where a phone is, once that is as it should be.
    pub(super) async fn find(&self, serial: &str, looks: impl Fn(&Presence) -> bool) -> Presence {
        let device = udid(serial);
        let is_there = |view: &HostsView| view.devices.get(&device).is_some_and(&looks);
        until(&self.hosts, is_there).await.devices[&device]
    }

    /// Connects to a phone, which must be reached by this number of this host.
    async fn reaches(&mut self, serial: &str, host: usize, number: u32) {
        let device = udid(serial);
        let dials = self.daemons.each_ref().map(Daemon::dials);
        let (pipe, ()) = tokio::join!(self.hosts.connect(&device, 8100), async {
            self.daemons[host]
                .connecting(number, 8100)
                .await
                .result(0)
                .await;
        });
        let route = pipe.unwrap().route();
        assert_eq!((route.host, route.device), (host, MuxDeviceId(number)));
        let other = 1 - host;
        assert_eq!(
            self.daemons[other].dials(),
            dials[other],
            "the other host was dialled"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn phones_of_all_hosts_are_one_table_and_each_is_reached_through_its_own() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[usb(1, BOB)]]).await;
    let view = Arc::clone(&rack.hosts.view().borrow());
    assert_eq!(view.devices.len(), 2);
    let names: Vec<_> = view.hosts.iter().map(|host| &*host.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(
        view.hosts
            .iter()
            .all(|host| host.device_count == 1 && host.generation == 1)
    );
    // The same number, of two hosts.
    rack.reaches(ALICE, A, 1).await;
    rack.reaches(BOB, B, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_cable_at_one_host_beats_wifi_at_the_other_in_either_order() {
    for (events, host) in [
        ([vec![usb(1, ALICE)], vec![network(2, ALICE)]], A),
        ([vec![network(1, ALICE)], vec![usb(2, ALICE)]], B),
    ] {
        let mut rack = Rack::with([&events[A], &events[B]]).await;
        let number = if host == A { 1 } else { 2 };
        rack.reaches(ALICE, host, number).await;

        rack.listeners[host].events(&[detached(number)]).await;
        let left = rack.find(ALICE, |at| !at.by_cable).await;
        assert_eq!(
            (left.host, left.stale, left.number),
            (1 - host, false, None)
        );
        let error = rack.hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
        assert!(matches!(error, SendError::NotAttached), "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_two_hosts_have_by_cable_is_where_it_was_announced_last() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[]]).await;
    rack.listeners[B].events(&[usb(7, ALICE)]).await;
    rack.find(ALICE, |at| at.host == B).await;
    rack.reaches(ALICE, B, 7).await;

    rack.listeners[A].events(&[usb(2, ALICE)]).await;
    rack.find(ALICE, |at| at.host == A).await;
    rack.reaches(ALICE, A, 2).await;

    rack.listeners[A].events(&[detached(2)]).await;
    rack.find(ALICE, |at| at.host == B).await;
    rack.reaches(ALICE, B, 7).await;
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_moves_while_its_host_is_away_is_found_at_the_other_and_not_remembered() {
    let mut rack = Rack::with([&[usb(1, ALICE), usb(2, BOB)], &[]]).await;
    rack.kill(A).await;
    let lost = rack.find(ALICE, |at| at.stale).await;
    assert_eq!((lost.host, lost.by_cable, lost.number), (A, true, None));

    rack.listeners[B].events(&[usb(1, ALICE)]).await;
    let moved = rack.find(ALICE, |at| at.host == B).await;
    assert_eq!((moved.stale, moved.number), (false, Some(MuxDeviceId(1))));
    rack.reaches(ALICE, B, 1).await;
    // What is pulled there is not thought to be where it was before.
    rack.listeners[B].events(&[detached(1)]).await;
    until_gone(&rack.hosts, ALICE).await;
    let error = rack.hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
    assert!(matches!(error, SendError::NotAttached), "{error:?}");

    // And the other phone of the lost host is still thought to be there.
    assert!(rack.find(BOB, |_| true).await.stale);
    rack.revive(A, &[usb(1, BOB)]).await;
    rack.find(BOB, |at| !at.stale).await;
    rack.reaches(BOB, A, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_back_does_not_claim_a_phone_that_moved() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[]]).await;
    rack.kill(A).await;
    rack.listeners[B].events(&[usb(5, ALICE)]).await;
    rack.find(ALICE, |at| at.host == B).await;
    // 1 is Bob's now.
    rack.revive(A, &[usb(1, BOB)]).await;
    rack.reaches(ALICE, B, 5).await;
    rack.reaches(BOB, A, 1).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(rack.find(ALICE, |_| true).await.host, B);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_away_for_20_seconds_costs_the_other_nothing() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[usb(1, BOB)]]).await;
    let half = &encoded(&[detached(1)])[..30];
    rack.listeners[A].raw(half).await;
    rack.kill(A).await;
    let before = rack.daemons[A].dials();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        let asked = Instant::now();
        rack.reaches(BOB, B, 1).await;
        assert_eq!(asked.elapsed(), Duration::ZERO);
        sleep(Duration::from_secs(1)).await;
    }
    let tries = rack.daemons[A].dials() - before;
    assert!((5..=16).contains(&tries), "{tries} tries in 20 s");
    let error = rack.hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
    assert_eq!(error.disposition(), Disposition::NotExecuted);
    assert!(
        error.to_string().contains("host a is unreachable"),
        "{error}"
    );

    // Back, with its numbers given out anew.
    rack.revive(A, &[usb(1, "00008110-00000000000000C0"), usb(2, ALICE)])
        .await;
    rack.reaches(ALICE, A, 2).await;
    let view = Arc::clone(&rack.hosts.view().borrow());
    assert_eq!((view.hosts[A].generation, view.hosts[B].generation), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_phone_that_left_is_not_attached_whoever_else_is_away() {
    let mut rack = Rack::with([&[], &[usb(1, ALICE)]]).await;
    rack.kill(A).await;
    rack.listeners[B].events(&[detached(1)]).await;
    until_gone(&rack.hosts, ALICE).await;
    let asked = Instant::now();
    let error = rack.hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
    assert!(matches!(error, SendError::NotAttached), "{error:?}");
    assert_eq!(asked.elapsed(), Duration::ZERO, "nothing is hoped for");
    // One that nobody has ever seen may be where nobody can look.
    let error = rack.hosts.connect(&udid(BOB), 8100).await.unwrap_err();
    assert!(
        error.to_string().contains("host a is unreachable"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connect_that_hangs_at_a_dead_host_follows_the_phone_to_the_other() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[]]).await;
    let device = udid(ALICE);
    let hosts = rack.hosts.clone();
    let (pipe, ()) = tokio::join!(hosts.connect(&device, 8100), async {
        // Asked, and never answered.
        let mut hanging = rack.daemons[A].connecting(1, 8100).await;
        rack.listeners[B].events(&[usb(3, ALICE)]).await;
        rack.daemons[B].connecting(3, 8100).await.result(0).await;
        assert!(hanging.hung_up().await.is_empty());
    });
    assert_eq!(pipe.unwrap().route().host, B);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_to_a_pipe_whose_phone_moved_while_the_leave_was_awaited() {
    let mut rack = Rack::with([&[usb(1, ALICE)], &[]]).await;
    let runner = RunnerExchange::new(rack.hosts.clone(), udid(ALICE), fixed(8100));
    let (grant, granted) = oneshot::channel();
    let exchange = Exchange {
        clearance: Clearance::when(async { granted.await.unwrap() }),
        ..exchange(tap())
    };
    let (outcome, ()) = tokio::join!(runner.oneshot(exchange), async {
        let mut wrong = rack.daemons[A].connecting(1, 8100).await;
        wrong.result(0).await;
        timeout(Duration::from_secs(1), wrong.stream.read_u8())
            .await
            .unwrap_err();
        // A is not noticed to have lost it.
        rack.listeners[B].events(&[usb(1, ALICE)]).await;
        rack.find(ALICE, |at| at.host == B).await;
        grant.send(Ok(())).unwrap();
        let mut right = rack.daemons[B].connecting(1, 8100).await;
        right.result(0).await;
        right.http().await;
        right.answer(200, DONE).await;
        assert_eq!(wrong.hung_up().await, b"");
    });
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_host_has_its_own_limit_of_dials() {
    let ((at_a, mut a), (at_b, mut b)) = (Daemon::new(), Daemon::new());
    let hanging = crate::Dialer::from_fn("a", move || {
        let first = at_a.clone();
        Box::pin(async move {
            // The listener is served; whoever comes later is not even accepted.
            timeout(Duration::from_millis(1), first.dial()).await?
        })
    });
    let config = |name, dialer| HostConfig {
        usbmuxd: UsbmuxdConfig {
            max_dials: 1,
            ..UsbmuxdConfig::default()
        },
        ..host(name, dialer)
    };
    let (hosts, _task) = Hosts::spawn(vec![config("a", hanging), config("b", at_b)]);
    let _listeners = (
        a.listening(&[usb(1, ALICE)]).await,
        b.listening(&[usb(1, BOB)]).await,
    );
    until(&hosts, |view| view.devices.len() == 2).await;
    let (alice, bob) = (udid(ALICE), udid(BOB));
    a.refuse(true);
    let (stuck, pipe, ()) = tokio::join!(
        timeout(Duration::from_secs(1), hosts.connect(&alice, 8100)),
        hosts.connect(&bob, 8100),
        async { b.connecting(1, 8100).await.result(0).await },
    );
    stuck.unwrap_err();
    pipe.unwrap();
}

#[tokio::test(start_paused = true)]
async fn hosts_settle_together_and_one_that_is_away_is_not_waited_for() {
    let ((at_a, mut a), (at_b, b)) = (Daemon::new(), Daemon::new());
    b.refuse(true);
    let (hosts, _task) = Hosts::spawn(vec![host("a", at_a), host("b", at_b)]);
    let began = Instant::now();
    let ((), mut listener) = tokio::join!(hosts.settled(), async {
        sleep(Duration::from_millis(400)).await;
        let mut listener = a.listening(&[]).await;
        sleep(Duration::from_millis(400)).await;
        listener.events(&[usb(1, ALICE)]).await;
        listener
    });
    let took = began.elapsed();
    assert!(
        took > Duration::from_secs(1) && took < Duration::from_secs(2),
        "{took:?}"
    );
    assert!(hosts.view().borrow().is_reachable(&udid(ALICE)));
    let again = Instant::now();
    hosts.settled().await;
    assert_eq!(again.elapsed(), Duration::ZERO);
    listener.hang_up().await;
}

#[tokio::test(start_paused = true)]
async fn a_fleet_without_hosts_has_no_phones() {
    let (hosts, task) = Hosts::spawn(vec![]);
    hosts.settled().await;
    let error = hosts.connect(&udid(ALICE), 8100).await.unwrap_err();
    assert!(matches!(error, SendError::NotAttached), "{error:?}");
    assert_eq!(hosts.paired(&udid(ALICE)).await, None);
    task.shutdown().await;
}
