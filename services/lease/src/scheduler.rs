//! Who has which phone, and who is next: the pure type that decides.
//!
//! Owns the leases that are open, the phones and the deadlines. It is told what
//! happens ([`Input`]) and says what is to be done ([`Act`]). Refuses to do
//! anything itself, and to know what time it is.
//!
//! A step first looks whether its input is to be refused, then ends what is due,
//! takes the input in, and gives out the phones that there are. So it does not
//! matter whether a [`Input::Tick`] or another input comes first at a deadline:
//! at a deadline, and from then on, a lease has ended.
//!
//! Invariants: a phone is in the hands of one lease at most; every grant has a
//! higher epoch than all before it; what the scheduler remembers is bounded by
//! the leases that are open and the phones that were ever seen.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use fleetgate_runner::Udid;

mod ending;
mod explain;
mod input;
mod order;
mod resume;
#[cfg(test)]
mod tests;
mod waiting;

use crate::act::{Act, Input, Refused, What};
use crate::explanation::Explanation;
use crate::fleet::{Bits, Fleet, Slot};
use crate::id::{LeaseId, Priority};
use crate::lease::Lease;
use crate::state::{EndReason, LeaseState};
use crate::time::LeaseTime;

/// Where a lease stands among those that wait.
type Place = (Reverse<Priority>, u64);

/// When something is due for a lease. Of what is due at once, the turn of the
/// lease decides.
type Timer = (LeaseTime, u64);

/// Decides who has which phone.
#[derive(Debug, Clone)]
pub struct Scheduler {
    /// The open ones.
    leases: BTreeMap<LeaseId, Entry>,
    /// Those that ended in the last step.
    ended: BTreeMap<LeaseId, Lease>,
    waiting: BTreeMap<Place, LeaseId>,
    /// Those that wait, but only for what is kept for them.
    impatient: BTreeSet<LeaseId>,
    draining: BTreeSet<LeaseId>,
    timers: BTreeMap<Timer, LeaseId>,
    fleet: Fleet,
    next_epoch: u64,
    next_turn: u64,
    /// The time of the last step: that of the next is not before it.
    clock: LeaseTime,
}

/// An open lease and what goes with it.
#[derive(Debug, Clone)]
struct Entry {
    lease: Lease,
    /// The phones that match, while it waits.
    matching: Bits,
    /// The phones that are kept for it or that it has or had, by their numbers.
    phones: Vec<usize>,
    timer: Option<Timer>,
}

/// A step on its way.
#[derive(Debug)]
struct Step {
    now: LeaseTime,
    wall: SystemTime,
    acts: Vec<Act>,
    /// The phones that somebody gave back.
    freed: BTreeMap<Udid, usize>,
}

impl Step {
    fn changed(&mut self, lease: &Lease, what: What) {
        self.acts.push(Act::Changed(Box::new(lease.clone()), what));
    }
}

impl Scheduler {
    /// Goes on with the leases that were open: those that were granted keep
    /// their phones, those that drained are drained again, the others wait.
    ///
    /// `next_epoch` is a number that no grant has had yet, nor any above it. The
    /// acts are to be carried out before any command is let in; what they are
    /// about is on record. When a lease that is scheduled begins by the lease
    /// clock has to be set before ([`Lease::begin_at`]). The first step should
    /// tell of the phones: until then there are none.
    pub fn resume(open: Vec<Lease>, next_epoch: u64, now: LeaseTime) -> (Self, Vec<Act>) {
        resume::resume(open, next_epoch, now)
    }

    /// Takes in what has happened, and what is due by `now` besides, and says
    /// what is to be done. If it refuses, nothing has changed.
    pub fn step(
        &mut self,
        input: Input,
        now: LeaseTime,
        wall: SystemTime,
    ) -> Result<Vec<Act>, Refused> {
        let now = now.max(self.clock);
        self.check(&input, now)?;
        self.clock = now;
        self.ended.clear();
        let mut step = Step {
            now,
            wall,
            acts: Vec::new(),
            freed: BTreeMap::new(),
        };
        let input = match input {
            // Before what is due: a lease that begins is judged by the phones
            // that there are.
            Input::Devices(views) => {
                self.see(views, &mut step);
                Input::Tick
            }
            // What is due may close it: that is another question.
            Input::Idle { device } if !self.asks(&device) => Input::Tick,
            Input::Create(_)
            | Input::Renew { .. }
            | Input::Update { .. }
            | Input::End { .. }
            | Input::Idle { .. }
            | Input::Opened { .. }
            | Input::Tick => input,
        };
        self.end_what_is_due(&mut step);
        self.take_in(input, &mut step);
        // A time may have been set that has passed.
        self.end_what_is_due(&mut step);
        self.end_what_is_drained(&mut step);
        self.give_out(&mut step);
        for (udid, number) in step.freed {
            if *self.fleet.device(number).slot() == Slot::Free {
                step.acts.push(Act::Free(udid));
            }
        }
        Ok(step.acts)
    }

    /// When something is due, and an [`Input::Tick`] with it.
    pub fn next_timer(&self) -> Option<LeaseTime> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// A lease that is open, or has ended in the last step.
    pub fn lease(&self, id: &LeaseId) -> Option<&Lease> {
        let open = self.leases.get(id).map(|entry| &entry.lease);
        open.or_else(|| self.ended.get(id))
    }

    /// The leases that are open, by their ids.
    pub fn open(&self) -> impl Iterator<Item = &Lease> {
        self.leases.values().map(|entry| &entry.lease)
    }

    /// Those that wait, the first of them first.
    pub fn waiting(&self) -> impl Iterator<Item = &Lease> {
        let entries = self.waiting.values().filter_map(|id| self.leases.get(id));
        entries.map(|entry| &entry.lease)
    }

    /// A lease's place among those that wait, from 1. To know that of all,
    /// [`Scheduler::waiting`] is the shorter way.
    pub fn position(&self, id: &LeaseId) -> Option<usize> {
        let lease = &self.leases.get(id)?.lease;
        let waits = lease.state == LeaseState::Queued;
        waits.then(|| self.waiting.range(..=place(lease)).count())
    }

    /// Why a lease waits, by the rule by which it is granted.
    pub fn explain(&self, id: &LeaseId, now: LeaseTime) -> Option<Explanation> {
        let entry = self.leases.get(id)?;
        Some(explain::explain(self, entry, now))
    }

    /// Sets a lease's timer by its deadlines.
    fn rearm(&mut self, id: &LeaseId) {
        let Some(entry) = self.leases.get_mut(id) else {
            return;
        };
        let lease = &entry.lease;
        let due = match lease.state {
            LeaseState::Scheduled => lease.asked.begin.map(|begin| begin.at),
            LeaseState::Queued
            | LeaseState::Active
            | LeaseState::Draining
            | LeaseState::Released
            | LeaseState::Expired
            | LeaseState::Revoked
            | LeaseState::Cancelled
            | LeaseState::Unsatisfiable => lease.deadline(),
        };
        let timer = due.map(|at| (at, lease.turn));
        if let Some(before) = std::mem::replace(&mut entry.timer, timer) {
            self.timers.remove(&before);
        }
        if let Some(timer) = timer {
            self.timers.insert(timer, id.clone());
        }
    }

    fn turn(&mut self) -> u64 {
        let turn = self.next_turn;
        self.next_turn += 1;
        turn
    }
}

fn place(lease: &Lease) -> Place {
    (Reverse(lease.asked.priority), lease.turn)
}

/// The reason that ends a lease at its owner's wish.
fn given_back(state: LeaseState) -> EndReason {
    match state {
        LeaseState::Scheduled | LeaseState::Queued => EndReason::Cancelled,
        LeaseState::Active
        | LeaseState::Draining
        | LeaseState::Released
        | LeaseState::Expired
        | LeaseState::Revoked
        | LeaseState::Cancelled
        | LeaseState::Unsatisfiable => EndReason::Released,
    }
}
