//! Looks at every act as whoever carries them out would, and knows nothing else.
//!
//! A phone is free, closed for a lease (and idle once the question was
//! answered), or open for one. Whatever the scheduler says must be possible.

use std::collections::{BTreeMap, BTreeSet};

use fleetgate_runner::Udid;

use crate::*;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Door {
    /// Not closed to anybody.
    Free,
    /// Closed for a lease, and maybe still asked whether it is idle.
    Closed { lease: LeaseId, asked: bool },
    /// The holder of a lease drives it.
    Open { lease: LeaseId },
}

#[derive(Debug, Clone, Default)]
pub(super) struct Referee {
    doors: BTreeMap<Udid, Door>,
    /// Every lease that ever was, as it was last put on record.
    record: BTreeMap<LeaseId, Lease>,
    last_epoch: u64,
}

impl Referee {
    pub(super) fn last_epoch(&self) -> u64 {
        self.last_epoch
    }

    /// The phones that are to be idle.
    pub(super) fn asked(&self) -> impl Iterator<Item = Udid> {
        let asked = self.doors.iter().filter(|(_, door)| {
            let Door::Closed { asked, .. } = door else {
                return false;
            };
            *asked
        });
        asked.map(|(udid, _)| udid.clone())
    }

    /// Every lease that was ever put on record.
    pub(super) fn leases(&self) -> impl Iterator<Item = &Lease> {
        self.record.values()
    }

    /// The leases that have their phones and have not been told so.
    pub(super) fn unopened(&self) -> impl Iterator<Item = LeaseId> {
        let active = self
            .record
            .values()
            .filter(|lease| lease.state() == LeaseState::Active && lease.opened().is_none());
        active.map(|lease| lease.id().clone())
    }

    /// The phones that are closed for a lease or open to it.
    pub(super) fn has(&self, id: &LeaseId) -> BTreeSet<Udid> {
        let has = self.doors.iter().filter(|(_, door)| match door {
            Door::Closed { lease, .. } | Door::Open { lease } => lease == id,
            Door::Free => false,
        });
        has.map(|(udid, _)| udid.clone()).collect()
    }

    /// What becomes of it when everything starts again: all doors are as the
    /// scheduler says, which goes by the record.
    pub(super) fn restarted(&self, acts: &[Act]) -> Self {
        let mut doors = BTreeMap::new();
        for act in acts {
            let (udid, door, state) = match act {
                Act::Open(udid, lease) => {
                    assert!(self.record[lease].epoch().is_some());
                    let lease = lease.clone();
                    (udid, Door::Open { lease }, LeaseState::Active)
                }
                Act::Close(udid, lease) => {
                    let lease = lease.clone();
                    let door = Door::Closed { lease, asked: true };
                    (udid, door, LeaseState::Draining)
                }
                Act::Changed(..) | Act::Free(_) => panic!("{act:?} after a restart"),
            };
            let (Door::Open { lease } | Door::Closed { lease, .. }) = &door else {
                unreachable!()
            };
            assert_eq!(self.record[lease].state(), state);
            assert!(self.record[lease].devices().contains(udid));
            assert_eq!(doors.insert(udid.clone(), door), None);
        }
        let granted = self.record.values().filter(|lease| lease.state().is_open());
        let devices: usize = granted.map(|lease| lease.devices().len()).sum();
        assert_eq!(doors.len(), devices, "every phone has its door");
        Self {
            doors,
            record: self.record.clone(),
            last_epoch: self.last_epoch,
        }
    }

    /// Notes that a question was answered.
    pub(super) fn answered(&mut self, udid: &Udid) {
        if let Some(Door::Closed { asked, .. }) = self.doors.get_mut(udid) {
            *asked = false;
        }
    }

    pub(super) fn look_at(&mut self, acts: &[Act], scheduler: &Scheduler) {
        for act in acts {
            match act {
                Act::Close(udid, lease) => self.close(udid, lease),
                Act::Changed(lease, what) => self.change(lease, *what),
                Act::Open(udid, lease) => self.open(udid, lease),
                Act::Free(udid) => self.free(udid, acts),
            }
        }
        self.compare(scheduler);
    }

    fn door(&mut self, udid: &Udid) -> &mut Door {
        self.doors.entry(udid.clone()).or_insert(Door::Free)
    }

    /// The state of a lease; one of which nothing is on record yet is about to
    /// be created.
    fn state(&self, id: &LeaseId) -> LeaseState {
        self.record[id].state()
    }

    fn close(&mut self, udid: &Udid, id: &LeaseId) {
        match self.door(udid).clone() {
            Door::Free => assert_eq!(self.state(id), LeaseState::Queued),
            // It is taken away from its holder only.
            Door::Open { lease } => {
                assert_eq!(
                    lease, *id,
                    "closed for one lease while it is open for another"
                );
                assert_eq!(self.state(id), LeaseState::Active);
            }
            Door::Closed { lease, .. } => {
                let before = self.state(&lease);
                let is_over = !before.is_open();
                assert!(
                    is_over || before == LeaseState::Queued,
                    "{udid} from {lease}"
                );
                assert_eq!(self.state(id), LeaseState::Queued);
            }
        }
        let lease = id.clone();
        *self.door(udid) = Door::Closed { lease, asked: true };
    }

    fn open(&mut self, udid: &Udid, id: &LeaseId) {
        let lease = &self.record[id];
        assert_eq!(lease.state(), LeaseState::Active);
        assert!(lease.epoch().is_some());
        assert!(lease.devices().contains(udid));
        let lease = id.clone();
        let idle = Door::Closed {
            lease: lease.clone(),
            asked: false,
        };
        assert_eq!(*self.door(udid), idle, "opened before it was idle");
        *self.door(udid) = Door::Open { lease };
    }

    fn free(&mut self, udid: &Udid, acts: &[Act]) {
        let Door::Closed { lease, .. } = self.door(udid).clone() else {
            panic!("{udid} was not closed");
        };
        // Over, or it waits and found that it cannot have it after all.
        let state = self.state(&lease);
        assert!(!state.is_open() || state == LeaseState::Queued);
        let closed = acts
            .iter()
            .any(|act| matches!(act, Act::Close(closed, _) if closed == udid));
        assert!(!closed, "freed and closed in the same step");
        *self.door(udid) = Door::Free;
    }

    fn change(&mut self, lease: &Lease, what: What) {
        use LeaseState::{Active, Draining, Queued, Scheduled};
        let id = lease.id();
        let before = self.record.insert(id.clone(), lease.clone());
        let (from, to) = (before.as_ref().map(Lease::state), lease.state());
        match what {
            What::Created => assert!(from.is_none() && matches!(to, Scheduled | Queued)),
            What::Queued => assert_eq!((from, to), (Some(Scheduled), Queued)),
            What::Granted => {
                assert_eq!((from, to), (Some(Queued), Active));
                let epoch = lease.epoch().unwrap().get();
                assert!(epoch > self.last_epoch, "an epoch that is not new");
                self.last_epoch = epoch;
                assert_eq!(*lease.devices(), self.has(id));
                assert_eq!(lease.devices().len(), lease.wants().count());
                assert_eq!(lease.deadline(), None, "its time runs before it has them");
            }
            What::Opened => {
                assert_eq!((from, to), (Some(Active), Active));
                assert!(before.as_ref().unwrap().opened().is_none());
                assert!(lease.deadline().is_some());
                let open = |udid: &Udid| {
                    let lease = id.clone();
                    self.doors[udid] == Door::Open { lease }
                };
                assert!(lease.devices().iter().all(open), "not open yet");
            }
            What::Renewed => assert_eq!((from, to), (Some(Active), Active)),
            What::Updated => assert_eq!(from, Some(to)),
            What::Draining => {
                assert_eq!((from, to), (Some(Active), Draining));
                assert!(lease.end().is_some());
                let closed = |udid: &Udid| !matches!(self.doors[udid], Door::Open { .. });
                assert!(lease.devices().iter().all(closed), "not closed at once");
            }
            What::Ended => {
                assert!(matches!(from, Some(Scheduled | Queued | Draining)));
                assert_eq!(to, lease.end().unwrap().reason.state());
                let door = |asked| Door::Closed {
                    lease: id.clone(),
                    asked,
                };
                let idle = |udid: &Udid| self.doors[udid] == door(false);
                assert!(lease.devices().iter().all(idle), "ended before it was idle");
            }
        }
        if let Some(before) = before {
            assert!(before.state().is_open(), "changed after its end");
            assert_eq!(before.context(), lease.context());
            if before.state() != Queued {
                assert_eq!(before.epoch(), lease.epoch());
                assert_eq!(before.devices(), lease.devices());
            }
        }
    }

    /// What is on record is what the scheduler says, and no phone is in two
    /// leases' hands.
    fn compare(&self, scheduler: &Scheduler) {
        let mut held = BTreeSet::new();
        let open: Vec<_> = scheduler.open().collect();
        for lease in &open {
            assert_eq!(self.record[lease.id()], **lease, "changed off the record");
            for udid in lease.devices() {
                assert!(held.insert(udid), "{udid} is in two leases' hands");
            }
        }
        let on_record = self.record.values().filter(|lease| lease.state().is_open());
        assert_eq!(on_record.count(), open.len());
        for (udid, door) in &self.doors {
            if let Door::Closed { lease, .. } | Door::Open { lease } = door {
                assert!(self.state(lease).is_open(), "{udid} is kept for nobody");
            }
        }
        let waiting = scheduler.waiting().map(Lease::id);
        let waiting: BTreeSet<_> = waiting.collect();
        let queued = open
            .iter()
            .filter(|lease| lease.state() == LeaseState::Queued);
        assert_eq!(waiting, queued.map(|lease| lease.id()).collect());
    }
}
