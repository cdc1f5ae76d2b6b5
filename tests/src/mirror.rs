//! The fleet as a watcher knows it: a client of `WatchFleet` that keeps every
//! phone's newest message and all that it was told on the way.
//!
//! It applies the stream as its contract says and nothing else, so that a
//! mirror that is wrong shows a stream that is.

use std::collections::BTreeMap;

use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::watch_fleet_response::Item;
use fleetgate_proto::v1::{
    AlarmChanged, CommandFate, Device, DeviceState, DeviceTransition, MuxHost, WatchFleetRequest,
    WatchFleetResponse,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;

use crate::PATIENCE;

/// What a watcher knows.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The phones by UDID.
    pub devices: BTreeMap<String, Device>,
    /// The hosts by name.
    pub hosts: BTreeMap<String, MuxHost>,
    /// Every transition, in the order in which it was told.
    pub transitions: Vec<DeviceTransition>,
    /// Every alarm that began or ended.
    pub alarms: Vec<AlarmChanged>,
    /// Every fate.
    pub commands: Vec<CommandFate>,
    /// The numbers of the events.
    pub seqs: Vec<u64>,
    /// How often the watcher was told that it knows all.
    pub synced: u32,
    /// How often events were missing.
    pub gaps: u32,
    /// Heartbeats.
    pub heartbeats: u32,
    /// Where to resume.
    pub cursor: String,
    /// How the stream ended, if it has.
    pub ended: Option<Result<(), Status>>,
}

impl Seen {
    /// How many phones are in this state, by what is known now.
    pub fn count(&self, state: DeviceState) -> usize {
        let now = self.devices.values().filter(|device| !device.stale);
        now.filter(|device| device.state() == state).count()
    }

    /// A phone's state, unless nothing is known of it.
    pub fn state(&self, udid: &str) -> Option<DeviceState> {
        self.devices.get(udid).map(Device::state)
    }

    /// The reasons of a phone's transitions, in order.
    pub fn reasons(&self, udid: &str) -> Vec<&str> {
        let own = self.transitions.iter().filter(|told| told.device == udid);
        own.map(|told| told.reason.as_str()).collect()
    }

    fn apply(&mut self, message: WatchFleetResponse) {
        let WatchFleetResponse { cursor, item } = message;
        if !cursor.is_empty() {
            self.cursor = cursor;
        }
        match item.expect("a message says what it is") {
            Item::Snapshot(part) => {
                for device in part.devices {
                    self.devices.insert(device.udid.clone(), device);
                }
                for host in part.mux_hosts {
                    self.hosts.insert(host.name.clone(), host);
                }
            }
            Item::Synced(_) => self.synced += 1,
            Item::Gap(_) => {
                self.gaps += 1;
                self.devices.clear();
                self.hosts.clear();
            }
            Item::Heartbeat(_) => self.heartbeats += 1,
            Item::Event(event) => {
                self.seqs.push(event.seq);
                match event.event.expect("an event says what happened") {
                    Event::DeviceChanged(changed) => {
                        let device = changed.device.expect("the phone");
                        self.devices.insert(device.udid.clone(), device);
                        self.transitions.extend(changed.transition);
                    }
                    Event::Alarm(alarm) => self.alarms.push(alarm),
                    Event::Command(fate) => self.commands.push(fate),
                    Event::HostChanged(host) => {
                        self.hosts.insert(host.name.clone(), host);
                    }
                }
            }
        }
    }
}

/// A watcher; it ends with this.
#[derive(Debug)]
pub struct Mirror {
    seen: watch::Receiver<Seen>,
    _task: JoinSet<()>,
}

impl Mirror {
    /// Begins with a snapshot.
    pub async fn follow(channel: Channel) -> Self {
        Self::request(channel, WatchFleetRequest::default()).await
    }

    /// Begins as the request says.
    pub async fn request(channel: Channel, request: WatchFleetRequest) -> Self {
        let stream = FleetServiceClient::new(channel).watch_fleet(request).await;
        let mut stream = stream.expect("a stream").into_inner();
        let (tell, seen) = watch::channel(Seen::default());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let ended = loop {
                match stream.message().await {
                    Ok(Some(message)) => tell.send_modify(|seen| seen.apply(message)),
                    Ok(None) => break Ok(()),
                    Err(status) => break Err(status),
                }
            };
            tell.send_modify(|seen| seen.ended = Some(ended));
        });
        Self { seen, _task: task }
    }

    /// What is known now.
    pub fn seen(&self) -> Seen {
        self.seen.borrow().clone()
    }

    /// Looks at what is known now, without a copy.
    pub fn look<T>(&self, at: impl FnOnce(&Seen) -> T) -> T {
        at(&self.seen.borrow())
    }

    /// Waits until what is known is like this.
    pub async fn until(&mut self, what: &str, is: impl FnMut(&Seen) -> bool) -> Seen {
        // The stream may end meanwhile; what was known then stays.
        if let Ok(Ok(seen)) = timeout(PATIENCE, self.seen.wait_for(is)).await {
            return seen.clone();
        }
        panic!("{what} did not come; this did: {:#?}", self.seen.borrow());
    }

    /// Waits until a phone is in this state, by what is known now and not last.
    pub async fn until_state(&mut self, udid: &str, state: DeviceState) -> Device {
        let is = |seen: &Seen| {
            let device = seen.devices.get(udid);
            device.is_some_and(|device| device.state() == state && !device.stale)
        };
        let what = format!("{udid} in {}", state.as_str_name());
        let mut seen = self.until(&what, is).await;
        seen.devices.remove(udid).expect("it is there")
    }
}
