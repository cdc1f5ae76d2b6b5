//! One phone as everybody but its keeper sees it: what is told of it, where
//! commands for it go, and how its keeper is given orders.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use fleetgate_device::Facts;
use fleetgate_ledger::DeviceSettings;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use fleetgate_session::Session;
use tokio::sync::{Notify, watch};

use super::ground::HostName;
use super::life::{Reason, Seen, State};
use crate::config::{DeviceConfig, LaunchWay};
use crate::convert::{cordon, timestamp};

/// Where a phone is, as the usbmuxds tell it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// By cable.
    pub(super) seen: Option<Seen>,
    /// Changes whenever it has come to trust its host.
    pub(super) paired_event: u64,
}

/// What is told of a phone.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Face {
    pub(super) state: State,
    pub(super) since: SystemTime,
    pub(super) reason: Reason,
    pub(super) detail: Option<String>,
    /// The usbmuxd that it was last seen on.
    pub(super) host: Option<usize>,
    pub(super) stale: bool,
    pub(super) facts: Facts,
    pub(super) trusted: Option<bool>,
    pub(super) alarm: Option<pb::Alarm>,
    pub(super) port: Option<u16>,
    pub(super) runner: RunnerFace,
}

/// What is told of its runner.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct RunnerFace {
    pub(super) launches: u32,
    pub(super) launch_time: Option<SystemTime>,
    pub(super) pid: Option<u32>,
    pub(super) failures: u32,
    pub(super) last_failure: Option<pb::LaunchFailure>,
    pub(super) next_launch: Option<SystemTime>,
    pub(super) suppressed_issues: Option<u64>,
    pub(super) recorded_failures: Option<u64>,
}

/// What changes with every question, and is no news.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pulse {
    pub(super) at: SystemTime,
    pub(super) uptime: Option<Duration>,
}

/// What an operator wants of a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) force: bool,
    pub(super) reason: String,
}

/// One phone.
#[derive(Debug)]
pub(super) struct Phone {
    pub(super) udid: Udid,
    /// What the configuration says of it.
    pub(super) config: Option<DeviceConfig>,
    pub(super) sight: watch::Sender<Sight>,
    /// How its runner comes up.
    pub(super) way: watch::Sender<Option<LaunchWay>>,
    /// Where its runner listens.
    pub(super) port: watch::Sender<Option<u16>>,
    pub(super) session: OnceLock<Session>,
    told: Mutex<Told>,
    order: Mutex<Option<Order>>,
    bell: Notify,
}

#[derive(Debug)]
struct Told {
    face: Face,
    pulse: Option<Pulse>,
}

impl Phone {
    /// A phone that nobody has seen yet.
    pub(super) fn new(
        udid: Udid,
        config: Option<DeviceConfig>,
        way: Option<LaunchWay>,
        now: SystemTime,
    ) -> Self {
        let port = match &way {
            Some(LaunchWay::Static(port)) => Some(port.get()),
            Some(LaunchWay::Command(_)) | None => None,
        };
        let face = Face {
            state: State::Detached,
            since: now,
            reason: Reason::Unplugged,
            detail: None,
            host: None,
            stale: false,
            facts: Facts::default(),
            trusted: None,
            alarm: None,
            port,
            runner: RunnerFace::default(),
        };
        Self {
            udid,
            config,
            sight: watch::Sender::default(),
            way: watch::Sender::new(way),
            port: watch::Sender::new(port),
            session: OnceLock::new(),
            told: Mutex::new(Told { face, pulse: None }),
            order: Mutex::default(),
            bell: Notify::new(),
        }
    }

    /// What is told of it.
    pub(super) fn face(&self) -> Face {
        lock(&self.told).face.clone()
    }

    /// Its state.
    pub(super) fn state(&self) -> State {
        lock(&self.told).face.state
    }

    /// Tells something else from now on.
    pub(super) fn tell(&self, face: &Face) {
        lock(&self.told).face.clone_from(face);
    }

    /// It has answered.
    pub(super) fn beat(&self, pulse: Pulse) {
        lock(&self.told).pulse = Some(pulse);
    }

    /// Gives its keeper an order. One that has not been taken yet counts no
    /// more, but for its force.
    pub(super) fn order(&self, order: Order) {
        let mut slot = lock(&self.order);
        let force = order.force || slot.as_ref().is_some_and(|before| before.force);
        *slot = Some(Order { force, ..order });
        drop(slot);
        self.bell.notify_one();
    }

    /// The next order.
    pub(super) async fn ordered(&self) -> Order {
        loop {
            let order = lock(&self.order).take();
            match order {
                Some(order) => return order,
                None => self.bell.notified().await,
            }
        }
    }

    /// The phone in the API's words; `log` is where its runner's output goes.
    pub(super) fn message(
        &self,
        settings: DeviceSettings,
        hosts: &[HostName],
        log: Option<String>,
    ) -> pb::Device {
        let load = self.session.get().map(Session::load).unwrap_or_default();
        let told = lock(&self.told);
        let Told { face, pulse } = &*told;
        let host = face.host.and_then(|host| hosts.get(host));
        let config = self.config.as_ref();
        let own = |of: fn(&DeviceConfig) -> &Option<String>, told: &Option<String>| {
            config
                .and_then(|config| of(config).clone())
                .or_else(|| told.clone())
        };
        pb::Device {
            udid: self.udid.to_string(),
            alias: settings.alias,
            state: pb::DeviceState::from(face.state).into(),
            runner_port: face.port.map(Into::into),
            queued_commands: u32::try_from(load.queued).unwrap_or(u32::MAX),
            command_in_flight: load.in_flight.map(Into::into),
            mux_address: host.map(|host| host.address.clone()),
            state_time: Some(timestamp(face.since)),
            state_reason: face.reason.to_string(),
            state_detail: face.detail.clone(),
            stale: face.stale,
            host: host.map(|host| host.name.clone()),
            name: own(|config| &config.name, &face.facts.name),
            model: own(|config| &config.model, &face.facts.model),
            os_version: own(|config| &config.os_version, &face.facts.os_version),
            labels: settings.labels.into_iter().collect(),
            trusted: face.trusted,
            cordon: settings.cordon.map(cordon),
            runner: self.runner(face, *pulse, log),
            alarms: face.alarm.clone().into_iter().collect(),
            // Known to those who lend it.
            lease: None,
        }
    }

    fn runner(&self, face: &Face, pulse: Option<Pulse>, log: Option<String>) -> Option<pb::Runner> {
        let kind = match &*self.way.borrow() {
            None => return None,
            Some(LaunchWay::Static(_)) => pb::LaunchKind::Static,
            Some(LaunchWay::Command(_)) => pb::LaunchKind::Command,
        };
        let runner = &face.runner;
        Some(pb::Runner {
            launch_kind: kind.into(),
            launches: runner.launches,
            launch_time: runner.launch_time.map(timestamp),
            pid: runner.pid,
            log_path: log.filter(|_| kind == pb::LaunchKind::Command),
            probe_time: pulse.map(|pulse| timestamp(pulse.at)),
            uptime: pulse
                .and_then(|pulse| pulse.uptime)
                .and_then(|uptime| uptime.try_into().ok()),
            suppressed_issues: runner.suppressed_issues,
            recorded_failures: runner.recorded_failures,
            failures: runner.failures,
            last_failure: runner.last_failure.clone(),
            next_launch_time: runner.next_launch.map(timestamp),
        })
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics between two steps of a change, so that what is in a
    // poisoned lock is whole.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
