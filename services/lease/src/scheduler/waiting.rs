//! From the wish to the grant.
//!
//! Invariant: a lease that waits has either all of its phones kept for it or
//! none.

use fleetgate_runner::Udid;

use super::order::{self, Wish};
use super::{Entry, Scheduler, Step, place};
use crate::act::{Act, What};
use crate::explanation;
use crate::fleet::{Bits, Slot};
use crate::id::{Epoch, LeaseId};
use crate::lease::{End, Grant, Lease};
use crate::state::{EndReason, LeaseState};

impl Scheduler {
    /// Takes a lease in.
    pub(super) fn admit(&mut self, lease: Lease) {
        let entry = Entry {
            matching: Bits::default(),
            phones: Vec::new(),
            timer: None,
            lease,
        };
        self.leases.insert(entry.lease.id().clone(), entry);
    }

    /// Lets a lease wait whose time to begin has come.
    pub(super) fn begin(&mut self, id: &LeaseId, step: &mut Step) {
        let turn = self.turn();
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        let lease = &mut entry.lease;
        lease.state = LeaseState::Queued;
        lease.queued = Some(step.now);
        // Not before those that were waiting already.
        lease.turn = turn;
        step.changed(lease, What::Queued);
        self.rearm(id);
        self.queue(id, step);
    }

    /// Puts a lease that waits among the others, if it can ever be granted.
    pub(super) fn queue(&mut self, id: &LeaseId, step: &mut Step) {
        self.line_up(id);
        let Some(entry) = self.leases.get(id) else {
            return;
        };
        let (matching, wanted) = (entry.matching.count(), entry.lease.asked.wants.count());
        if matching < wanted {
            let end = End {
                reason: EndReason::Unsatisfiable,
                detail: Some(format!(
                    "{}, {wanted} wanted",
                    explanation::matching(matching)
                )),
                by: None,
                time: step.wall,
            };
            self.finish(id, end, step);
        }
    }

    /// Puts a lease among those that wait.
    pub(super) fn line_up(&mut self, id: &LeaseId) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        entry.matching = self.fleet.matching(&entry.lease.asked);
        if entry.lease.asked.terms.queue_timeout.is_zero() {
            self.impatient.insert(id.clone());
        }
        self.waiting.insert(place(&entry.lease), id.clone());
    }

    /// Looks again which phones match, after their facts have changed.
    pub(super) fn match_again(&mut self, step: &mut Step) {
        let mut unfit = Vec::new();
        for id in self.waiting.values() {
            let Some(entry) = self.leases.get_mut(id) else {
                continue;
            };
            entry.matching = self.fleet.matching(&entry.lease.asked);
            let fits = |number: &usize| entry.matching.contains(*number);
            if !entry.phones.iter().all(fits) {
                unfit.push(id.clone());
            }
        }
        for id in unfit {
            self.give_up(&id, step);
        }
    }

    /// Gives out the phones that there are. Those that got none and do not wait
    /// have ended then.
    pub(super) fn give_out(&mut self, step: &mut Step) {
        let wishes = self.wishes(self.waiting.values());
        for (id, numbers) in order::give_out(&self.fleet, wishes) {
            for number in &numbers {
                let slot = Slot::Reserved {
                    lease: id.clone(),
                    idle: false,
                };
                self.fleet.put(*number, slot);
                let udid = self.fleet.device(*number).udid.clone();
                step.acts.push(Act::Close(udid, id.clone()));
            }
            if let Some(entry) = self.leases.get_mut(&id) {
                entry.phones = numbers;
            }
        }
        let empty_handed = |id: &&LeaseId| {
            let entry = self.leases.get(*id);
            entry.is_some_and(|entry| entry.phones.is_empty())
        };
        let gone: Vec<_> = self
            .impatient
            .iter()
            .filter(empty_handed)
            .cloned()
            .collect();
        for id in gone {
            let end = End {
                reason: EndReason::QueueTimeout,
                detail: None,
                by: None,
                time: step.wall,
            };
            self.finish(&id, end, step);
        }
    }

    /// Of these leases, those that wait and have no phones kept for them.
    pub(super) fn wishes<'a>(
        &'a self,
        ids: impl Iterator<Item = &'a LeaseId>,
    ) -> impl Iterator<Item = Wish<'a>> {
        let entries = ids.filter_map(|id| self.leases.get(id));
        let entries = entries.filter(|entry| entry.phones.is_empty());
        entries.map(|entry| Wish {
            id: entry.lease.id(),
            matching: &entry.matching,
            count: entry.lease.asked.wants.count(),
            waits: !entry.lease.asked.terms.queue_timeout.is_zero(),
        })
    }

    /// Whether it is yet to be heard that a phone is idle.
    pub(super) fn asks(&self, device: &Udid) -> bool {
        let number = self.fleet.number(device);
        number.is_some_and(|number| match self.fleet.device(number).slot() {
            Slot::Reserved { idle, .. } | Slot::Draining { idle, .. } => !idle,
            Slot::Free | Slot::Held { .. } => false,
        })
    }

    /// Takes in that nothing is in flight or queued on a phone that was closed.
    pub(super) fn note_idle(&mut self, number: usize, step: &mut Step) {
        match self.fleet.device(number).slot().clone() {
            Slot::Reserved { lease, .. } => {
                let slot = Slot::Reserved {
                    lease: lease.clone(),
                    idle: true,
                };
                self.fleet.put(number, slot);
                self.grant_if_idle(&lease, step);
            }
            Slot::Draining { lease, .. } => {
                let slot = Slot::Draining { lease, idle: true };
                self.fleet.put(number, slot);
            }
            // What was due has withdrawn the question.
            Slot::Free | Slot::Held { .. } => {}
        }
    }

    /// Grants a lease whose phones are all idle.
    fn grant_if_idle(&mut self, id: &LeaseId, step: &mut Step) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        let is_idle = |number: &usize| {
            let slot = self.fleet.device(*number).slot();
            matches!(slot, Slot::Reserved { idle: true, .. })
        };
        if !entry.phones.iter().all(is_idle) {
            return;
        }
        // Counts from 1, and no clock runs for as long as this could count.
        let Ok(epoch) = Epoch::try_from(self.next_epoch) else {
            return;
        };
        self.next_epoch += 1;
        self.waiting.remove(&place(&entry.lease));
        self.impatient.remove(id);
        let lease = &mut entry.lease;
        lease.state = LeaseState::Active;
        lease.grant = Some(Grant {
            at: step.now,
            time: step.wall,
            opened: None,
            renewed: step.now,
            epoch,
        });
        // The order in which they are found after a restart.
        let fleet = &self.fleet;
        entry
            .phones
            .sort_by(|one, other| fleet.device(*one).udid.cmp(&fleet.device(*other).udid));
        for number in &entry.phones {
            let slot = Slot::Held { lease: id.clone() };
            self.fleet.put(*number, slot);
            self.fleet.note_grant(*number, epoch);
            let udid = &self.fleet.device(*number).udid;
            lease.devices.insert(udid.clone());
        }
        step.changed(lease, What::Granted);
        let open = lease.devices.iter();
        let open = open.map(|udid| Act::Open(udid.clone(), id.clone()));
        step.acts.extend(open);
        entry.matching = Bits::default();
        self.rearm(id);
    }
}
