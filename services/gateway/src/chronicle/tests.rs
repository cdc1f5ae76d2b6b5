//! Told at once, recorded in order, and on record as lost where it is lost.

use std::time::Duration;

use fleetgate_ledger::LedgerConfig;
use tempfile::TempDir;

use super::*;
use crate::feed::Followed;
use crate::metrics::counters;

const PHONE: &str = "00008110-000978540290401E";

async fn ledger() -> (TempDir, Ledger) {
    let directory = TempDir::new().unwrap();
    let config = LedgerConfig::new(directory.path().join("ledger.db"));
    (directory, Ledger::open(config).await.unwrap())
}

fn udid() -> Udid {
    PHONE.parse().unwrap()
}

fn device() -> pb::Device {
    pb::Device {
        udid: PHONE.to_owned(),
        ..pb::Device::default()
    }
}

fn transition(reason: &str) -> pb::DeviceTransition {
    pb::DeviceTransition {
        device: PHONE.to_owned(),
        from: pb::DeviceState::Detached.into(),
        to: pb::DeviceState::Attached.into(),
        reason: reason.to_owned(),
        detail: Some("in words".to_owned()),
        ..pb::DeviceTransition::default()
    }
}

async fn reasons(ledger: &Ledger) -> Vec<String> {
    let page = ledger.transitions(&udid(), 1000, None).await.unwrap();
    let newest_first = page.transitions.into_iter().rev();
    newest_first.map(|transition| transition.reason).collect()
}

#[tokio::test]
async fn what_was_told_is_on_record_in_its_order_once_the_writer_has_ended() {
    let (_directory, ledger) = ledger().await;
    let feed = Feed::default();
    let (chronicle, task) = Chronicle::new(feed.clone(), ledger.clone(), counters());
    let start = feed.now();
    let told: Vec<_> = (0..50).map(|n| format!("REASON_{n}")).collect();
    for reason in &told {
        chronicle.moved(&udid(), device, transition(reason));
    }
    let Followed::Events(events) = feed.after(start, 1000) else {
        panic!("no gap")
    };
    assert_eq!(events.len(), 50, "at once");
    task.shutdown().await;
    assert_eq!(reasons(&ledger).await, told);
    let page = ledger.transitions(&udid(), 1, None).await.unwrap();
    let last = &page.transitions[0];
    assert_eq!(
        (last.from.as_str(), last.to.as_str()),
        ("DETACHED", "ATTACHED")
    );
    assert_eq!(last.detail.as_deref(), Some("in words"));

    chronicle.moved(&udid(), device, transition("LATE"));
    assert_eq!(
        reasons(&ledger).await.len(),
        50,
        "nothing is taken any more"
    );
    ledger.close().await;
}

#[tokio::test]
async fn what_finds_the_queue_full_is_told_all_the_same_and_on_record_as_lost() {
    let (_directory, ledger) = ledger().await;
    let feed = Feed::default();
    let (chronicle, task) = Chronicle::with_queue(feed.clone(), ledger.clone(), counters(), 2);
    let start = feed.now();
    // The writer has no turn in between: one thread, no await.
    for reason in ["ONE", "TWO", "THREE", "FOUR", "FIVE"] {
        chronicle.moved(&udid(), device, transition(reason));
    }
    let Followed::Events(events) = feed.after(start, 9) else {
        panic!("no gap")
    };
    assert_eq!(events.len(), 5);
    task.shutdown().await;
    assert_eq!(reasons(&ledger).await, ["ONE", "TWO"]);
    let page = ledger.tail(None, 100).await.unwrap();
    let lost = page
        .events
        .into_iter()
        .find_map(|event| match event.subject {
            fleetgate_ledger::Subject::Operation(operation) => Some(operation),
            fleetgate_ledger::Subject::Command(_)
            | fleetgate_ledger::Subject::Transition(_)
            | fleetgate_ledger::Subject::Ledger { .. }
            | fleetgate_ledger::Subject::Checkpoint(_) => None,
        });
    let lost = lost.unwrap();
    assert_eq!(
        (lost.who.as_str(), lost.what.as_str()),
        ("fleetgate", "transitions-lost")
    );
    assert_eq!(lost.detail["count"], 3);
    ledger.close().await;
}

#[tokio::test]
async fn a_ledger_that_takes_nothing_neither_stops_the_telling_nor_the_end() {
    let (_directory, ledger) = ledger().await;
    ledger.close().await;
    let feed = Feed::default();
    let (chronicle, task) = Chronicle::new(feed.clone(), ledger, counters());
    for _ in 0..2000 {
        chronicle.moved(&udid(), device, transition("PLUGGED"));
    }
    assert_eq!(feed.after(feed.at(2000), 1), Followed::Events(Vec::new()));
    tokio::time::timeout(Duration::from_secs(10), task.shutdown())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_phone_that_flaps_is_told_in_full_and_summed_up_in_the_ledger() {
    let (_directory, ledger) = ledger().await;
    let feed = Feed::default();
    let (chronicle, task) = Chronicle::new(feed.clone(), ledger.clone(), counters());
    let start = feed.now();
    for turn in 0..1000 {
        let (from, to) = match turn % 2 {
            0 => (pb::DeviceState::Detached, pb::DeviceState::Attached),
            _ => (pb::DeviceState::Attached, pb::DeviceState::Detached),
        };
        let told = pb::DeviceTransition {
            from: from.into(),
            to: to.into(),
            ..transition("PLUGGED")
        };
        chronicle.moved(&udid(), device, told);
    }
    let Followed::Events(events) = feed.after(start, 2000) else {
        panic!("no gap")
    };
    assert_eq!(events.len(), 1000);
    task.shutdown().await;
    let page = ledger.transitions(&udid(), 1000, None).await.unwrap();
    // A slow host may have had time for one more.
    let count = page.transitions.len();
    assert!((61..=63).contains(&count), "{count}");
    let newest = &page.transitions[0];
    assert_eq!(newest.reason, "TRANSITIONS_LEFT_OUT");
    let mut at = "DETACHED";
    for transition in page.transitions.iter().rev() {
        assert_eq!(transition.from, at);
        at = &transition.to;
    }
    assert_eq!(at, "DETACHED");
    ledger.close().await;
}

#[tokio::test]
async fn what_was_left_out_is_summed_up_when_there_is_room_though_nothing_follows() {
    let (_directory, ledger) = ledger().await;
    let (chronicle, task) = Chronicle::new(Feed::default(), ledger.clone(), counters());
    let mut tail = ledger.watch();
    for _ in 0..100 {
        chronicle.moved(&udid(), device, transition("PLUGGED"));
    }
    while reasons(&ledger).await.len() < 60 {
        tail.changed().await.unwrap();
    }
    // No longer than that: the ledger's own patience is of the same clock.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(10)).await;
    tokio::time::resume();
    while reasons(&ledger).await.last().map(String::as_str) != Some("TRANSITIONS_LEFT_OUT") {
        tail.changed().await.unwrap();
    }
    assert_eq!(reasons(&ledger).await.len(), 61);
    task.shutdown().await;
    assert_eq!(reasons(&ledger).await.len(), 61);
    ledger.close().await;
}
