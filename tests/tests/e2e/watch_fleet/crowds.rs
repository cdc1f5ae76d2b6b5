//! Watchers that are many, slow, or gone, and a gateway that goes.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::lane::{in_hand, tap};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::{Rig, pause, soon};
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request};

use super::{Watcher, after, all, label, listed, press};

/// A connection that takes no more of a stream than it must.
async fn narrow(rig: &Rig) -> Channel {
    let endpoint = Endpoint::from_shared(rig.url()).unwrap();
    let endpoint = endpoint
        .initial_stream_window_size(65_535)
        .initial_connection_window_size(65_535);
    endpoint.connect().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_is_told_how_much_it_missed_and_others_miss_nothing() {
    let rig = Rig::plain(1).await;
    let long: Vec<_> = (0..60)
        .map(|n| (format!("label-{n}"), "x".repeat(255)))
        .collect();
    let request = pb::UpdateDeviceRequest {
        device: rig.udid(0),
        set_labels: long.into_iter().collect(),
        ..pb::UpdateDeviceRequest::default()
    };
    rig.fleet().update_device(request).await.unwrap();
    let mut slow = Watcher::over(narrow(&rig).await, all()).await;
    let (_, synced) = slow.snapshot().await;
    let mut mirror = Mirror::request(rig.connect().await, after(&synced)).await;

    // More than the feed keeps and a connection holds, in events of 16 KB.
    for n in 0..1300_u64 {
        label(&rig, &n.to_string()).await;
        let told = |seen: &Seen| {
            let device = seen.devices.get(&rig.udid(0));
            device.is_some_and(|device| device.labels.get("round") == Some(&n.to_string()))
        };
        mirror.until("the label", told).await;
    }
    press(&rig, "last").await;
    let seen = mirror
        .until("the press", |seen| !seen.commands.is_empty())
        .await;
    assert_eq!((seen.gaps, seen.synced), (0, 1));
    let first = seen.seqs[0];
    let contiguous: Vec<_> = (first..first + seen.seqs.len() as u64).collect();
    assert_eq!(seen.seqs, contiguous, "the other one is told everything");

    let mut last = first - 1;
    let missed = loop {
        match slow.told().await {
            (_, Item::Event(event)) => {
                assert_eq!(event.seq, last + 1, "no word of what is missing");
                last = event.seq;
            }
            (cursor, Item::Gap(gap)) => {
                assert_eq!(cursor, "");
                break gap.missed.unwrap();
            }
            (_, item) => panic!("{item:?}"),
        }
    };
    let newest = *seen.seqs.last().unwrap();
    assert_eq!(last + missed, newest);
    assert!(missed > 100, "{missed}");
    let (parts, _) = slow.snapshot().await;
    assert_eq!(parts[0].devices, listed(&rig).await);
    press(&rig, "after").await;
    assert_eq!(slow.fates(1).await, ["after"]);
    drop((slow, mirror));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_watchers_are_told_the_same() {
    let rig = Rig::plain(3).await;
    let mut mirrors = Vec::new();
    for _ in 0..50 {
        mirrors.push(Mirror::follow(rig.connect().await).await);
    }
    for mirror in &mut mirrors {
        mirror.until("the fleet", |seen| seen.synced == 1).await;
    }
    for n in 0..40 {
        press(&rig, &format!("p-{n}")).await;
    }
    rig.phone(1).replug();
    press(&rig, "last").await;
    let mut all_seen = Vec::new();
    for mut mirror in mirrors {
        let is_last = |seen: &Seen| {
            let mut commands = seen.commands.iter();
            commands.any(|fate| fate.command_id == "last")
        };
        all_seen.push(mirror.until("the last press", is_last).await);
    }
    let first = &all_seen[0];
    assert_eq!(first.commands.len(), 41);
    for seen in &all_seen {
        assert_eq!(seen.gaps, 0);
        assert_eq!(seen.commands, first.commands);
        let start = first.seqs[0].max(seen.seqs[0]);
        let from = |seqs: &[u64]| {
            seqs.iter()
                .copied()
                .filter(|seq| *seq >= start)
                .collect::<Vec<_>>()
        };
        let (own, others) = (from(&seen.seqs), from(&first.seqs));
        let common = own.len().min(others.len());
        assert_eq!(own[..common], others[..common]);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_at_whatever_moment_ends_up_with_the_fleet_as_it_is() {
    const PHONES: usize = 12;
    let rig = Rig::plain(12).await;
    let storm = async {
        for round in 0..25 {
            for n in 0..PHONES {
                match (round + n) % 4 {
                    0 => rig.phone(n).replug(),
                    1 => rig.phone(n).detach(),
                    2 => rig.phone(n).attach(),
                    _ => {}
                }
            }
            label(&rig, &round.to_string()).await;
        }
        for n in 0..PHONES {
            rig.phone(n).attach();
        }
    };
    let coming = async {
        let mut mirrors = Vec::new();
        for _ in 0..20 {
            mirrors.push(Mirror::follow(rig.connect().await).await);
        }
        mirrors
    };
    let ((), mirrors) = tokio::join!(storm, coming);
    soon("one view of the fleet", async {
        loop {
            let fleet = listed(&rig).await;
            let is_known = |mirror: &Mirror| mirror.look(|seen| seen.devices.values().eq(&fleet));
            let is_back = fleet
                .iter()
                .all(|device| device.state() == pb::DeviceState::Attached);
            if is_back && mirrors.iter().all(is_known) {
                return;
            }
            pause().await;
        }
    })
    .await;
    for mirror in &mirrors {
        mirror.look(|seen| assert_eq!((seen.gaps, seen.synced), (0, 1)));
    }
    drop(mirrors);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_drains_tells_the_last_fates_and_then_that_it_is_over() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
    let slow = Injection::Slow {
        by: Duration::from_secs(20),
    };
    rig.phone(0).fault(Fault::from(slow).on(CommandKind::Tap));
    let mut watcher = Watcher::over(rig.connect().await, all()).await;
    watcher.snapshot().await;
    let mut tapped = JoinSet::new();
    tapped.spawn(tap(&rig, "in-flight"));
    in_hand(&rig).await;
    let mut stopping = JoinSet::new();
    stopping.spawn(rig.stop());

    let (items, end) = watcher.end().await;
    assert_eq!(
        (end.code, end.reason.as_str()),
        (Code::Unavailable, "GATEWAY_DRAINING")
    );
    assert!(end.retry_delay.is_some());
    let told = items.iter().any(|item| match item {
        Item::Event(event) => matches!(&event.event, Some(Event::Command(fate))
            if fate.command_id == "in-flight" && fate.fate() == pb::Fate::Completed),
        Item::Snapshot(_) | Item::Synced(_) | Item::Gap(_) | Item::Heartbeat(_) => false,
    });
    assert!(told, "{items:?}");
    tapped.join_next().await.unwrap().unwrap().unwrap();
    stopping.join_next().await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_at_its_callers_deadline() {
    let rig = Rig::plain(1).await;
    let mut request = Request::new(all());
    request.set_timeout(Duration::from_millis(100));
    let stream = rig.fleet().watch_fleet(request).await.unwrap();
    let (_, end) = Watcher(stream.into_inner()).end().await;
    // tonic's client reports its own clock's deadline as cancelled.
    assert!(
        matches!(end.code, Code::DeadlineExceeded | Code::Cancelled),
        "{end:?}"
    );
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_leaves_leaves_nothing_behind() {
    let rig = Rig::plain(1).await;
    for _ in 0..20 {
        let mut watcher = Watcher::over(rig.connect().await, all()).await;
        watcher.snapshot().await;
    }
    press(&rig, "after").await;
    let drained = soon("the end", rig.stop()).await;
    assert_eq!(drained, fleetgate_gateway::Drained::Clean);
}
