//! The fleet: every phone that is known, and the session of each that has been
//! asked for something.
//!
//! ```text
//! usbmuxd ─ inventory ─► watcher ─► roster ◄─ configuration
//!                                     │ name ─► UDID, port
//!                                     ▼
//!                         sessions: one per phone, spawned at its first command
//! ```
//!
//! A session belongs to a phone and not to a connection: it stays when the
//! phone is unplugged, and a command to a phone that is not there goes through
//! it like any other and is answered, and recorded, as not sent.

mod roster;
pub(crate) mod settings;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fleetgate_device::{
    Dialer, HostConfig, Hosts, HostsTask, HostsView, RunnerExchange, UsbmuxdConfig,
};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use fleetgate_session::{Condition, Session, SessionConfig, SessionTask, Unsettled};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use tracing::{Instrument, info, info_span};

use crate::config::{Devices, RunnerPort};
use crate::convert::timestamp;
use crate::recorder::Recorder;
use roster::{DeviceState, Entry, Roster};
use settings::Settings;

/// What a fleet is made of.
#[derive(Debug)]
pub(crate) struct FleetConfig {
    pub(crate) dialer: Dialer,
    pub(crate) usbmuxd: UsbmuxdConfig,
    pub(crate) devices: Devices,
    pub(crate) default_port: Option<RunnerPort>,
    pub(crate) session: SessionConfig,
    /// Mutations that an earlier gateway left without a known fate.
    pub(crate) unsettled: HashMap<Udid, Vec<Unsettled>>,
}

/// All phones and their sessions.
#[derive(Debug)]
pub(crate) struct Fleet {
    hosts: Hosts,
    address: String,
    settle: Duration,
    roster: Arc<watch::Sender<Roster>>,
    sessions: Mutex<Sessions>,
    recorder: Recorder,
    settings: Settings,
    config: SessionConfig,
}

#[derive(Debug, Default)]
struct Sessions {
    closed: bool,
    running: HashMap<Udid, (Session, SessionTask)>,
    /// What an earlier gateway left behind, until a phone's session takes it.
    unsettled: HashMap<Udid, Vec<Unsettled>>,
}

/// The tasks that keep a fleet's roster up to date; they end with this.
#[derive(Debug)]
pub(crate) struct FleetTasks {
    hosts: HostsTask,
    watcher: JoinSet<()>,
}

/// Why a phone has no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// Where its runner listens is not known.
    PortUnknown,
    /// No new ones are made any more.
    Draining,
}

impl Fleet {
    /// Starts to watch usbmuxd.
    pub(crate) fn spawn(
        config: FleetConfig,
        recorder: Recorder,
        settings: Settings,
    ) -> (Self, FleetTasks) {
        let FleetConfig {
            dialer,
            usbmuxd: mux,
            devices,
            default_port,
            session,
            unsettled,
        } = config;
        let (address, settle) = (dialer.label().to_owned(), mux.settle);
        let (hosts, hosts_task) = Hosts::spawn(vec![HostConfig {
            name: "local".into(),
            dialer,
            usbmuxd: mux,
        }]);
        let now = SystemTime::now();
        let mut roster = Roster::new(&devices, default_port, now);
        // A phone that does not come back must not keep its commands from a
        // fate: it is asked after like any other, and is then not there.
        for udid in unsettled.keys() {
            roster.remember(udid, now);
        }
        let roster = Arc::new(watch::Sender::new(roster));
        let mut watcher = JoinSet::new();
        let watch = follow(hosts.view(), Arc::clone(&roster));
        watcher.spawn(watch.instrument(info_span!("fleet")));
        let sessions = Mutex::new(Sessions {
            unsettled,
            ..Sessions::default()
        });
        let fleet = Self {
            hosts,
            address,
            settle,
            roster,
            sessions,
            recorder,
            settings,
            config: session,
        };
        (
            fleet,
            FleetTasks {
                hosts: hosts_task,
                watcher,
            },
        )
    }

    /// The phone that a caller means, by a UDID in any spelling or an alias.
    ///
    /// Where usbmuxd has been connected to just now, a phone of which nothing
    /// is known yet gets a moment to be announced.
    pub(crate) async fn resolve(&self, name: &str) -> Option<Udid> {
        let mut roster = self.roster.subscribe();
        let settled = {
            let view = self.hosts.view();
            let since = view.borrow().hosts[0].since;
            since + self.settle
        };
        let known = roster.wait_for(|roster| roster.resolve(name).is_some());
        let known = timeout_at(settled, known).await.ok()?.ok()?;
        known.resolve(name)
    }

    /// A phone by its alias, or any UDID, whether anything is known of it or
    /// not.
    pub(crate) fn name(&self, name: &str) -> Option<Udid> {
        name.parse()
            .ok()
            .or_else(|| self.roster.borrow().resolve(name))
    }

    /// The session of a phone that is known.
    pub(crate) fn session(&self, device: &Udid) -> Result<Session, NoSession> {
        let port = self
            .roster
            .borrow()
            .get(device)
            .and_then(|entry| entry.runner_port);
        let mut sessions = self.sessions();
        if let Some((session, _)) = sessions.running.get(device) {
            return Ok(session.clone());
        }
        if sessions.closed {
            return Err(NoSession::Draining);
        }
        let port = port.ok_or(NoSession::PortUnknown)?;
        let unsettled = sessions.unsettled.remove(device).unwrap_or_default();
        let exchange = RunnerExchange::new(
            self.hosts.clone(),
            device.clone(),
            watch::channel(Some(port.get())).1,
        );
        let (session, task) = Session::spawn(
            device.clone(),
            exchange,
            self.recorder.clone(),
            self.config.clone(),
            unsettled,
        );
        sessions
            .running
            .insert(device.clone(), (session.clone(), task));
        Ok(session)
    }

    /// Starts the session of every phone that an earlier gateway left something
    /// behind at, as soon as it is known where its runner is.
    pub(crate) async fn take_over(&self) {
        let mut roster = self.roster.subscribe();
        loop {
            let left: Vec<Udid> = self.sessions().unsettled.keys().cloned().collect();
            if left.is_empty() {
                return;
            }
            for device in left {
                match self.session(&device) {
                    Ok(_session) => {
                        info!(device.id = %device, "looking into what was left without a fate");
                    }
                    Err(NoSession::PortUnknown) => {}
                    Err(NoSession::Draining) => return,
                }
            }
            if roster.changed().await.is_err() {
                return;
            }
        }
    }

    /// What operators have said about the phones.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// True once no command is admitted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.sessions().closed
    }

    /// Admits no command any more, lets those that were admitted go on for
    /// `grace`, and returns when the fate of each is on record.
    pub(crate) async fn close(&self, grace: Duration) {
        let running = {
            let mut sessions = self.sessions();
            sessions.closed = true;
            std::mem::take(&mut sessions.running)
        };
        join_all(running.into_values().map(|(_, task)| task.shutdown(grace))).await;
    }

    /// At most `limit` phones after `udid`, in order.
    pub(crate) fn devices(&self, after: Option<&Udid>, limit: usize) -> Vec<pb::Device> {
        let roster = self.roster.borrow();
        roster
            .after(after)
            .take(limit)
            .map(|(udid, entry)| self.message(udid, entry))
            .collect()
    }

    /// The phone that a caller means.
    pub(crate) async fn device(&self, name: &str) -> Option<pb::Device> {
        let udid = self.resolve(name).await?;
        self.roster
            .borrow()
            .get(&udid)
            .map(|entry| self.message(&udid, entry))
    }

    /// The usbmuxd behind this fleet.
    pub(crate) fn mux_host(&self) -> pb::MuxHost {
        let view = self.hosts.view();
        let host = view.borrow().hosts[0].clone();
        pb::MuxHost {
            address: self.address.clone(),
            connected: host.connected,
            generation: host.generation,
            last_error: host.last_error,
            ..pb::MuxHost::default()
        }
    }

    fn message(&self, udid: &Udid, entry: &Entry) -> pb::Device {
        let load = self
            .sessions()
            .running
            .get(udid)
            .map(|(session, _)| session.load());
        let load = load.unwrap_or_default();
        let state = match entry.state {
            DeviceState::Detached => pb::DeviceState::Detached,
            DeviceState::Attached => match load.condition {
                Condition::Ready => pb::DeviceState::Attached,
                Condition::Reconciling => pb::DeviceState::Reconciling,
                Condition::Draining { .. } => pb::DeviceState::Draining,
                Condition::Wedged => pb::DeviceState::Wedged,
            },
        };
        pb::Device {
            udid: udid.to_string(),
            alias: entry.alias.as_ref().map(ToString::to_string),
            state: state.into(),
            runner_port: entry.runner_port.map(|port| port.get().into()),
            queued_commands: u32::try_from(load.queued).unwrap_or(u32::MAX),
            command_in_flight: load.in_flight.map(Into::into),
            mux_address: entry.seen.then(|| self.address.clone()),
            state_time: Some(timestamp(entry.state_time)),
            ..pb::Device::default()
        }
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Nothing panics between two steps of a change, so that a poisoned map
        // is whole.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FleetTasks {
    /// Owns a task that ends with the fleet's own.
    pub(crate) fn own(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.watcher.spawn(task);
    }

    /// Stops to watch usbmuxd.
    pub(crate) async fn shutdown(mut self) {
        self.watcher.shutdown().await;
        self.hosts.shutdown().await;
    }
}

/// Takes every change of the table over into the roster.
async fn follow(mut view: watch::Receiver<Arc<HostsView>>, roster: Arc<watch::Sender<Roster>>) {
    loop {
        let attached = {
            let view = view.borrow_and_update();
            let by_cable = view.devices.keys().filter(|udid| view.is_reachable(udid));
            by_cable.cloned().collect::<HashSet<_>>()
        };
        info!(attached = attached.len(), "phones");
        roster.send_modify(|roster| roster.observe(&attached, SystemTime::now()));
        if view.changed().await.is_err() {
            break;
        }
    }
}
