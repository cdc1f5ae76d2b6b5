//! The board: every lease that is open, as far as it is on record, for those
//! who ask and those who watch.
//!
//! A watcher sees the newest state and may miss what was between. What it must
//! not miss, that a lease was granted and that it has ended, is kept beside the
//! newest state for as long as anybody looks.
//!
//! Invariant: nothing is here before it is on record.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleetgate_lease::{Lease, LeaseId, LeaseState, What};
use tokio::sync::watch;

/// The leases that are open. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board(Arc<Mutex<HashMap<LeaseId, watch::Sender<Bulletin>>>>);

/// What is known of one lease.
#[derive(Debug, Clone)]
pub(super) struct Bulletin {
    pub(super) view: LeaseView,
    /// How often its owner has changed or renewed it.
    pub(super) updates: u64,
    /// As it was granted, drained and ended.
    pub(super) granted: Option<Arc<Lease>>,
    pub(super) draining: Option<Arc<Lease>>,
    pub(super) ended: Option<Arc<Lease>>,
}

/// A lease, and its place among those that wait, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseView {
    pub(crate) lease: Arc<Lease>,
    pub(crate) position: Option<usize>,
}

impl Board {
    /// A lease that was open when the gateway came up.
    pub(super) fn resume(&self, lease: Arc<Lease>) {
        let id = lease.id().clone();
        let sender = watch::Sender::new(Bulletin::new(lease));
        self.lock().insert(id, sender);
    }

    /// A change is on record.
    pub(super) fn publish(&self, lease: &Arc<Lease>, what: What) {
        let mut board = self.lock();
        let bulletin = board
            .entry(lease.id().clone())
            .or_insert_with(|| watch::Sender::new(Bulletin::new(Arc::clone(lease))));
        bulletin.send_modify(|bulletin| bulletin.take(lease, what));
        if !lease.state().is_open() {
            // Those who watch see the last of it.
            board.remove(lease.id());
        }
    }

    /// A lease that is not open any more, although no record says so. Those who
    /// watch it hear nothing further.
    pub(super) fn forget(&self, id: &LeaseId) {
        self.lock().remove(id);
    }

    /// The places of those that wait, the first of them first.
    pub(super) fn line_up<'a>(&self, waiting: impl Iterator<Item = &'a LeaseId>) {
        let board = self.lock();
        for (before, id) in waiting.enumerate() {
            let Some(bulletin) = board.get(id) else {
                continue;
            };
            let position = Some(before + 1);
            bulletin.send_if_modified(|bulletin| {
                let waits = bulletin.view.lease.state() == LeaseState::Queued;
                let moved = waits && bulletin.view.position != position;
                if moved {
                    bulletin.view.position = position;
                }
                moved
            });
        }
    }

    /// A lease that is open.
    pub(crate) fn get(&self, id: &LeaseId) -> Option<LeaseView> {
        let board = self.lock();
        board.get(id).map(|bulletin| bulletin.borrow().view.clone())
    }

    /// Follows one.
    pub(super) fn follow(&self, id: &LeaseId) -> Option<watch::Receiver<Bulletin>> {
        self.lock().get(id).map(watch::Sender::subscribe)
    }

    /// How many are in which state.
    pub(crate) fn count(&self) -> BTreeMap<LeaseState, u64> {
        let mut counts = BTreeMap::new();
        for bulletin in self.lock().values() {
            let state = bulletin.borrow().view.lease.state();
            *counts.entry(state).or_default() += 1;
        }
        counts
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LeaseId, watch::Sender<Bulletin>>> {
        // Nothing panics between two steps of a change, so that a poisoned
        // board is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bulletin {
    fn new(lease: Arc<Lease>) -> Self {
        Self {
            view: LeaseView {
                lease,
                position: None,
            },
            updates: 0,
            granted: None,
            draining: None,
            ended: None,
        }
    }

    fn take(&mut self, lease: &Arc<Lease>, what: What) {
        self.view.lease = Arc::clone(lease);
        if lease.state() != LeaseState::Queued {
            self.view.position = None;
        }
        let newest = Some(Arc::clone(lease));
        match what {
            // That its time runs is told with the grant.
            What::Created | What::Queued | What::Opened => {}
            What::Renewed | What::Updated => self.updates += 1,
            What::Granted => self.granted = newest,
            What::Draining => self.draining = newest,
            What::Ended => self.ended = newest,
        }
    }
}
