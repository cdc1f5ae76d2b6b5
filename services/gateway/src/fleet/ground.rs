//! What all keepers stand on: the hosts, the launcher, the ledger's settings,
//! and how much of each may be used at once.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleetgate_device::{Facts, Hosts, RunnerExchange};
use fleetgate_launch::Launcher;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{Budgets, Udid};
use fleetgate_session::{Session, SessionConfig, SessionTask, Unsettled};
use tokio::sync::Semaphore;
use tracing::{debug, info};

use super::life::Policy;
use super::phone::Phone;
use super::settings::Settings;
use crate::chronicle::Chronicle;
use crate::config::{Devices, LaunchWay, Launches, RunnerPort};
use crate::convert::device_lease;
use crate::leases::Gate;
use crate::recorder::Recorder;

/// How many runners are asked how they fare at once.
pub(super) const QUESTIONS: usize = 64;
/// How many phones are asked about themselves at once.
pub(super) const LOOK_UPS: usize = 8;

/// A usbmuxd as people know it.
#[derive(Debug, Clone)]
pub(super) struct HostName {
    pub(super) name: String,
    pub(super) address: String,
}

/// What all keepers share.
#[derive(Debug)]
pub(super) struct Ground {
    pub(super) hosts: Hosts,
    pub(super) host_names: Vec<HostName>,
    pub(super) devices: Devices,
    pub(super) launches: Launches,
    pub(super) common_port: Option<RunnerPort>,
    pub(super) settings: Settings,
    pub(super) chronicle: Chronicle,
    pub(super) recorder: Recorder,
    pub(super) budgets: Budgets,
    pub(super) policy: Arc<Policy>,
    /// Absent if nothing is ever launched.
    pub(super) launcher: Option<Launcher>,
    /// As many as may be launched at once; none before what an earlier gateway
    /// left has ended.
    pub(super) places: Arc<Semaphore>,
    pub(super) questions: Semaphore,
    pub(super) look_ups: Semaphore,
    pub(super) session: SessionConfig,
    pub(super) sessions: Mutex<Sessions>,
    /// Whose the phones are.
    pub(super) gate: Gate,
}

/// The sessions' tasks, which end with the fleet.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) closed: bool,
    pub(super) tasks: Vec<SessionTask>,
    /// What an earlier gateway left behind, until a phone's session takes it.
    pub(super) unsettled: HashMap<Udid, Vec<Unsettled>>,
}

impl Ground {
    /// How the runner of a phone comes up.
    pub(super) fn way(&self, device: &Udid) -> Option<LaunchWay> {
        let labels = self.settings.get(device).labels;
        self.launches
            .of(self.devices.get(device), &labels, self.common_port)
    }

    /// The phone's session, which is made once there is a way to its runner;
    /// none is made any more when the fleet is closed.
    pub(super) fn session<'a>(&self, phone: &'a Phone) -> Option<&'a Session> {
        if let Some(session) = phone.session.get() {
            return Some(session);
        }
        let hold_when_wedged = match &*phone.way.borrow() {
            None => return None,
            Some(LaunchWay::Static(_)) => false,
            // The next runner will carry out what this one cannot.
            Some(LaunchWay::Command(_)) => true,
        };
        let mut sessions = self.sessions();
        if sessions.closed {
            return None;
        }
        let mut task = None;
        let session = phone.session.get_or_init(|| {
            let device = phone.udid.clone();
            let unsettled = sessions.unsettled.remove(&device).unwrap_or_default();
            if !unsettled.is_empty() {
                info!(device.id = %device, "looking into commands that an earlier gateway left without a fate");
            }
            let exchange =
                RunnerExchange::new(self.hosts.clone(), device.clone(), phone.port.subscribe());
            let config = SessionConfig {
                hold_when_wedged,
                ..self.session.clone()
            };
            let recorder = self.recorder.clone();
            let (session, started) = Session::spawn(device, exchange, recorder, config, unsettled);
            task = Some(started);
            session
        });
        sessions.tasks.extend(task);
        Some(session)
    }

    pub(super) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Nothing panics between two steps of a change, so that what is in a
        // poisoned lock is whole.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The phone in the API's words.
    pub(super) fn message(&self, phone: &Phone) -> pb::Device {
        let log = self.launcher.as_ref();
        let log = log.map(|launcher| launcher.log_path(&phone.udid).display().to_string());
        let lease = self.gate.lease_of(&phone.udid);
        let lease = lease.map(|lease| device_lease(&lease, self.gate.clock()));
        pb::Device {
            lease,
            ..phone.message(self.settings.get(&phone.udid), &self.host_names, log)
        }
    }

    /// Asks whether the phone trusts its host, and what it says of itself.
    pub(super) async fn look_up(&self, phone: &Phone) -> (Option<bool>, Option<Facts>) {
        let _turn = self.look_ups.acquire().await;
        let device = &phone.udid;
        let trusted = self.hosts.paired(device).await;
        let is_known = phone.config.as_ref().is_some_and(|config| {
            config.name.is_some() && config.model.is_some() && config.os_version.is_some()
        });
        if is_known {
            return (trusted, None);
        }
        match self.hosts.facts(device).await {
            Ok(facts) => (trusted, Some(facts)),
            Err(error) => {
                debug!(%error, "the phone tells nothing of itself");
                (trusted, None)
            }
        }
    }
}

/// Where a phone's life takes its chances from.
pub(super) fn seed(device: &Udid) -> u64 {
    let mut hasher = DefaultHasher::new();
    device.hash(&mut hasher);
    // Two gateways, or one that is started again, need not agree.
    std::process::id().hash(&mut hasher);
    hasher.finish()
}
