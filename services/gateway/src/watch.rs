//! `WatchFleet`: the fleet as it is, then every change.
//!
//! ```text
//!   no cursor ──► SNAPSHOT ── whole ──► synced ──► EVENTS ◄──── a cursor
//!                    ▲                              │  ▲
//!                    └── gap ── missed some ────────┤  ├── published
//!                                                   └──► WAITING ── heartbeat
//!                                                          └── stop ──► UNAVAILABLE
//! ```
//!
//! The newest event is noted before the first part of a snapshot is made, and
//! what follows it is told after the last: a change that comes in between is
//! told twice rather than not at all. Parts and events are taken when the
//! reader is ready for them, so that a slow one costs nothing; where the feed
//! has overtaken it, it is told of the gap and gets a snapshot.
//!
//! Invariants: events come in order, and none of the wanted types is left out
//! but behind a gap or before a snapshot; nothing is told of a phone that does
//! not exist for the watcher, as its labels are when its turn comes.

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::vec;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_runner::Udid;
use futures_util::Stream;
use futures_util::stream::unfold;
use prost::Message;
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::access::{Caller, sees_everything};
use crate::convert::timestamp;
use crate::core::Core;
use crate::deadline::Deadline;
use crate::feed::{Cursor, Feed, Followed};
use crate::status;

/// The most phones in one part of a snapshot.
const PART: usize = 100;

/// A part is not added to once it has so many bytes. With the longest labels a
/// phone has some 25 KiB, and a client takes 4 MiB by default.
const PART_BYTES: usize = 1024 * 1024;

/// How many events are taken from the feed at once.
const PAGE: usize = 64;

/// What a stream is made of.
#[derive(Debug)]
pub(crate) struct WatchConfig {
    /// Where to resume; a snapshot comes first if this is `None`.
    pub(crate) after: Option<Cursor>,
    pub(crate) wanted: Wanted,
    /// Who is told, and so of which phones.
    pub(crate) caller: Caller,
    pub(crate) deadline: Deadline,
}

/// Which events are wanted: all, unless some are named.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wanted(Vec<pb::FleetEventType>);

impl Wanted {
    /// Those of a request; `None` if one of them is none.
    pub(crate) fn of(types: Vec<i32>) -> Option<Self> {
        let known = |number| match pb::FleetEventType::try_from(number) {
            Ok(pb::FleetEventType::Unspecified) | Err(_) => None,
            Ok(known) => Some(known),
        };
        types
            .into_iter()
            .map(known)
            .collect::<Option<_>>()
            .map(Self)
    }

    fn includes(&self, event: &pb::FleetEvent) -> bool {
        let is_of = match event.event {
            Some(Event::DeviceChanged(_)) => pb::FleetEventType::Device,
            Some(Event::Alarm(_)) => pb::FleetEventType::Alarm,
            Some(Event::Command(_)) => pb::FleetEventType::Command,
            Some(Event::HostChanged(_)) => pb::FleetEventType::Host,
            None => pb::FleetEventType::Unspecified,
        };
        self.0.is_empty() || self.0.contains(&is_of)
    }
}

/// One watcher.
#[derive(Debug)]
struct Watch {
    core: Core,
    head: watch::Receiver<u64>,
    wanted: Wanted,
    caller: Caller,
    heartbeat: Duration,
    stop: CancellationToken,
    stage: Stage,
    /// Behind the last event that was told or left out.
    cursor: Cursor,
    page: vec::IntoIter<Arc<pb::FleetEvent>>,
    /// The event with which the watcher knows all, until that has been told.
    sync_after: Option<u64>,
    /// When something was told last.
    told: Instant,
}

/// What is told next.
#[derive(Debug)]
enum Stage {
    /// That events before the cursor are missing.
    Gap { missed: Option<u64> },
    /// The phones after this one, and the hosts before the first.
    Snapshot { after: Option<Udid> },
    /// What happened, and what happens.
    Events,
}

/// Why a stream ends.
#[derive(Debug)]
struct Draining;

/// The messages of one watcher.
pub(crate) fn watch(
    core: Core,
    config: WatchConfig,
) -> impl Stream<Item = Result<pb::WatchFleetResponse, Status>> + Send {
    let WatchConfig {
        after,
        wanted,
        caller,
        deadline,
    } = config;
    let now = core.feed().now();
    let (stage, cursor) = match after {
        None => (Stage::Snapshot { after: None }, now),
        // Whether there is anything to go on from.
        Some(after) => match core.feed().after(after, 0) {
            Followed::Events(_none_wanted) => (Stage::Events, after),
            Followed::Gap { missed, resume } => (Stage::Gap { missed }, resume),
        },
    };
    let watch = Watch {
        head: core.feed().head(),
        wanted,
        caller,
        heartbeat: core.heartbeat_interval(),
        stop: core.stop().clone(),
        stage,
        cursor,
        page: Vec::new().into_iter(),
        sync_after: Some(now.seq()),
        told: Instant::now(),
        core,
    };
    unfold(Some(watch), move |watch| async move {
        let mut watch = watch?;
        match deadline.wait(watch.next()).await {
            Ok(Ok(message)) => {
                watch.told = Instant::now();
                Some((Ok(message), Some(watch)))
            }
            Ok(Err(Draining)) => Some((Err(status::stream_draining()), None)),
            Err(_passed) => Some((Err(status::deadline_exceeded()), None)),
        }
    })
}

impl Watch {
    async fn next(&mut self) -> Result<pb::WatchFleetResponse, Draining> {
        match &self.stage {
            Stage::Gap { missed } => {
                let missed = *missed;
                Ok(self.gap(missed))
            }
            Stage::Snapshot { after } => {
                let after = after.clone();
                Ok(self.part(after.as_ref()))
            }
            Stage::Events => self.event().await,
        }
    }

    /// That events are missing; a snapshot is next.
    fn gap(&mut self, missed: Option<u64>) -> pb::WatchFleetResponse {
        self.stage = Stage::Snapshot { after: None };
        unresumable(Item::Gap(pb::FleetGap { missed }))
    }

    /// Part of the fleet as it is.
    fn part(&mut self, after: Option<&Udid>) -> pb::WatchFleetResponse {
        let fleet = self.core.fleet();
        let visible = |device: &Udid| self.core.access().may_see(&self.caller, device);
        let mut devices = fleet.devices_that(visible, after, PART + 1);
        let fits = fitting(&devices);
        let is_whole = fits == devices.len();
        devices.truncate(fits);
        let last = devices.last().and_then(|device| device.udid.parse().ok());
        self.stage = match last {
            Some(last) if !is_whole => Stage::Snapshot { after: Some(last) },
            Some(_) | None => Stage::Events,
        };
        let mux_hosts = match after {
            Some(_) => Vec::new(),
            None => fleet.mux_hosts(),
        };
        unresumable(Item::Snapshot(pb::FleetSnapshot { devices, mux_hosts }))
    }

    /// The next event, or what is to be told between events.
    async fn event(&mut self) -> Result<pb::WatchFleetResponse, Draining> {
        loop {
            // Others have a turn, however many events are left out.
            consume_budget().await;
            while let Some(event) = self.page.next() {
                self.cursor = self.feed().at(event.seq);
                if self.wanted.includes(&event) && self.may_see(&event) {
                    return Ok(self.message(Item::Event(pb::FleetEvent::clone(&event))));
                }
            }
            if self
                .sync_after
                .take_if(|seq| *seq <= self.cursor.seq())
                .is_some()
            {
                return Ok(self.message(Item::Synced(pb::FleetSynced {})));
            }
            // Before the look, so that no change after it is missed.
            self.head.mark_unchanged();
            match self.feed().after(self.cursor, PAGE) {
                Followed::Events(events) if !events.is_empty() => self.page = events.into_iter(),
                Followed::Events(_nothing_new) => {
                    if let Some(beat) = self.wait().await? {
                        return Ok(beat);
                    }
                }
                Followed::Gap { missed, resume } => {
                    self.cursor = resume;
                    self.sync_after = Some(resume.seq());
                    return Ok(self.gap(missed));
                }
            }
            if self.next_beat() <= Instant::now() {
                return Ok(self.beat());
            }
        }
    }

    /// Whether an event is of a phone that exists for the watcher, or of none.
    fn may_see(&self, event: &pb::FleetEvent) -> bool {
        let device = match &event.event {
            Some(Event::DeviceChanged(changed)) => {
                changed.device.as_ref().map(|device| &device.udid)
            }
            Some(Event::Alarm(alarm)) => Some(&alarm.device),
            Some(Event::Command(command)) => Some(&command.device),
            Some(Event::HostChanged(_)) | None => None,
        };
        sees_everything(&self.caller)
            || device.is_none_or(|device| {
                let device = device.parse();
                device.is_ok_and(|device| self.core.access().may_see(&self.caller, &device))
            })
    }

    /// Waits for something to happen; gives a heartbeat if that takes long.
    async fn wait(&mut self) -> Result<Option<pb::WatchFleetResponse>, Draining> {
        let next_beat = self.next_beat();
        tokio::select! {
            biased;
            changed = self.head.changed() => match changed {
                Ok(()) => Ok(None),
                Err(_closed) => Err(Draining),
            },
            () = self.stop.cancelled() => Err(Draining),
            () = sleep_until(next_beat) => Ok(Some(self.beat())),
        }
    }

    fn next_beat(&self) -> Instant {
        self.told + self.heartbeat
    }

    fn beat(&self) -> pb::WatchFleetResponse {
        self.message(Item::Heartbeat(pb::Heartbeat {
            time: Some(timestamp(SystemTime::now())),
        }))
    }

    fn message(&self, item: Item) -> pb::WatchFleetResponse {
        pb::WatchFleetResponse {
            cursor: self.cursor.to_string(),
            item: Some(item),
        }
    }

    fn feed(&self) -> &Feed {
        self.core.feed()
    }
}

/// A message behind which there is nowhere to resume.
fn unresumable(item: Item) -> pb::WatchFleetResponse {
    pb::WatchFleetResponse {
        cursor: String::new(),
        item: Some(item),
    }
}

/// How many of these phones one part has room for: one at least, if there is
/// one.
fn fitting(devices: &[pb::Device]) -> usize {
    let mut bytes = 0;
    devices
        .iter()
        .take(PART)
        .take_while(|device| {
            let fits = bytes < PART_BYTES;
            bytes += device.encoded_len();
            fits
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(count: usize, label_bytes: usize) -> Vec<pb::Device> {
        let device = |n: usize| pb::Device {
            udid: n.to_string(),
            labels: [("label".to_owned(), "x".repeat(label_bytes))].into(),
            ..pb::Device::default()
        };
        (0..count).map(device).collect()
    }

    #[test]
    fn a_part_is_bounded_in_phones_and_in_bytes_and_never_empty_for_nothing() {
        assert_eq!(fitting(&devices(0, 10)), 0);
        assert_eq!(fitting(&devices(7, 10)), 7);
        assert_eq!(fitting(&devices(PART + 1, 10)), PART);
        assert_eq!(fitting(&devices(9, PART_BYTES / 4)), 4);
        assert_eq!(fitting(&devices(2, 3 * PART_BYTES)), 1);
    }

    #[test]
    fn every_event_is_of_one_type_and_no_type_means_all() {
        let event = |event| pb::FleetEvent {
            event: Some(event),
            ..pb::FleetEvent::default()
        };
        let events = [
            Event::DeviceChanged(pb::DeviceChanged::default()),
            Event::Alarm(pb::AlarmChanged::default()),
            Event::Command(pb::CommandFate::default()),
            Event::HostChanged(pb::MuxHost::default()),
        ]
        .map(event);
        for (n, number) in (1..=4).enumerate() {
            let wanted = Wanted::of(vec![number]).unwrap();
            let told: Vec<_> = events.iter().map(|event| wanted.includes(event)).collect();
            let expected: Vec<_> = (0..4).map(|other| other == n).collect();
            assert_eq!(told, expected, "{wanted:?}");
        }
        let all = Wanted::of(Vec::new()).unwrap();
        assert!(events.iter().all(|event| all.includes(event)));
        for unknown in [0, 5, -1] {
            assert_eq!(Wanted::of(vec![1, unknown]), None);
        }
    }
}
