//! The fleet: every phone that is known, its session, and its keeper.
//!
//! ```text
//! usbmuxds ─ table ─► warden ─► roster ◄─ configuration, settings
//!                       │ where it is  │ name ─► phone
//!                       ▼              ▼
//!                     keeper ◄─────► phone ─► session
//!                       │ life
//!                       ├─► process (launch)
//!                       └─► chronicle ─► watchers, ledger
//! ```
//!
//! A session belongs to a phone and not to a connection: it stays when the
//! phone is unplugged, and a command to a phone that is not there goes through
//! it like any other and is answered, and recorded, as not sent.

mod child;
mod ground;
mod keeper;
mod life;
mod phone;
mod roster;
pub(crate) mod settings;
mod tasks;
mod warden;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use fleetgate_device::{HostConfig, Hosts};
use fleetgate_launch::Launcher;
use fleetgate_lease::{DeviceView, Reach, Wants};
use fleetgate_ledger::Cordon;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use fleetgate_session::{Session, SessionConfig, Unsettled};
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};

use crate::chronicle::Chronicle;
use crate::config::{Devices, HealthSection, LaunchWay, Launches, RunnerPort};
use crate::leases::{Gate, view};
use crate::recorder::Recorder;
use ground::{Ground, HostName, LOOK_UPS, QUESTIONS, Sessions};
use life::{Policy, State};
use phone::{Order, Phone};
use roster::Roster;
use settings::Settings;
pub(crate) use tasks::FleetTasks;
use warden::{Warden, mux_host, new_phone};

/// What a fleet is made of.
#[derive(Debug)]
pub(crate) struct FleetConfig {
    pub(crate) hosts: Vec<HostConfig>,
    /// How long a phone may take to be announced.
    pub(crate) settle: Duration,
    pub(crate) devices: Devices,
    pub(crate) launches: Launches,
    pub(crate) common_port: Option<RunnerPort>,
    pub(crate) health: HealthSection,
    /// Absent if nothing is ever launched.
    pub(crate) launcher: Option<Launcher>,
    pub(crate) max_launches: usize,
    pub(crate) session: SessionConfig,
    /// Mutations that an earlier gateway left without a known fate.
    pub(crate) unsettled: HashMap<Udid, Vec<Unsettled>>,
    /// Whose the phones are.
    pub(crate) gate: Gate,
}

/// All phones and their sessions. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Fleet {
    ground: Arc<Ground>,
    roster: Arc<Roster>,
    settle: Duration,
}

/// Why a phone takes no command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoSession {
    /// Where its runner listens is not known.
    PortUnknown,
    /// Its runner has failed too often, and is left alone.
    Quarantined {
        /// Why.
        reason: Option<String>,
    },
    /// Nothing is taken any more.
    Draining,
}

/// Why a runner is not recycled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRecycle {
    /// This gateway does not launch it.
    NotLaunched,
    /// The phone is not there.
    Detached,
    /// The gateway is about to end.
    Draining,
}

impl Fleet {
    /// Starts to watch the usbmuxds, and to keep the phones.
    pub(crate) fn spawn(
        config: FleetConfig,
        recorder: Recorder,
        settings: Settings,
        chronicle: Chronicle,
    ) -> (Self, FleetTasks) {
        let FleetConfig {
            hosts,
            settle,
            devices,
            launches,
            common_port,
            health,
            launcher,
            max_launches,
            session,
            unsettled,
            gate,
        } = config;
        let host_names = hosts.iter().map(|host| HostName {
            name: host.name.to_string(),
            address: host.dialer.label().to_owned(),
        });
        let host_names = host_names.collect();
        let (hosts, hosts_task) = Hosts::spawn(hosts);
        // A phone that does not come back must not keep its commands from a
        // fate: it is asked after like any other, and is then not there.
        let mut known: Vec<Udid> = unsettled.keys().cloned().collect();
        known.extend(devices.iter().map(|device| device.udid.clone()));
        known.extend(settings.known());
        known.sort_unstable();
        known.dedup();
        let ground = Arc::new(Ground {
            hosts,
            host_names,
            devices,
            launches,
            common_port,
            settings,
            chronicle,
            recorder,
            budgets: session.budgets,
            policy: Arc::new(Policy::new(health, session.budgets)),
            launcher,
            places: Arc::new(Semaphore::new(0)),
            questions: Semaphore::new(QUESTIONS),
            look_ups: Semaphore::new(LOOK_UPS),
            session,
            sessions: Mutex::new(Sessions {
                unsettled,
                ..Sessions::default()
            }),
            gate,
        });
        let roster = Arc::<Roster>::default();
        for device in known {
            roster.add(new_phone(&ground, device));
        }
        let close = CancellationToken::new();
        let keeping = Warden::new(Arc::clone(&ground), Arc::clone(&roster), close.clone());
        let mut warden = JoinSet::new();
        warden.spawn(keeping.run().instrument(info_span!("fleet")));
        let fleet = Self {
            ground: Arc::clone(&ground),
            roster,
            settle,
        };
        let tasks = FleetTasks::new(ground, max_launches, hosts_task, warden, close);
        (fleet, tasks)
    }

    /// The phone that a caller means, by a UDID in any spelling or an alias.
    ///
    /// Where a usbmuxd has been connected to just now, a phone of which nothing
    /// is known yet gets a moment to be announced.
    pub(crate) async fn resolve(&self, name: &str) -> Option<Udid> {
        let known = self.roster.until(|| self.known(name));
        timeout_at(self.settled(), known).await.ok()
    }

    /// Gives phones that a lease might have a moment to be announced, where a
    /// usbmuxd has been connected to just now and too few are known.
    pub(crate) async fn until_announced(&self, wants: &Wants, reach: &Reach) {
        let settled = self.settled();
        if settled <= Instant::now() {
            return;
        }
        let enough = || {
            let devices = self.devices(None, usize::MAX);
            let known = devices.iter().filter_map(view);
            let fits = |known: &DeviceView| reach.covers(&known.labels) && wants.matches(known);
            let matching = known.filter(fits).count();
            (matching >= wants.count()).then_some(())
        };
        timeout_at(settled, self.roster.until(enough)).await.ok();
    }

    /// When every phone that is there has been announced.
    fn settled(&self) -> Instant {
        let view = self.ground.hosts.view();
        let view = view.borrow();
        let since = view.hosts.iter().map(|host| host.since).max();
        since.unwrap_or_else(Instant::now) + self.settle
    }

    /// Tells those who watch whose a phone is by now.
    pub(crate) fn tell_lease(&self, device: &Udid) {
        if let Some(phone) = self.roster.get(device) {
            let message = || self.ground.message(&phone);
            self.ground.chronicle.changed(message);
        }
    }

    fn known(&self, name: &str) -> Option<Udid> {
        let device = self.name(name)?;
        self.roster.get(&device).map(|phone| phone.udid.clone())
    }

    /// A phone by its alias, or any UDID, whether anything is known of it or
    /// not.
    pub(crate) fn name(&self, name: &str) -> Option<Udid> {
        name.parse()
            .ok()
            .or_else(|| self.ground.settings.by_alias(name))
    }

    /// The session of a phone that is known.
    pub(crate) fn session(&self, device: &Udid) -> Result<Session, NoSession> {
        if self.is_closed() {
            return Err(NoSession::Draining);
        }
        let phone = self.roster.get(device).ok_or(NoSession::PortUnknown)?;
        match phone.state() {
            State::Quarantined => {
                let reason = phone.face().detail;
                return Err(NoSession::Quarantined { reason });
            }
            State::Detached
            | State::Attached
            | State::Reconciling
            | State::Draining
            | State::Wedged
            | State::Launching
            | State::Ready
            | State::Recycling => {}
        }
        let session = self.ground.session(&phone);
        session.cloned().ok_or(NoSession::PortUnknown)
    }

    /// The session of a phone for whoever asks again for what may be under way
    /// there, whatever has become of the phone since.
    pub(crate) fn session_to_join(&self, device: &Udid) -> Option<Session> {
        self.roster.get(device)?.session.get().cloned()
    }

    /// Who has taken a phone out of service, if it is.
    pub(crate) fn cordon(&self, device: &Udid) -> Option<Cordon> {
        let cordon = self.ground.settings.get(device).cordon;
        cordon.filter(|cordon| !cordon.has_ended(SystemTime::now()))
    }

    /// Has a phone's runner ended and launched again.
    pub(crate) fn recycle(
        &self,
        device: &Udid,
        force: bool,
        reason: &str,
    ) -> Result<(), NoRecycle> {
        let reason = reason.to_owned();
        self.recyclable(device)?.order(Order { force, reason });
        Ok(())
    }

    /// Whether [`Fleet::recycle`] would do so now.
    pub(crate) fn may_recycle(&self, device: &Udid) -> Result<(), NoRecycle> {
        self.recyclable(device).map(|_phone| ())
    }

    fn recyclable(&self, device: &Udid) -> Result<Arc<Phone>, NoRecycle> {
        if self.is_closed() {
            return Err(NoRecycle::Draining);
        }
        let phone = self.roster.get(device).ok_or(NoRecycle::NotLaunched)?;
        if !matches!(*phone.way.borrow(), Some(LaunchWay::Command(_))) {
            return Err(NoRecycle::NotLaunched);
        }
        if phone.state() == State::Detached {
            return Err(NoRecycle::Detached);
        }
        Ok(phone)
    }

    /// What operators have said about the phones.
    pub(crate) fn settings(&self) -> &Settings {
        &self.ground.settings
    }

    /// True once no command is admitted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.ground.sessions().closed
    }

    /// Admits no command any more, lets those that were admitted go on for
    /// `grace`, and returns when the fate of each is on record.
    pub(crate) async fn close(&self, grace: Duration) {
        let tasks = {
            let mut sessions = self.ground.sessions();
            sessions.closed = true;
            std::mem::take(&mut sessions.tasks)
        };
        join_all(tasks.into_iter().map(|task| task.shutdown(grace))).await;
    }

    /// At most `limit` phones after `udid`, in order.
    pub(crate) fn devices(&self, after: Option<&Udid>, limit: usize) -> Vec<pb::Device> {
        self.devices_that(|_| true, after, limit)
    }

    /// The same, of those only that are wanted.
    pub(crate) fn devices_that(
        &self,
        wanted: impl Fn(&Udid) -> bool,
        after: Option<&Udid>,
        limit: usize,
    ) -> Vec<pb::Device> {
        let phones = self.roster.after(after, usize::MAX);
        let wanted = phones.iter().filter(|phone| wanted(&phone.udid));
        let message = |phone: &Arc<Phone>| self.ground.message(phone);
        wanted.take(limit).map(message).collect()
    }

    /// The phone that a caller means.
    pub(crate) async fn device(&self, name: &str) -> Option<pb::Device> {
        let udid = self.resolve(name).await?;
        let phone = self.roster.get(&udid)?;
        Some(self.ground.message(&phone))
    }

    /// The usbmuxds behind this fleet.
    pub(crate) fn mux_hosts(&self) -> Vec<pb::MuxHost> {
        let view = self.ground.hosts.view();
        let view = view.borrow();
        view.hosts.iter().map(mux_host).collect()
    }
}
