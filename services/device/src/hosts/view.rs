//! The merged table: which phones there are, and by which host each is reached.
//!
//! A phone that several hosts know is where it is by cable; among those, where
//! that is known to be so now; among those, where it was announced last. A phone
//! that is merely remembered somewhere, while another host has it by cable now,
//! has moved: it is forgotten where it was.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use fleetgate_runner::Udid;
use fleetgate_usbmux::MuxDeviceId;
use tokio::time::Instant;

use super::Host;
use crate::inventory::{Inventory, Known};

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
    /// Whether it is, and has had the time to announce every phone.
    pub settled: bool,
    /// Counts its listening connections; 0 before the first.
    pub generation: u64,
    /// Why it is not connected, if it is not.
    pub last_error: Option<String>,
    /// How many phones it has by cable, those included of which it is not known
    /// now whether they are still there.
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
    /// This is what was known last: its host is not being listened to, has not
    /// told of it again yet, or denies its number. It cannot be connected to.
    pub stale: bool,
    /// Its number by cable, unless it is stale.
    pub number: Option<MuxDeviceId>,
    /// The generation of its host that announced it last.
    pub generation: u64,
    /// Becomes another number each time the phone has come to trust its host.
    pub paired_event: u64,
}

/// What one host knows of a phone.
struct Candidate {
    presence: Presence,
    rank: Rank,
}

/// What counts for a host as the place of a phone, in this order: by cable,
/// known now, announced last.
pub(super) type Rank = (bool, bool, Instant);

pub(super) fn rank(known: &Known) -> Rank {
    (known.by_cable(), !known.is_stale(), known.announced)
}

impl HostsView {
    /// What these usbmuxds have said by now, and which phones are remembered by
    /// hosts that they have moved away from.
    pub(super) fn merged(hosts: &[Host]) -> (Self, Vec<(usize, Udid)>) {
        let mut states = Vec::with_capacity(hosts.len());
        let mut merge = Merge::default();
        for host in hosts {
            host.usbmuxd.look(|inventory| {
                merge.add(inventory);
                states.push(HostState {
                    name: Arc::clone(&host.name),
                    address: host.usbmuxd.address(),
                    connected: inventory.connected,
                    settled: inventory.settled,
                    generation: inventory.generation,
                    last_error: inventory.last_error.clone(),
                    device_count: inventory
                        .devices()
                        .filter(|(_, known)| known.by_cable())
                        .count(),
                    ignored: inventory.ignored,
                    since: inventory.since,
                });
            });
        }
        let (devices, moved) = merge.finish();
        let view = Self {
            hosts: states,
            devices,
        };
        (view, moved)
    }

    /// Whether the phone can be connected to now.
    pub fn is_reachable(&self, device: &Udid) -> bool {
        self.devices
            .get(device)
            .is_some_and(|presence| presence.number.is_some())
    }
}

#[derive(Default)]
struct Merge {
    candidates: BTreeMap<Udid, Candidate>,
    /// What was outdone, while it was only remembered anyway.
    outdone: Vec<(usize, Udid)>,
}

impl Merge {
    fn add(&mut self, inventory: &Inventory) {
        for (device, known) in inventory.devices() {
            let candidate = Candidate {
                presence: Presence {
                    host: inventory.host,
                    by_cable: known.by_cable(),
                    stale: known.is_stale(),
                    number: known.number(),
                    generation: known.generation,
                    paired_event: known.paired,
                },
                rank: rank(known),
            };
            match self.candidates.entry(device.clone()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(candidate);
                }
                Entry::Occupied(mut best) => {
                    let outdone = if candidate.rank > best.get().rank {
                        best.insert(candidate)
                    } else {
                        candidate
                    };
                    if outdone.presence.stale {
                        self.outdone.push((outdone.presence.host, device.clone()));
                    }
                }
            }
        }
    }

    fn finish(self) -> (BTreeMap<Udid, Presence>, Vec<(usize, Udid)>) {
        let devices: BTreeMap<_, _> = self
            .candidates
            .into_iter()
            .map(|(device, best)| (device, best.presence))
            .collect();
        let mut moved = self.outdone;
        moved.retain(|(_, device)| {
            let now = devices.get(device);
            now.is_some_and(|presence| presence.number.is_some())
        });
        (devices, moved)
    }
}

#[cfg(test)]
mod tests;
