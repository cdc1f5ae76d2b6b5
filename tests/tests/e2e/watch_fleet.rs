//! The fleet as a stream: whole, then every change, from any cursor, and alive.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::{Refusal, Rig, plain, plain_lab, refused, soon};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

mod crowds;

/// A stream and what it tells.
struct Watcher(Streaming<pb::WatchFleetResponse>);

impl Watcher {
    async fn open(rig: &Rig, request: pb::WatchFleetRequest) -> Self {
        Self::over(rig.channel(), request).await
    }

    async fn over(channel: Channel, request: pb::WatchFleetRequest) -> Self {
        let stream = FleetServiceClient::new(channel).watch_fleet(request).await;
        Self(stream.unwrap().into_inner())
    }

    async fn next(&mut self) -> Result<Option<(String, Item)>, Status> {
        let message = soon("a message", self.0.message()).await?;
        Ok(message.map(|message| (message.cursor, message.item.unwrap())))
    }

    /// The next message that is no heartbeat.
    async fn told(&mut self) -> (String, Item) {
        let told = async {
            loop {
                match self.next().await.unwrap().unwrap() {
                    (_, Item::Heartbeat(_)) => {}
                    told => return told,
                }
            }
        };
        soon("more than heartbeats", told).await
    }

    /// The parts of the snapshot that comes next, and where to resume behind
    /// it.
    async fn snapshot(&mut self) -> (Vec<pb::FleetSnapshot>, String) {
        let mut parts = Vec::new();
        loop {
            match self.told().await {
                (cursor, Item::Snapshot(part)) => {
                    assert_eq!(cursor, "", "nowhere to resume");
                    parts.push(part);
                }
                (cursor, Item::Synced(_)) => return (parts, cursor),
                (_, item) => panic!("{item:?} within a snapshot"),
            }
        }
    }

    async fn event(&mut self) -> (String, pb::FleetEvent) {
        match self.told().await {
            (cursor, Item::Event(event)) => (cursor, event),
            (_, item) => panic!("{item:?} and no event"),
        }
    }

    /// The ids of commands whose fates come next.
    async fn fates(&mut self, count: usize) -> Vec<String> {
        let mut ids = Vec::new();
        while ids.len() < count {
            match self.told().await.1 {
                Item::Event(event) => {
                    if let Some(Event::Command(fate)) = event.event {
                        ids.push(fate.command_id);
                    }
                }
                Item::Synced(_) => {}
                item @ (Item::Snapshot(_) | Item::Gap(_) | Item::Heartbeat(_)) => {
                    panic!("{item:?} and no event")
                }
            }
        }
        ids
    }

    /// How the stream ends, and what comes before that.
    async fn end(mut self) -> (Vec<Item>, Refusal) {
        let mut items = Vec::new();
        loop {
            match self.next().await {
                Ok(Some((_, item))) => items.push(item),
                Ok(None) => panic!("ended without a word"),
                Err(status) => return (items, status.into()),
            }
        }
    }
}

fn all() -> pb::WatchFleetRequest {
    pb::WatchFleetRequest::default()
}

fn after(cursor: &str) -> pb::WatchFleetRequest {
    pb::WatchFleetRequest {
        resume_cursor: cursor.to_owned(),
        ..all()
    }
}

fn only(types: &[pb::FleetEventType]) -> pb::WatchFleetRequest {
    pb::WatchFleetRequest {
        types: types.iter().map(|&wanted| wanted.into()).collect(),
        ..all()
    }
}

fn fates() -> pb::WatchFleetRequest {
    only(&[pb::FleetEventType::Command])
}

async fn press(rig: &Rig, id: &str) {
    plain::send(rig, &rig.udid(0), CommandKind::Button, id)
        .await
        .unwrap();
}

async fn listed(rig: &Rig) -> Vec<pb::Device> {
    let request = pb::ListDevicesRequest {
        page_size: 1000,
        ..pb::ListDevicesRequest::default()
    };
    let listed = rig.fleet().list_devices(request).await.unwrap();
    listed.into_inner().devices
}

/// A change of a phone of which every watcher hears.
async fn label(rig: &Rig, value: &str) {
    let request = pb::UpdateDeviceRequest {
        device: rig.udid(0),
        set_labels: [("round".to_owned(), value.to_owned())].into(),
        ..pb::UpdateDeviceRequest::default()
    };
    rig.fleet().update_device(request).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_comes_whole_in_parts_and_then_every_change() {
    let rig = Rig::plain(230).await;
    let mut watcher = Watcher::open(&rig, all()).await;
    let (parts, cursor) = watcher.snapshot().await;
    assert_ne!(cursor, "");
    let sizes: Vec<_> = parts.iter().map(|part| part.devices.len()).collect();
    assert_eq!(sizes, [100, 100, 30]);
    let hosts: Vec<_> = parts.iter().map(|part| part.mux_hosts.len()).collect();
    assert_eq!(hosts, [1, 0, 0]);
    let told: Vec<_> = parts.into_iter().flat_map(|part| part.devices).collect();
    assert_eq!(told, listed(&rig).await);

    let phone = rig.phone(7);
    let udid = phone.udid().to_string();
    phone.detach();
    let unplugged = loop {
        let (cursor, event) = watcher.event().await;
        assert_ne!(cursor, "");
        assert!(event.time.is_some());
        match event.event.unwrap() {
            // Others may still be told of although the snapshot has it.
            Event::DeviceChanged(changed)
                if changed.device.as_ref().unwrap().udid == udid
                    && changed.transition.as_ref().unwrap().reason != "PLUGGED" =>
            {
                break changed;
            }
            Event::DeviceChanged(_)
            | Event::Alarm(_)
            | Event::Command(_)
            | Event::HostChanged(_) => {}
        }
    };
    let (device, transition) = (unplugged.device.unwrap(), unplugged.transition.unwrap());
    assert_eq!(device.udid, udid);
    assert_eq!(device.state(), pb::DeviceState::Detached);
    assert_eq!(transition.device, udid);
    assert_eq!(transition.to(), pb::DeviceState::Detached);
    assert_eq!(transition.reason, "UNPLUGGED");
    assert_eq!(transition.seq, 0, "which only the ledger knows");
    drop(watcher);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fate_is_told_when_it_is_on_record_and_told_anew_when_it_is_corrected() {
    let rig = Rig::start(plain_lab(1, 0.02)).await;
    let mut watcher = Watcher::open(&rig, fates()).await;
    let (_, synced) = watcher.snapshot().await;
    press(&rig, "pressed").await;
    let (_, event) = watcher.event().await;
    let Some(Event::Command(fate)) = event.event else {
        panic!("{event:?}")
    };
    let expected = pb::CommandFate {
        command_id: "pressed".to_owned(),
        device: rig.udid(0),
        kind: pb::CommandKind::Button.into(),
        fate: pb::Fate::Completed.into(),
        effect: pb::Effect::Applied.into(),
        reason: None,
        revised: false,
    };
    assert_eq!(fate, expected);

    // The phone is unplugged while it is pressed, and cannot be asked for a
    // while.
    let phone = rig.phone(0);
    let slow = Injection::Slow {
        by: Duration::from_secs(20),
    };
    phone.fault(Fault::from(slow).on(CommandKind::Button));
    let unplug = async {
        phone.wait_until(|report| report.in_flight == 1).await;
        phone.detach();
    };
    let udid = rig.udid(0);
    let pressed = plain::send(&rig, &udid, CommandKind::Button, "lost");
    let lost = refused(tokio::join!(pressed, unplug).0);
    assert_eq!(lost.reason, "FATE_UNKNOWN", "{lost:?}");
    phone.attach();
    let mut words = Vec::new();
    while words.last() != Some(&(pb::Fate::Completed, true)) {
        if let Some(Event::Command(fate)) = watcher.event().await.1.event
            && fate.command_id == "lost"
        {
            words.push((fate.fate(), fate.revised));
        }
    }
    assert_eq!(
        words,
        [(pb::Fate::Unknown, false), (pb::Fate::Completed, true)]
    );

    let mut resumed = Watcher::open(&rig, after(&synced)).await;
    assert_eq!(resumed.fates(3).await, ["pressed", "lost", "lost"]);
    drop((watcher, resumed));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_cursor_goes_on_behind_its_message_with_nothing_twice_and_nothing_left_out() {
    let rig = Rig::plain(1).await;
    let mut watcher = Watcher::open(&rig, all()).await;
    let (_, synced) = watcher.snapshot().await;
    let mut told = vec![(synced, None)];
    for n in 0..20 {
        label(&rig, &n.to_string()).await;
        press(&rig, &format!("p-{n}")).await;
    }
    loop {
        let (cursor, event) = watcher.event().await;
        let is_last =
            matches!(&event.event, Some(Event::Command(fate)) if fate.command_id == "p-19");
        told.push((cursor, Some(event)));
        if is_last {
            break;
        }
    }
    let seqs: Vec<_> = told
        .iter()
        .filter_map(|(_, event)| Some(event.as_ref()?.seq))
        .collect();
    let first = seqs[0];
    assert_eq!(seqs, (first..first + seqs.len() as u64).collect::<Vec<_>>());

    for (n, (cursor, _)) in told.iter().enumerate() {
        let mut resumed = Watcher::open(&rig, after(cursor)).await;
        for (_, expected) in &told[n + 1..] {
            assert_eq!(Some(resumed.event().await.1), *expected);
        }
        let (at, item) = resumed.told().await;
        assert!(matches!(item, Item::Synced(_)), "{item:?}");
        assert_eq!(at, told.last().unwrap().0);
    }
    drop(watcher);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_resumed_is_a_gap_and_a_snapshot_follows() {
    let rig = Rig::plain(2).await;
    press(&rig, "before").await;
    let (_, earlier) = Watcher::open(&rig, all()).await.snapshot().await;
    let rig = rig.restart_gateway().await;
    let (_, own) = Watcher::open(&rig, all()).await.snapshot().await;
    let instance = own.split('-').next().unwrap();
    let ahead = format!("{instance}-18446744073709551615");
    for (id, cursor) in [("first", earlier), ("second", ahead)] {
        let mut watcher = Watcher::open(&rig, after(&cursor)).await;
        let (at, item) = watcher.told().await;
        assert_eq!(item, Item::Gap(pb::FleetGap { missed: None }), "{cursor}");
        assert_eq!(at, "", "a snapshot is due");
        let (parts, synced) = watcher.snapshot().await;
        assert_eq!(parts[0].devices.len(), 2);
        press(&rig, id).await;
        let mut resumed = Watcher::open(&rig, after(&synced)).await;
        assert_eq!(resumed.fates(1).await, [id]);
        assert_eq!(watcher.fates(1).await, [id]);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_used_is_refused_field_by_field() {
    let rig = Rig::plain(1).await;
    let request = pb::WatchFleetRequest {
        resume_cursor: "no cursor".to_owned(),
        types: vec![pb::FleetEventType::Device.into(), 99],
    };
    let refusal = refused(rig.fleet().watch_fleet(request).await);
    assert_eq!(refusal.code, Code::InvalidArgument);
    let fields: Vec<_> = refusal.violations.iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["resume_cursor", "types"]);
    let unspecified = only(&[pb::FleetEventType::Unspecified]);
    let refusal = refused(rig.fleet().watch_fleet(unspecified).await);
    assert_eq!(refusal.violations[0].0, "types");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_filled_with_heartbeats_whose_cursors_pass_what_was_left_out() {
    let rig = Rig::configured(plain_lab(1, 0.02), |config| {
        config.server.heartbeat_interval = Duration::from_millis(20);
    })
    .await;
    let mut hosts = Watcher::open(&rig, only(&[pb::FleetEventType::Host])).await;
    let (_, first) = hosts.snapshot().await;
    let beat = hosts.next().await.unwrap().unwrap();
    assert_eq!(beat.0, first);
    assert!(
        matches!(beat.1, Item::Heartbeat(pb::Heartbeat { time: Some(_) })),
        "{beat:?}"
    );

    press(&rig, "left-out").await;
    let (_, newest) = Watcher::open(&rig, all()).await.snapshot().await;
    loop {
        let (cursor, item) = hosts.next().await.unwrap().unwrap();
        assert!(matches!(item, Item::Heartbeat(_)), "{item:?}");
        if cursor == newest {
            break;
        }
    }
    let mut resumed = Watcher::open(&rig, after(&newest)).await;
    let (_, item) = resumed.told().await;
    assert!(matches!(item, Item::Synced(_)), "{item:?}");
    drop((hosts, resumed));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_wanted_types_are_told() {
    use pb::FleetEventType::{Command, Device, Host};
    let rig = Rig::plain(1).await;
    let mut watchers = Vec::new();
    for types in [&[Command][..], &[Device], &[Command, Device], &[]] {
        let mut watcher = Watcher::open(&rig, only(types)).await;
        watcher.snapshot().await;
        watchers.push((types, watcher));
    }
    for n in 0..5 {
        label(&rig, &n.to_string()).await;
        press(&rig, &format!("p-{n}")).await;
    }
    rig.phone(0).detach();
    for (types, mut watcher) in watchers {
        let mut seen = Vec::new();
        // The last event of each kind ends it.
        loop {
            let (is, is_last) = match watcher.event().await.1.event.unwrap() {
                Event::Command(fate) => (Command, fate.command_id == "p-4"),
                Event::DeviceChanged(changed) => {
                    let device = changed.device.unwrap();
                    (Device, device.state() == pb::DeviceState::Detached)
                }
                Event::HostChanged(_) => (Host, false),
                Event::Alarm(alarm) => panic!("{alarm:?}"),
            };
            assert!(types.is_empty() || types.contains(&is), "{is:?}");
            seen.push(is);
            if is_last && (is == Device || types == [Command]) {
                break;
            }
        }
        let presses = seen.iter().filter(|&&is| is == Command).count();
        assert_eq!(presses, if types == [Device] { 0 } else { 5 });
    }
    rig.stop().await;
}
