//! The gate: who may drive which phone, as every command asks at its admission.
//!
//! ```text
//!              reserve                 open
//!   FREE ───────────────► RESERVED ───────────► HELD
//!    ▲  ▲                    │                   │ withdraw
//!    │  └────────────────────┘ free              ▼
//!    └───────────────────────────────────── DRAINING
//!                        free
//! ```
//!
//! It decides nothing about leases: the broker tells it what has been decided,
//! to close a door at once, and to open one when that is on record.
//!
//! Whether a command is let in and who has the phone are one step under one
//! lock, and so are the closing of a door and the withdrawal of what was let in
//! by it. A door is idle when nobody has a leave of it any more.
//!
//! Invariant: once a door is closed nothing is let in but by its next holder, and
//! that holder is let in only when the door was idle since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleetgate_lease::{Epoch, Lease, LeaseId, LeaseState, LeaseTime};
use fleetgate_runner::Udid;
use fleetgate_session::{Leave, Withdrawn};
use tokio::sync::watch;

use super::clock::LeaseClock;
use super::refused::{Refused, how_it_ended, how_it_ends};

/// Who may drive which phone. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Gate(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Whether a phone that nobody has needs a lease, too.
    required: bool,
    clock: LeaseClock,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// A phone without a door is free.
    doors: HashMap<Udid, Door>,
    /// The leases that are open, as they are known.
    leases: HashMap<LeaseId, Arc<Lease>>,
}

/// The door of one phone.
#[derive(Debug)]
struct Door {
    holder: Holder,
    /// Counts the closings.
    closings: u64,
    leave: Arc<watch::Sender<Option<Withdrawn>>>,
}

/// Whose a phone is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Holder {
    Free,
    Reserved(LeaseId),
    Held(LeaseId),
    Draining(LeaseId),
}

/// The lease that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) id: LeaseId,
    /// `None` stands for every number that no grant has.
    pub(crate) epoch: Option<Epoch>,
}

/// Tells a door that was closed since from one that was not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

/// A door that was closed.
#[derive(Debug)]
pub(crate) struct Closed {
    device: Udid,
    mark: Mark,
    leave: Arc<watch::Sender<Option<Withdrawn>>>,
}

impl Default for Gate {
    /// A gate of phones that nobody leases.
    fn default() -> Self {
        Self::new(false, LeaseClock::resume(Duration::ZERO))
    }
}

impl Gate {
    /// A gate whose doors are all open to everybody, unless leases are required.
    pub(crate) fn new(required: bool, clock: LeaseClock) -> Self {
        let table = Mutex::default();
        Self(Arc::new(Shared {
            required,
            clock,
            table,
        }))
    }

    /// The clock by which leases end.
    pub(crate) fn clock(&self) -> LeaseClock {
        self.0.clock
    }

    /// Leave for a command that needs the phone, of a principal that names this
    /// lease or none.
    pub(crate) fn admit(
        &self,
        device: &Udid,
        principal: &str,
        named: Option<&Named>,
    ) -> Result<Leave, Refused> {
        let mut table = self.lock();
        match named {
            Some(named) => table.check(device, principal, named, self.0.clock.now())?,
            None => table.check_unleased(device, principal, self.0.required, self.0.clock)?,
        }
        Ok(Leave::until(table.door(device).leave.subscribe()))
    }

    /// Whether a lease that a read names is what it says. Reads need none.
    pub(crate) fn check(
        &self,
        device: &Udid,
        principal: &str,
        named: &Named,
    ) -> Result<(), Refused> {
        self.lock()
            .check(device, principal, named, self.0.clock.now())
    }

    /// Keeps a phone for a lease: what was let in ends in its own time.
    pub(crate) fn reserve(&self, device: &Udid, lease: &LeaseId) -> Closed {
        self.lock()
            .close(device, Holder::Reserved(lease.clone()), None)
    }

    /// Takes a phone from a lease that has ended: what was let in and waits is
    /// not sent any more.
    pub(crate) fn withdraw(&self, device: &Udid, lease: &LeaseId, why: Withdrawn) -> Closed {
        self.lock()
            .close(device, Holder::Draining(lease.clone()), Some(why))
    }

    /// The state of a door; see [`Gate::open`] and [`Gate::free`].
    pub(crate) fn mark(&self, device: &Udid) -> Mark {
        Mark(self.lock().door(device).closings)
    }

    /// Opens a door to the holder of a lease, unless it was closed again since
    /// it had this mark.
    pub(crate) fn open(&self, device: &Udid, lease: &LeaseId, mark: Mark) {
        self.lock()
            .settle(device, Holder::Held(lease.clone()), mark);
    }

    /// Opens a door to everybody, unless it was closed again since it had this
    /// mark.
    pub(crate) fn free(&self, device: &Udid, mark: Mark) {
        self.lock().settle(device, Holder::Free, mark);
    }

    /// What is known of a lease from now on; one that has ended is forgotten.
    /// That it ends is told before it is on record, and what it was before that
    /// counts no more.
    pub(crate) fn tell(&self, lease: Arc<Lease>) {
        let mut table = self.lock();
        if !lease.state().is_open() {
            table.leases.remove(lease.id());
            return;
        }
        let known = table.leases.get(lease.id());
        let ends = known.is_some_and(|known| known.end().is_some());
        if !ends || lease.end().is_some() {
            table.leases.insert(lease.id().clone(), lease);
        }
    }

    /// The lease that has a phone, if one does or it drains.
    pub(crate) fn lease_of(&self, device: &Udid) -> Option<Arc<Lease>> {
        let table = self.lock();
        match &table.doors.get(device)?.holder {
            Holder::Held(lease) | Holder::Draining(lease) => table.leases.get(lease).cloned(),
            Holder::Free | Holder::Reserved(_) => None,
        }
    }

    /// Whether a lease has a phone or is about to.
    pub(crate) fn is_taken(&self, device: &Udid) -> bool {
        let table = self.lock();
        let door = table.doors.get(device);
        door.is_some_and(|door| door.holder != Holder::Free)
    }

    /// Whether something that was let in by a lease has not ended, which has.
    pub(crate) fn is_busy_with(&self, device: &Udid, lease: &LeaseId) -> bool {
        let table = self.lock();
        let door = table.doors.get(device);
        door.is_some_and(|door| match &door.holder {
            Holder::Draining(holder) => holder == lease && door.leave.receiver_count() > 0,
            Holder::Free | Holder::Reserved(_) | Holder::Held(_) => false,
        })
    }

    /// A door as it is, to be waited for.
    pub(super) fn closed(&self, device: &Udid) -> Closed {
        let mut table = self.lock();
        let door = table.door(device);
        Closed {
            device: device.clone(),
            mark: Mark(door.closings),
            leave: Arc::clone(&door.leave),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics between two steps of a change, so that a poisoned
        // table is whole.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Closed {
    /// As the door is by this.
    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// Whether nothing that was let in is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.leave.receiver_count() == 0
    }

    /// Waits until nothing that was let in is under way.
    pub(crate) async fn idle(self) -> (Udid, Mark) {
        self.leave.closed().await;
        (self.device, self.mark)
    }
}

impl Table {
    fn door(&mut self, device: &Udid) -> &mut Door {
        self.doors.entry(device.clone()).or_insert_with(|| Door {
            holder: Holder::Free,
            closings: 0,
            leave: Arc::default(),
        })
    }

    fn close(&mut self, device: &Udid, holder: Holder, why: Option<Withdrawn>) -> Closed {
        let door = self.door(device);
        door.holder = holder;
        door.closings += 1;
        if why.is_some() {
            door.leave.send_replace(why);
        }
        Closed {
            device: device.clone(),
            mark: Mark(door.closings),
            leave: Arc::clone(&door.leave),
        }
    }

    fn settle(&mut self, device: &Udid, holder: Holder, mark: Mark) {
        let door = self.door(device);
        if door.closings != mark.0 {
            return;
        }
        door.holder = holder;
        // What was withdrawn was the leave of those before.
        if door.leave.borrow().is_some() {
            door.leave = Arc::default();
        }
    }

    fn check(
        &self,
        device: &Udid,
        principal: &str,
        named: &Named,
        now: LeaseTime,
    ) -> Result<(), Refused> {
        let Named { id, epoch } = named;
        let Some(lease) = self.leases.get(id) else {
            return Err(Refused::Unknown(id.clone()));
        };
        if lease.owner() != principal {
            return Err(Refused::NotOwner(id.clone()));
        }
        if let Some(end) = lease.end() {
            return Err(how_it_ended(lease, end));
        }
        match lease.state() {
            LeaseState::Active => {}
            state @ (LeaseState::Scheduled
            | LeaseState::Queued
            | LeaseState::Draining
            | LeaseState::Released
            | LeaseState::Expired
            | LeaseState::Revoked
            | LeaseState::Cancelled
            | LeaseState::Unsatisfiable) => return Err(Refused::NotActive(id.clone(), state)),
        }
        // Its time is over whether somebody has had a turn to say so or not.
        if let Some(how) = lease.due(now) {
            return Err(how_it_ends(lease, how));
        }
        if lease.epoch() != *epoch {
            return Err(Refused::EpochStale {
                lease: id.clone(),
                granted: lease.epoch(),
            });
        }
        let holds = match self.doors.get(device).map(|door| &door.holder) {
            Some(Holder::Held(holder)) => holder == id,
            Some(Holder::Free | Holder::Reserved(_) | Holder::Draining(_)) | None => false,
        };
        if holds {
            Ok(())
        } else if lease.devices().contains(device) {
            Err(Refused::NotActive(id.clone(), lease.state()))
        } else {
            Err(Refused::OtherDevice(id.clone()))
        }
    }

    fn check_unleased(
        &self,
        device: &Udid,
        principal: &str,
        required: bool,
        clock: LeaseClock,
    ) -> Result<(), Refused> {
        let holder = self.doors.get(device).map(|door| &door.holder);
        let lease = match holder {
            None | Some(Holder::Free) if required => return Err(Refused::Required),
            None | Some(Holder::Free) => return Ok(()),
            Some(Holder::Reserved(lease) | Holder::Held(lease) | Holder::Draining(lease)) => lease,
        };
        let lease = self.leases.get(lease);
        let owner = lease.map(|lease| lease.owner());
        if let Some(lease) = lease.filter(|lease| lease.owner() == principal) {
            let unnamed = Refused::Unnamed {
                lease: lease.id().clone(),
                granted: lease.epoch(),
            };
            let ended = lease.end().map(|end| how_it_ended(lease, end));
            return Err(ended.unwrap_or(unnamed));
        }
        Err(Refused::HeldByOther {
            owner: owner.map(str::to_owned),
            until: lease
                .filter(|lease| lease.state() == LeaseState::Active)
                .and_then(|lease| lease.deadline())
                .map(|deadline| clock.wall(deadline)),
        })
    }
}

#[cfg(test)]
mod tests;
