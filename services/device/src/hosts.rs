//! Several usbmuxds as one: a merged table of their phones, and connections to
//! whichever of them has a phone by cable now.

use std::fmt;
use std::sync::Arc;

use fleetgate_runner::{SendError, Udid};
use futures_util::future::join_all;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::dialer::Dialer;
use crate::facts::{Facts, FactsError};
use crate::inventory::Route;
use crate::pipe::Pipe;
use crate::usbmuxd::{Usbmuxd, UsbmuxdConfig, UsbmuxdTask};

mod view;

pub use view::{HostState, HostsView, Presence};

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

struct Shared {
    hosts: Vec<Host>,
    view: watch::Sender<Arc<HostsView>>,
}

/// One of the usbmuxds.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) name: Arc<str>,
    pub(crate) usbmuxd: Usbmuxd,
}

/// The tasks behind [`Hosts`]; they end with this.
#[derive(Debug)]
pub struct HostsTask {
    hosts: Vec<UsbmuxdTask>,
    merger: JoinSet<()>,
}

impl HostsTask {
    /// Stops the work with every usbmuxd and waits until its socket is closed.
    pub async fn shutdown(mut self) {
        join_all(self.hosts.into_iter().map(UsbmuxdTask::shutdown)).await;
        self.merger.shutdown().await;
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
        let mut tasks = Vec::new();
        let mut listened = Vec::new();
        for HostConfig {
            name,
            dialer,
            usbmuxd,
        } in hosts
        {
            let (usbmuxd, task) = Usbmuxd::spawn(dialer, usbmuxd);
            tasks.push(task);
            listened.push(Host { name, usbmuxd });
        }
        let view = watch::Sender::new(Arc::new(HostsView::of(&listened)));
        let shared = Arc::new(Shared {
            hosts: listened,
            view,
        });
        let mut merger = JoinSet::new();
        for host in &shared.hosts {
            let mut inventory = host.usbmuxd.inventory();
            let shared = Arc::clone(&shared);
            let merge = async move {
                while inventory.changed().await.is_ok() {
                    shared.view.send_modify(|view| {
                        *view = Arc::new(HostsView::of(&shared.hosts));
                    });
                }
            };
            merger.spawn(merge.instrument(tracing::info_span!("hosts")));
        }
        (
            Self { shared },
            HostsTask {
                hosts: tasks,
                merger,
            },
        )
    }

    #[cfg(test)]
    pub(crate) fn usbmuxd(&self, host: usize) -> Usbmuxd {
        self.shared.hosts[host].usbmuxd.clone()
    }

    /// One table of all phones, now and from now on.
    pub fn view(&self) -> watch::Receiver<Arc<HostsView>> {
        self.shared.view.subscribe()
    }

    /// Connects to a port of a phone, by cable, through the usbmuxd that has it.
    ///
    /// Nothing has reached the phone's listener when this fails, so every error
    /// has the disposition `NotExecuted`. It has no deadline of its own: drop
    /// the future to give up.
    pub async fn connect(&self, device: &Udid, port: u16) -> Result<Pipe, SendError> {
        let presence = self.shared.view.borrow().devices.get(device).copied();
        let host = presence.map_or(0, |presence| presence.host);
        let Some(host) = self.shared.hosts.get(host) else {
            return Err(SendError::NotAttached);
        };
        host.usbmuxd.connect(device, port).await
    }

    /// Whether a route is still the way to this phone, by all that the
    /// usbmuxds have said by now.
    pub async fn confirm(&self, device: &Udid, route: Route) -> bool {
        let presence = self.shared.view.borrow().devices.get(device).copied();
        let host = presence.map_or(0, |presence| presence.host);
        match self.shared.hosts.get(host) {
            Some(host) => host.usbmuxd.confirm(device, route).await,
            None => false,
        }
    }

    /// Whether the phone trusts its host, by whether the host keeps a pair
    /// record of it. The record itself is dropped unread. `None`: its host
    /// cannot say.
    pub async fn paired(&self, _device: &Udid) -> Option<bool> {
        None
    }

    /// What the phone tells of itself.
    pub async fn facts(&self, device: &Udid) -> Result<Facts, FactsError> {
        crate::facts::ask(self, device).await
    }
}
