//! From the leases on record to where a gateway left off.
//!
//! What is lost with the process: which phones were kept for whom, so that those
//! that wait are gone through again, and when phones were last granted, but for
//! those that are in somebody's hands. Invariant: a phone that two leases claim,
//! which no ledger of ours says, is that of the later grant.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::Scheduler;
use crate::act::Act;
use crate::fleet::{Fleet, Slot};
use crate::id::{Epoch, LeaseId};
use crate::lease::Lease;
use crate::state::LeaseState;
use crate::time::LeaseTime;

pub(super) fn resume(
    mut open: Vec<Lease>,
    next_epoch: u64,
    now: LeaseTime,
) -> (Scheduler, Vec<Act>) {
    let after = |last: Option<u64>| last.map_or(1, |last| last.saturating_add(1));
    let last_epoch = open.iter().filter_map(Lease::epoch).map(Epoch::get).max();
    let last_turn = open.iter().map(|lease| lease.turn).max();
    let mut scheduler = Scheduler {
        leases: BTreeMap::new(),
        ended: BTreeMap::new(),
        waiting: BTreeMap::new(),
        impatient: BTreeSet::new(),
        draining: BTreeSet::new(),
        timers: BTreeMap::new(),
        fleet: Fleet::default(),
        next_epoch: next_epoch.max(after(last_epoch)),
        next_turn: after(last_turn),
        clock: now,
    };
    let mut acts = Vec::new();
    open.sort_by_key(|lease| Reverse(lease.epoch()));
    for lease in open {
        scheduler.take_back(lease, &mut acts);
    }
    (scheduler, acts)
}

impl Scheduler {
    fn take_back(&mut self, lease: Lease, acts: &mut Vec<Act>) {
        let id = lease.id().clone();
        let state = lease.state;
        match state {
            LeaseState::Scheduled => self.admit(lease),
            LeaseState::Queued => {
                self.admit(lease);
                self.line_up(&id);
            }
            LeaseState::Active | LeaseState::Draining => {
                let phones = self.claim(&lease, acts);
                if state == LeaseState::Draining {
                    self.draining.insert(id.clone());
                }
                self.admit(lease);
                if let Some(entry) = self.leases.get_mut(&id) {
                    entry.phones = phones;
                }
            }
            // Not open: there is nothing to go on with.
            LeaseState::Released
            | LeaseState::Expired
            | LeaseState::Revoked
            | LeaseState::Cancelled
            | LeaseState::Unsatisfiable => return,
        }
        self.rearm(&id);
    }

    /// The phones that a lease was granted.
    fn claim(&mut self, lease: &Lease, acts: &mut Vec<Act>) -> Vec<usize> {
        let id: &LeaseId = lease.id();
        let Some(epoch) = lease.epoch() else {
            return Vec::new();
        };
        let mut phones = Vec::new();
        for udid in lease.devices() {
            let number = self.fleet.enrol(udid);
            if *self.fleet.device(number).slot() != Slot::Free {
                continue;
            }
            let (lease_id, udid) = (id.clone(), udid.clone());
            if lease.state == LeaseState::Active {
                self.fleet.put(number, Slot::Held { lease: lease_id });
                acts.push(Act::Open(udid, id.clone()));
            } else {
                let slot = Slot::Draining {
                    lease: lease_id,
                    idle: false,
                };
                self.fleet.put(number, slot);
                acts.push(Act::Close(udid, id.clone()));
            }
            self.fleet.note_grant(number, epoch);
            phones.push(number);
        }
        phones
    }
}
