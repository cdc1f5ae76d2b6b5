//! The warden: the one task that knows of every phone, gives each its keeper,
//! and tells each where it is.
//!
//! A change of the usbmuxds' table is compared with what is known once, here,
//! so that a phone's keeper wakes for its own phone only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fleetgate_device::{HostState, HostsView, Presence};
use fleetgate_ledger::DeviceSettings;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Udid;
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info, info_span};

use super::ground::Ground;
use super::keeper::Keeper;
use super::life::Seen;
use super::phone::{Phone, Sight};
use super::roster::Roster;

/// How long a phone is without a keeper after one's panic.
const ANOTHER: Duration = Duration::from_secs(5);

/// The task that keeps the keepers.
pub(super) struct Warden {
    ground: Arc<Ground>,
    roster: Arc<Roster>,
    keepers: JoinSet<()>,
    kept: HashMap<task::Id, Arc<Phone>>,
    settings: BTreeMap<Udid, DeviceSettings>,
    hosts: Vec<HostState>,
    close: CancellationToken,
}

impl Warden {
    /// A warden of the phones that are known so far.
    pub(super) fn new(ground: Arc<Ground>, roster: Arc<Roster>, close: CancellationToken) -> Self {
        Self {
            ground,
            roster,
            keepers: JoinSet::new(),
            kept: HashMap::new(),
            settings: BTreeMap::new(),
            hosts: Vec::new(),
            close,
        }
    }

    /// Keeps until it is told to close, and all keepers have ended.
    pub(super) async fn run(mut self) {
        let mut view = self.ground.hosts.view();
        let mut settings = self.ground.settings.changes();
        for phone in self.roster.after(None, usize::MAX) {
            self.keep(phone, Duration::ZERO);
        }
        self.look(&view.borrow_and_update().clone());
        loop {
            tokio::select! {
                // First: a keeper that ends because it was told to has no
                // successor.
                biased;
                () = self.close.cancelled() => break,
                Ok(()) = view.changed() => {
                    let view = view.borrow_and_update().clone();
                    self.look(&view);
                }
                Ok(()) = settings.changed() => self.read_settings(),
                Some(ended) = self.keepers.join_next_with_id() => self.bury(ended),
                else => break,
            }
        }
        while let Some(ended) = self.keepers.join_next().await {
            if let Err(error) = ended {
                let by_panic = error.is_panic();
                error!(by_panic, "a phone's keeper did not end by itself");
            }
        }
    }

    /// Gives a phone its keeper.
    fn keep(&mut self, phone: Arc<Phone>, after: Duration) {
        let device = phone.udid.clone();
        // Of a phone that had a keeper before, what was read last is what is
        // compared with what operators have set since.
        let set = self.set_of(&device);
        self.settings.entry(device.clone()).or_insert(set);
        let (ground, kept) = (Arc::clone(&self.ground), Arc::clone(&phone));
        let close = self.close.clone();
        let keep = async move {
            if close.run_until_cancelled(sleep(after)).await.is_some() {
                Keeper::new(ground, kept).run(close).await;
            }
        };
        let span = info_span!("keeper", device.id = %device);
        let task = self.keepers.spawn(keep.instrument(span));
        self.kept.insert(task.id(), phone);
    }

    /// A keeper has ended before its time. Its phone gets another, but not so
    /// fast that one fault keeps the gateway busy.
    fn bury(&mut self, ended: Result<(task::Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => id,
            Err(error) => {
                let by_panic = error.is_panic();
                error!(by_panic, "a phone's keeper did not end by itself");
                error.id()
            }
        };
        if let Some(phone) = self.kept.remove(&id) {
            self.keep(phone, ANOTHER);
        }
    }

    fn look(&mut self, view: &HostsView) {
        self.tell_hosts(&view.hosts);
        let (mut attached, mut changed) = (0, false);
        for (device, presence) in &view.devices {
            let sight = sight(presence);
            attached += usize::from(sight.seen.is_some());
            let phone = self.roster.get(device).unwrap_or_else(|| {
                let phone = new_phone(&self.ground, device.clone());
                self.roster.add(Arc::clone(&phone));
                self.keep(Arc::clone(&phone), Duration::ZERO);
                phone
            });
            changed |= is_news(&phone.sight, sight);
        }
        for phone in self.roster.after(None, usize::MAX) {
            if !view.devices.contains_key(&phone.udid) {
                changed |= is_news(&phone.sight, Sight::default());
            }
        }
        if changed {
            info!(attached, "attached phones changed");
        }
    }

    fn tell_hosts(&mut self, hosts: &[HostState]) {
        for (index, host) in hosts.iter().enumerate() {
            let before = self.hosts.get(index);
            let is_news = before.is_none_or(|before| {
                (before.connected, before.generation) != (host.connected, host.generation)
            });
            // Nothing is known of it before its first connection or failure.
            if is_news && (host.generation > 0 || host.last_error.is_some()) {
                self.ground.chronicle.host(mux_host(host));
            }
        }
        self.hosts = hosts.to_vec();
    }

    fn read_settings(&mut self) {
        for phone in self.roster.after(None, usize::MAX) {
            let now = self.set_of(&phone.udid);
            let before = self.settings.insert(phone.udid.clone(), now.clone());
            if before.as_ref() == Some(&now) {
                continue;
            }
            let way = self.ground.way(&phone.udid);
            phone.way.send_if_modified(|before| {
                let changed = *before != way;
                *before = way;
                changed
            });
            let message = || self.ground.message(&phone);
            self.ground.chronicle.changed(message);
        }
    }

    /// What operators have set.
    fn set_of(&self, device: &Udid) -> DeviceSettings {
        DeviceSettings {
            // Its keeper tells of that.
            quarantine: None,
            ..self.ground.settings.get(device)
        }
    }
}

/// A phone that was not known before, with a session if there is a way to its
/// runner.
pub(super) fn new_phone(ground: &Ground, device: Udid) -> Arc<Phone> {
    let config = ground.devices.get(&device).cloned();
    let way = ground.way(&device);
    let phone = Phone::new(device, config, way, SystemTime::now());
    ground.session(&phone);
    Arc::new(phone)
}

fn sight(presence: &Presence) -> Sight {
    let seen = Seen {
        host: presence.host,
        generation: presence.generation,
        number: presence.number,
        stale: presence.stale,
    };
    Sight {
        seen: presence.by_cable.then_some(seen),
        paired_event: presence.paired_event,
    }
}

fn is_news(known: &watch::Sender<Sight>, sight: Sight) -> bool {
    known.send_if_modified(|known| std::mem::replace(known, sight) != sight)
}

/// A usbmuxd in the API's words.
pub(super) fn mux_host(host: &HostState) -> pb::MuxHost {
    pb::MuxHost {
        address: host.address.to_string(),
        connected: host.connected,
        generation: host.generation,
        last_error: host.last_error.clone(),
        name: host.name.to_string(),
        device_count: u32::try_from(host.device_count).unwrap_or(u32::MAX),
        ignored_entries: host.ignored,
    }
}
