//! The merged table: which phones there are, and by which host each is reached.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetgate_runner::Udid;
use fleetgate_usbmux::MuxDeviceId;
use tokio::time::Instant;

use super::Host;

/// All phones of all usbmuxds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostsView {
    /// The usbmuxds, in the order of the configuration.
    pub hosts: Vec<HostState>,
    /// Each phone that is there or, where nobody can say now, was there last.
    pub devices: BTreeMap<Udid, Presence>,
}

/// One usbmuxd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostState {
    /// What people call it.
    pub name: Arc<str>,
    /// Where it is.
    pub address: Arc<str>,
    /// Whether it is being listened to.
    pub connected: bool,
    /// Counts its listening connections; 0 before the first.
    pub generation: u64,
    /// Why it is not connected, if it is not.
    pub last_error: Option<String>,
    /// How many phones it has by cable, or had when it was last heard.
    pub device_count: usize,
    /// How many of this generation's announcements could not be used.
    pub ignored: u64,
    /// When `connected` became what it is, or the generation began.
    pub since: Instant,
}

/// Where one phone is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presence {
    /// Its usbmuxd, as an index into [`HostsView::hosts`].
    pub host: usize,
    /// Whether it is there by cable, and not over Wi-Fi only.
    pub by_cable: bool,
    /// Its host is not being listened to, or has not told of it again yet: this
    /// is what was known last, and the phone cannot be connected to.
    pub stale: bool,
    /// Its number by cable, unless it is stale.
    pub number: Option<MuxDeviceId>,
    /// The generation of its host in which it was last announced.
    pub generation: u64,
    /// Becomes another number each time the phone has come to trust its host.
    pub paired_event: u64,
}

impl HostsView {
    /// What these usbmuxds have said by now.
    pub(super) fn of(hosts: &[Host]) -> Self {
        let mut view = Self {
            hosts: Vec::new(),
            devices: BTreeMap::new(),
        };
        for (index, host) in hosts.iter().enumerate() {
            let inventory = host.usbmuxd.inventory();
            let inventory = inventory.borrow();
            view.hosts.push(HostState {
                name: Arc::clone(&host.name),
                address: host.usbmuxd.address().into(),
                connected: inventory.connected,
                generation: inventory.generation,
                last_error: inventory.last_error.clone(),
                device_count: inventory
                    .devices
                    .values()
                    .filter(|known| known.usb.is_some())
                    .count(),
                ignored: inventory.ignored,
                since: inventory.since,
            });
            for (udid, known) in &inventory.devices {
                let number = known.usb.filter(|_| inventory.connected);
                let presence = Presence {
                    host: index,
                    by_cable: known.usb.is_some(),
                    stale: !inventory.connected,
                    number,
                    generation: inventory.generation,
                    paired_event: 0,
                };
                let there = view.devices.entry(udid.clone()).or_insert(presence);
                if there.number.is_none() {
                    *there = presence;
                }
            }
        }
        view
    }

    /// Whether the phone can be connected to now.
    pub fn is_reachable(&self, device: &Udid) -> bool {
        self.devices
            .get(device)
            .is_some_and(|presence| presence.number.is_some())
    }
}
