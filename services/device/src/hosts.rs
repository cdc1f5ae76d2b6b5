//! Several usbmuxds as one: a merged table of their phones, and connections to
//! whichever of them has a phone by cable now.
//!
//! ```text
//!   Usbmuxd --- inventory ---+
//!   Usbmuxd --- inventory ---+--> merger --> HostsView --> who watches the fleet
//!   Usbmuxd --- inventory ---+
//!        ^
//!        +-- route, connect, confirm, paired: straight to the inventories
//! ```
//!
//! Each usbmuxd has a listen task, a table and a limit of dials of its own, so
//! that one that hangs holds up nobody else. Changes that come closely one after
//! the other become one new view, because whoever watches looks at all of it.
//!
//! Invariant: the view lags behind the tables and decides nothing; a number is
//! only ever used at the host, and in the generation, that gave it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fleetgate_runner::Udid;
use futures_util::future::join_all;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument;

use crate::dialer::Dialer;
use crate::facts::{self, Facts, FactsError};
use crate::usbmuxd::{Usbmuxd, UsbmuxdConfig, UsbmuxdTask};

mod connect;
mod trust;
mod view;

pub use view::{HostState, HostsView, Presence};

/// For how long changes are gathered into one view.
const GATHER: Duration = Duration::from_millis(20);

/// One usbmuxd.
#[derive(Debug, Clone)]
pub struct HostConfig {
    /// What people call it.
    pub name: Arc<str>,
    /// Where it is.
    pub dialer: Dialer,
    /// How it is dealt with.
    pub usbmuxd: UsbmuxdConfig,
}

/// A handle to several usbmuxds.
#[derive(Clone)]
pub struct Hosts {
    shared: Arc<Shared>,
}

/// What the handles and the merger share.
struct Shared {
    hosts: Vec<Host>,
    view: watch::Sender<Arc<HostsView>>,
    /// Wakes the merger.
    changed: Arc<Notify>,
    /// Where each phone was last seen by cable.
    homes: Mutex<HashMap<Udid, usize>>,
}

/// One of the usbmuxds.
#[derive(Debug)]
struct Host {
    name: Arc<str>,
    usbmuxd: Usbmuxd,
}

/// The tasks behind [`Hosts`]; they end with this.
#[derive(Debug)]
pub struct HostsTask {
    hosts: Vec<UsbmuxdTask>,
    merger: JoinSet<()>,
    shared: Hosts,
}

impl HostsTask {
    /// Stops the work with every usbmuxd and waits until its sockets are closed.
    pub async fn shutdown(mut self) {
        join_all(self.hosts.drain(..).map(UsbmuxdTask::shutdown)).await;
        self.merger.shutdown().await;
        self.shared.shared.merge();
    }
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.shared.hosts).finish()
    }
}

impl Hosts {
    /// Starts to listen to each of these.
    pub fn spawn(hosts: Vec<HostConfig>) -> (Self, HostsTask) {
        let changed = Arc::new(Notify::new());
        let host = |(index, config): (usize, HostConfig)| {
            let HostConfig {
                name,
                dialer,
                usbmuxd,
            } = config;
            let changed = Arc::clone(&changed);
            let (usbmuxd, task) = Usbmuxd::spawn(index, &name, dialer, usbmuxd, changed);
            (Host { name, usbmuxd }, task)
        };
        let (hosts, tasks): (Vec<_>, Vec<_>) = hosts.into_iter().enumerate().map(host).unzip();
        let shared = Arc::new(Shared {
            view: watch::Sender::new(Arc::new(HostsView::merged(&hosts).0)),
            hosts,
            changed,
            homes: Mutex::default(),
        });
        let hosts = Self {
            shared: Arc::clone(&shared),
        };
        let mut merger = JoinSet::new();
        merger.spawn(merge(shared).instrument(tracing::info_span!("hosts")));
        let task = HostsTask {
            hosts: tasks,
            merger,
            shared: hosts.clone(),
        };
        (hosts, task)
    }

    /// One table of all phones, now and from now on. Borrow it to look: a view
    /// that is held on to is not in the way, but costs its memory.
    pub fn view(&self) -> watch::Receiver<Arc<HostsView>> {
        self.shared.view.subscribe()
    }

    /// Waits until every host has had its time to be listened to and to announce
    /// its phones, and the view holds them. One that is away is not waited for
    /// longer than it may take to settle.
    pub async fn settled(&self) {
        let mut view = self.view();
        loop {
            let now = Instant::now();
            let (mut until, mut listening) = (now, false);
            for (state, host) in view
                .borrow_and_update()
                .hosts
                .iter()
                .zip(&self.shared.hosts)
            {
                let settle = host.usbmuxd.config().settle;
                host.usbmuxd.look(|inventory| {
                    if inventory.connected {
                        // It will settle or be lost, and the view will say so.
                        listening |= !state.settled;
                    } else {
                        until = until.max(inventory.since + settle);
                    }
                });
            }
            let changed = async {
                if view.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            if listening {
                changed.await;
            } else if until <= now || timeout_at(until, changed).await.is_err() {
                return;
            }
        }
    }

    /// What the phone tells of itself, within a few seconds.
    pub async fn facts(&self, device: &Udid) -> Result<Facts, FactsError> {
        facts::ask(self, device).await
    }

    #[cfg(test)]
    pub(crate) fn usbmuxd(&self, host: usize) -> Usbmuxd {
        self.shared.hosts[host].usbmuxd.clone()
    }
}

/// Makes a new view whenever a table has changed.
async fn merge(shared: Arc<Shared>) {
    loop {
        shared.changed.notified().await;
        sleep(GATHER).await;
        shared.merge();
    }
}

impl Shared {
    fn merge(&self) {
        let (view, superseded) = HostsView::merged(&self.hosts);
        for (index, host) in self.hosts.iter().enumerate() {
            let mut its = superseded
                .iter()
                .filter(|(host, _)| *host == index)
                .peekable();
            if its.peek().is_some() {
                host.usbmuxd.supersede(its.map(|(_, device)| device));
            }
        }
        {
            // Whatever happened to its last user, a map of indices is whole.
            let mut homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
            for (device, presence) in view.devices.iter().filter(|(_, at)| at.by_cable) {
                if homes.get(device) != Some(&presence.host) {
                    homes.insert(device.clone(), presence.host);
                }
            }
        }
        self.view.send_if_modified(|now| {
            let news = **now != view;
            if news {
                *now = Arc::new(view);
            }
            news
        });
    }

    /// Where a phone was last seen by cable.
    fn home(&self, device: &Udid) -> Option<usize> {
        let homes = self.homes.lock().unwrap_or_else(PoisonError::into_inner);
        homes.get(device).copied()
    }
}
