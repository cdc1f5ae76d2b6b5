//! From the end to the next.
//!
//! Invariant: the phones of a lease that was granted are free only once all of
//! them are idle.

use super::{Scheduler, Step, place};
use crate::act::{Act, What};
use crate::fleet::Slot;
use crate::id::LeaseId;
use crate::lease::End;
use crate::state::{EndReason, LeaseState};

impl Scheduler {
    /// Ends and begins what is due.
    pub(super) fn end_what_is_due(&mut self, step: &mut Step) {
        while let Some(due) = self.timers.first_entry() {
            if due.key().0 > step.now {
                break;
            }
            let id = due.remove();
            let Some(entry) = self.leases.get_mut(&id) else {
                continue;
            };
            entry.timer = None;
            match entry.lease.state {
                LeaseState::Scheduled => self.begin(&id, step),
                LeaseState::Queued | LeaseState::Active => {
                    if let Some((_, reason)) = entry.lease.next_end() {
                        self.finish(&id, by_itself(reason, step), step);
                    }
                }
                LeaseState::Draining
                | LeaseState::Released
                | LeaseState::Expired
                | LeaseState::Revoked
                | LeaseState::Cancelled
                | LeaseState::Unsatisfiable => {}
            }
        }
    }

    /// Ends a lease for its owner, unless it has ended.
    pub(super) fn finish(&mut self, id: &LeaseId, end: End, step: &mut Step) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        let lease = &mut entry.lease;
        match lease.state {
            LeaseState::Scheduled | LeaseState::Queued => {
                lease.end = Some(end);
                self.waiting.remove(&place(lease));
                self.impatient.remove(id);
                self.bury(id, step);
            }
            LeaseState::Active => {
                lease.end = Some(end);
                lease.state = LeaseState::Draining;
                for number in &entry.phones {
                    let slot = Slot::Draining {
                        lease: id.clone(),
                        idle: false,
                    };
                    self.fleet.put(*number, slot);
                    let udid = self.fleet.device(*number).udid.clone();
                    step.acts.push(Act::Close(udid, id.clone()));
                }
                step.changed(lease, What::Draining);
                self.draining.insert(id.clone());
                self.rearm(id);
            }
            LeaseState::Draining
            | LeaseState::Released
            | LeaseState::Expired
            | LeaseState::Revoked
            | LeaseState::Cancelled
            | LeaseState::Unsatisfiable => {}
        }
    }

    /// Lets go of those that drained and whose phones are all idle.
    pub(super) fn end_what_is_drained(&mut self, step: &mut Step) {
        let is_idle = |number: &usize| {
            let slot = self.fleet.device(*number).slot();
            !matches!(slot, Slot::Draining { idle: false, .. })
        };
        let is_drained = |id: &&LeaseId| {
            let entry = self.leases.get(*id);
            entry.is_none_or(|entry| entry.phones.iter().all(is_idle))
        };
        let drained: Vec<_> = self.draining.iter().filter(is_drained).cloned().collect();
        for id in drained {
            self.draining.remove(&id);
            self.bury(&id, step);
        }
    }

    /// Gives back the phones that were kept for a lease, which waits on.
    pub(super) fn give_up(&mut self, id: &LeaseId, step: &mut Step) {
        let entry = self.leases.get_mut(id);
        let phones = entry.map(|entry| std::mem::take(&mut entry.phones));
        self.free(phones.unwrap_or_default(), step);
    }

    /// Lets go of a lease that has ended and of its phones.
    fn bury(&mut self, id: &LeaseId, step: &mut Step) {
        let Some(mut entry) = self.leases.remove(id) else {
            return;
        };
        if let Some(timer) = entry.timer {
            self.timers.remove(&timer);
        }
        if let Some(end) = &entry.lease.end {
            entry.lease.state = end.reason.state();
        }
        step.changed(&entry.lease, What::Ended);
        self.free(entry.phones, step);
        self.ended.insert(id.clone(), entry.lease);
    }

    fn free(&mut self, phones: Vec<usize>, step: &mut Step) {
        for number in phones {
            self.fleet.put(number, Slot::Free);
            let udid = self.fleet.device(number).udid.clone();
            step.freed.insert(udid, number);
        }
    }
}

fn by_itself(reason: EndReason, step: &Step) -> End {
    End {
        reason,
        detail: None,
        by: None,
        time: step.wall,
    }
}
