//! Case 20: a watcher that stops to read while the fleet goes on, against the
//! real binary.

use std::fmt::Write as _;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_simulator::Scenario;
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::process::Process;
use fleetgate_tests::scene::Scene;
use fleetgate_tests::{history, plain_lab, soon};
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

const MEGABYTE: u64 = 1 << 20;
const PHONES: u32 = 100;
/// How often every phone is unplugged and plugged in again.
const ROUNDS: usize = 40;
/// The size of what is told of a phone: most of it labels.
const LABELS: usize = 30;
const LABEL: usize = 255;

/// Phones that there is much to tell of.
fn configuration(lab: &Scenario) -> String {
    let labels: Vec<_> = (0..LABELS)
        .map(|n| format!("label-{n} = '{}'", "x".repeat(LABEL)))
        .collect();
    let labels = labels.join(", ");
    let mut text = String::new();
    for phone in &lab.phones {
        let device = format!(
            "[[device]]\nudid = '{}'\nlabels = {{ {labels} }}\n",
            phone.udid
        );
        text.write_str(&device).unwrap();
    }
    text
}

/// A watcher that takes in little that it does not read, once it knows the
/// fleet, and where to resume behind that.
async fn lazy(scene: &Scene) -> (Streaming<pb::WatchFleetResponse>, String) {
    let endpoint = Endpoint::from_shared(scene.server.url.clone()).unwrap();
    let channel = endpoint
        .initial_stream_window_size(64 << 10)
        .initial_connection_window_size(64 << 10)
        .connect()
        .await
        .unwrap();
    let request = pb::WatchFleetRequest::default();
    let stream = FleetServiceClient::new(channel).watch_fleet(request).await;
    let mut stream = stream.unwrap().into_inner();
    loop {
        let message = soon("the fleet", stream.message()).await.unwrap().unwrap();
        if matches!(message.item, Some(Item::Synced(_))) {
            return (stream, message.cursor);
        }
    }
}

/// Reads on after a long time: first what was on its way, in order, then word of
/// how much is missing, and the fleet as it is.
async fn catches_up(
    channel: Channel,
    mut stream: Streaming<pb::WatchFleetResponse>,
    last_before: u64,
    newest: u64,
) -> u64 {
    let mut last = last_before;
    let missed = loop {
        let message = soon("a message", stream.message()).await.unwrap().unwrap();
        match message.item.unwrap() {
            Item::Event(event) => {
                assert_eq!(event.seq, last + 1, "no word of what is missing");
                last = event.seq;
            }
            Item::Gap(gap) => break gap.missed.unwrap(),
            Item::Heartbeat(_) => {}
            item @ (Item::Snapshot(_) | Item::Synced(_)) => panic!("{item:?}"),
        }
    };
    assert_eq!(last + missed, newest, "every event is told or counted");
    let mut devices = Vec::new();
    loop {
        let message = soon("the fleet", stream.message()).await.unwrap().unwrap();
        match message.item.unwrap() {
            Item::Snapshot(part) => devices.extend(part.devices),
            Item::Synced(_) => break,
            Item::Heartbeat(_) => {}
            item @ (Item::Event(_) | Item::Gap(_)) => panic!("{item:?}"),
        }
    }
    let request = pb::ListDevicesRequest {
        page_size: 1000,
        ..pb::ListDevicesRequest::default()
    };
    let listed = FleetServiceClient::new(channel).list_devices(request).await;
    assert_eq!(devices, listed.unwrap().into_inner().devices);
    missed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_stops_to_read_costs_no_memory_and_no_other_watcher_an_event() {
    let lab = plain_lab(PHONES, 0.2);
    let scene = Scene::configured(lab.clone(), &configuration(&lab)).await;
    let (process, count) = (Process::new(scene.pid()), PHONES as usize);
    // It reads no more from here on; somebody else does.
    let (idle, resume_cursor) = lazy(&scene).await;
    let request = pb::WatchFleetRequest {
        resume_cursor,
        ..pb::WatchFleetRequest::default()
    };
    let mut mirror = Mirror::request(scene.channel(), request).await;
    let before = process.resident();
    let mut between = 0;
    for round in 0..ROUNDS {
        for n in 0..count {
            scene.phone(n).detach();
        }
        let gone = |seen: &Seen| seen.count(DeviceState::Detached) == count;
        mirror.until("all of them unplugged", gone).await;
        for n in 0..count {
            scene.phone(n).attach();
        }
        let back = |seen: &Seen| seen.count(DeviceState::Attached) == count;
        mirror.until("all of them plugged in", back).await;
        if round == ROUNDS / 2 {
            between = process.resident();
        }
    }
    let after = process.resident();

    let seen = mirror.seen();
    assert_eq!((seen.gaps, seen.synced), (0, 1));
    let first = seen.seqs[0];
    let contiguous: Vec<_> = (first..).take(seen.seqs.len()).collect();
    assert_eq!(seen.seqs, contiguous, "the other one was told everything");
    let events = 2 * ROUNDS * count;
    assert!(seen.seqs.len() >= events, "{} events", seen.seqs.len());
    let all = (events * LABELS * LABEL) as u64 / MEGABYTE;
    let kept = after.saturating_sub(before) / MEGABYTE;
    let more = after.saturating_sub(between) / MEGABYTE;
    println!("{kept} MB more after {all} MB of events, {more} MB of it in the second half");
    assert!(kept < 40, "{kept} MB more for {all} MB that nobody reads");
    assert!(more < 16, "{more} MB more by the second half");

    let newest = *seen.seqs.last().unwrap();
    let missed = catches_up(scene.channel(), idle, first - 1, newest).await;
    assert!(missed > 1000, "{missed}");
    let udid = scene.phone(0).udid().to_string();
    history::assert_leads(scene.channel(), &udid, &seen).await;
    drop(mirror);
    scene.end().await;
}
