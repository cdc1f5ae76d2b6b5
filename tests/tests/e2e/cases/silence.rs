//! Case 19: a load balancer that resets every connection on which nothing was
//! said for a while.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::effects;
use fleetgate_tests::impatient::Impatient;
use fleetgate_tests::lane::tap_request;
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::reach::Reach;
use fleetgate_tests::{Rig, connect, history, plain, plain_lab};
use tokio::time::Instant;

use super::{PLUGGED, READY, SELDOM, assert_history, ready, seldom_asked};

const SCALE: f64 = 0.2;

#[tokio::test(flavor = "multi_thread")]
async fn heartbeats_keep_a_watcher_that_has_nothing_to_be_told() {
    let patience = Duration::from_millis(1500);
    let rig = Rig::configured(plain_lab(1, SCALE), |config| {
        config.health.probe_interval = SELDOM;
        config.server.heartbeat_interval = Duration::from_millis(50);
        // Pings are no DATA, and impress nobody.
        config.server.http2_keepalive_interval = Duration::from_millis(20);
    })
    .await;
    drop(ready(&rig).await);
    let proxy = Impatient::before(&rig.url(), patience).await;
    let mut mirror = Mirror::follow(connect(&proxy.url).await).await;
    mirror.until("the fleet", |seen| seen.synced == 1).await;
    let (begin, events) = (Instant::now(), mirror.look(|seen| seen.seqs.len()));
    // Twice as long as the proxy bears silence.
    let beats = |seen: &Seen| seen.heartbeats >= 20 && begin.elapsed() > 2 * patience;
    let seen = mirror.until("heartbeats", beats).await;
    assert!(seen.ended.is_none(), "{:?}", seen.ended);
    assert_eq!(seen.seqs.len(), events);
    assert_eq!(proxy.cut(), 0);
    rig.phone(0).detach();
    let udid = rig.udid(0);
    mirror.until_state(&udid, DeviceState::Detached).await;
    drop(mirror);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_is_cut_again_and_again_goes_on_from_its_cursor_and_misses_nothing() {
    // Its heartbeats are too far apart for this proxy.
    let rig = seldom_asked(Reach::Memory, plain_lab(2, SCALE)).await;
    drop(ready(&rig).await);
    let proxy = Impatient::before(&rig.url(), Duration::from_millis(300)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let (mut cursor, mut seen) = (String::new(), Seen::default());
    for round in 1..=3 {
        let request = pb::WatchFleetRequest {
            resume_cursor: cursor.clone(),
            ..pb::WatchFleetRequest::default()
        };
        let mut mirror = Mirror::request(connect(&proxy.url).await, request).await;
        // Something while it listens, something when it does not any more.
        phone.replug();
        let cut = mirror.until("the cut", |seen| seen.ended.is_some()).await;
        assert!(cut.ended.unwrap().is_err());
        assert_eq!((cut.gaps, cut.heartbeats), (0, 0));
        assert_eq!(proxy.cut(), round);
        seen.seqs.extend(cut.seqs);
        seen.transitions.extend(cut.transitions);
        // On a busy machine it may be cut before it has been told anything.
        if !cut.cursor.is_empty() {
            cursor = cut.cursor;
        }
        rig.phone(1).detach();
        plain::send(&rig, &udid, CommandKind::Button, &format!("b-{round}"))
            .await
            .unwrap();
        rig.phone(1).attach();
    }
    // Whoever comes straight to the gateway gets the rest.
    let request = pb::WatchFleetRequest {
        resume_cursor: cursor,
        ..pb::WatchFleetRequest::default()
    };
    let mut mirror = Mirror::request(rig.channel(), request).await;
    mirror.until_state(&rig.udid(1), DeviceState::Ready).await;
    let rest = mirror.seen();
    seen.seqs.extend(rest.seqs);
    seen.transitions.extend(rest.transitions);
    let first = seen.seqs[0];
    let all: Vec<_> = (first..).take(seen.seqs.len()).collect();
    assert_eq!(seen.seqs, all, "nothing twice and nothing left out");
    for n in 0..2 {
        history::assert_was_told(rig.channel(), &rig.udid(n), &seen).await;
    }
    let replugged = "READY REPLUGGED READY";
    assert_history(
        &rig,
        &udid,
        &[PLUGGED, READY, replugged, replugged, replugged],
    )
    .await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gesture_whose_connection_was_cut_for_its_silence_is_found_by_its_id() {
    let rig = seldom_asked(Reach::Memory, plain_lab(1, SCALE)).await;
    let mut mirror = ready(&rig).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let proxy = Impatient::before(&rig.url(), Duration::from_secs(1)).await;
    let by = Duration::from_secs(10);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Tap));
    let mut client = AutomationServiceClient::new(connect(&proxy.url).await);
    let cut = client.tap(tap_request(&udid, "gesture")).await;
    cut.expect_err("a connection that was cut");
    assert_eq!(proxy.cut(), 1);

    let told = |seen: &Seen| !seen.commands.is_empty();
    let seen = mirror.until("its fate", told).await;
    assert_eq!(seen.commands[0].command_id, "gesture");
    assert_eq!(seen.commands[0].fate(), pb::Fate::Completed);
    let row = rig.find("gesture").await.unwrap();
    assert_eq!(row.fate(), pb::Fate::Completed);
    // Or by asking for the same thing again, which does not do it again.
    let again = rig.automation().tap(tap_request(&udid, "gesture")).await;
    let receipt = again.unwrap().into_inner().receipt.unwrap();
    assert!(receipt.replayed && receipt.fate() == pb::Fate::Completed);
    assert_eq!(effects(&phone, "gesture").len(), 1);
    assert_history(&rig, &udid, &[PLUGGED, READY]).await;
    drop(mirror);
    rig.stop().await;
}
