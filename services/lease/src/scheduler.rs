//! Who is next: the pure type that decides.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::act::{Act, Input, Refused};
use crate::explanation::Explanation;
use crate::id::LeaseId;
use crate::lease::Lease;
use crate::state::LeaseState;
use crate::time::LeaseTime;

/// Decides who has which phone.
#[derive(Debug, Clone)]
pub struct Scheduler {
    leases: BTreeMap<LeaseId, Lease>,
}

impl Scheduler {
    /// Goes on with the leases that were open: those that were granted keep
    /// their phones, those that drained are drained again, the others wait.
    ///
    /// `next_epoch` is the number that no grant has had yet. What it wants done
    /// is to be done before any command is let in; the changes are on record.
    pub fn resume(open: Vec<Lease>, next_epoch: u64, now: LeaseTime) -> (Self, Vec<Act>) {
        let _ = (next_epoch, now);
        let leases = open.into_iter().map(|lease| (lease.id().clone(), lease));
        let leases = leases.collect();
        (Self { leases }, Vec::new())
    }

    /// Takes in what has happened, and what is due by `now` besides, and says
    /// what is to be done. If it refuses, nothing has changed.
    pub fn step(
        &mut self,
        input: Input,
        now: LeaseTime,
        wall: SystemTime,
    ) -> Result<Vec<Act>, Refused> {
        let _ = (input, now, wall);
        Err(Refused::NotFound)
    }

    /// When something is due, and a [`Input::Tick`] with it.
    pub fn next_timer(&self) -> Option<LeaseTime> {
        self.leases.values().filter_map(Lease::deadline).min()
    }

    /// A lease that is open, or has ended in the last step.
    pub fn lease(&self, id: &LeaseId) -> Option<&Lease> {
        self.leases.get(id)
    }

    /// The leases that are open.
    pub fn open(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values()
    }

    /// Those that wait, the first of them first.
    pub fn waiting(&self) -> impl Iterator<Item = &Lease> {
        self.leases
            .values()
            .filter(|lease| lease.state() == LeaseState::Queued)
    }

    /// A lease's place among those that wait, from 1.
    pub fn position(&self, id: &LeaseId) -> Option<usize> {
        let mut waiting = self.waiting();
        waiting.position(|lease| lease.id() == id).map(|at| at + 1)
    }

    /// Why a lease waits, by the rule by which it is granted.
    pub fn explain(&self, id: &LeaseId, now: LeaseTime) -> Option<Explanation> {
        let _ = now;
        let lease = self.lease(id)?;
        Some(Explanation {
            state: lease.state(),
            wanted: lease.wants().count(),
            devices: Vec::new(),
            ahead: Vec::new(),
        })
    }
}
