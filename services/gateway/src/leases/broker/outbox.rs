//! What is on its way into the ledger, and what follows when it is there.
//!
//! ```text
//!   acts ─► GATHERED ── nothing under way ──► UNDER WAY ── on record ──► effects
//!              ▲                                  │
//!              └───────────── refused, in front ──┘
//! ```
//!
//! What is gathered while a write is under way goes into the next one.
//!
//! Invariants: effects come in the order of the acts, each after the rows before
//! it; what was refused is offered again before anything newer. However often a
//! lease is renewed meanwhile, that is one row and one effect.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fleetgate_lease::{Lease, LeaseId, What};
use fleetgate_ledger::{LeaseRow, NewOperation};
use fleetgate_runner::Udid;

use super::ask::Answer;
use crate::leases::gate::Mark;

/// What follows when everything before it is on record.
#[derive(Debug)]
pub(super) enum Effect {
    /// A lease has changed.
    Tell(Arc<Lease>, What),
    /// Its holder may drive the phone.
    Open(Udid, LeaseId, Mark),
    /// The phone is nobody's again.
    Free(Udid, Mark),
    /// What is under way by a lease that has ended is ended by force, and why.
    Recycle(Arc<Lease>, String),
}

impl Effect {
    /// The lease that is told of for the first time, if one is.
    pub(super) fn created(&self) -> Option<&LeaseId> {
        match self {
            Self::Tell(lease, What::Created) => Some(lease.id()),
            Self::Tell(
                _,
                What::Granted
                | What::Opened
                | What::Renewed
                | What::Updated
                | What::Queued
                | What::Draining
                | What::Ended,
            )
            | Self::Open(..)
            | Self::Free(..)
            | Self::Recycle(..) => None,
        }
    }
}

/// What goes into the ledger together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: Rows,
    pub(super) operations: Vec<(LeaseId, NewOperation)>,
    pub(super) effects: Vec<Effect>,
    /// Where the last change of each lease is among the effects.
    told: HashMap<LeaseId, usize>,
    pub(super) answers: Vec<Answer>,
    /// Leases that are on no record before this, whatever became of them.
    pub(super) created: Vec<LeaseId>,
}

/// The newest row of each lease, in the order in which the first of each came: by
/// that a list of leases is ordered.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) rows: Vec<(LeaseId, LeaseRow)>,
    places: HashMap<LeaseId, usize>,
}

impl Batch {
    /// Whether there is nothing to be done.
    pub(super) fn is_empty(&self) -> bool {
        self.has_nothing_to_write() && self.effects.is_empty() && self.answers.is_empty()
    }

    /// Puts what came later behind this.
    pub(super) fn append(&mut self, later: Self) {
        let Self {
            rows,
            operations,
            effects,
            told: _,
            answers,
            created,
        } = later;
        for (id, row) in rows.rows {
            self.rows.put(id, row);
        }
        self.operations.extend(operations);
        for effect in effects {
            match effect {
                Effect::Tell(lease, what) => self.tell(lease, what),
                Effect::Open(..) | Effect::Free(..) | Effect::Recycle(..) => {
                    self.effects.push(effect);
                }
            }
        }
        self.answers.extend(answers);
        self.created.extend(created);
    }

    /// That a lease has changed is to be told. Of renewals and updates that
    /// nothing else of the lease came between, the newest counts.
    pub(super) fn tell(&mut self, lease: Arc<Lease>, what: What) {
        let is_minor = |what: What| match what {
            What::Opened | What::Renewed | What::Updated => true,
            What::Created | What::Granted | What::Queued | What::Draining | What::Ended => false,
        };
        let before = self.told.get(lease.id()).copied();
        let before = before.and_then(|before| self.effects.get_mut(before));
        match before {
            Some(Effect::Tell(before, was)) if is_minor(*was) && is_minor(what) => {
                *before = lease;
                // That its time runs is no news beside another.
                if what != What::Opened {
                    *was = what;
                }
            }
            Some(_) | None => {
                self.told.insert(lease.id().clone(), self.effects.len());
                self.effects.push(Effect::Tell(lease, what));
            }
        }
    }

    /// A lease as it was told of last.
    pub(super) fn last_told(&self, id: &LeaseId) -> Option<&Arc<Lease>> {
        match self.effects.get(*self.told.get(id)?)? {
            Effect::Tell(lease, _) => Some(lease),
            Effect::Open(..) | Effect::Free(..) | Effect::Recycle(..) => None,
        }
    }

    /// Whether nothing is to be written before the rest may follow.
    pub(super) fn has_nothing_to_write(&self) -> bool {
        self.rows.rows.is_empty() && self.operations.is_empty()
    }

    /// The leases of which something is to be written.
    pub(super) fn leases(&self) -> Vec<LeaseId> {
        let rows = self.rows.rows.iter().map(|(id, _)| id);
        let operations = self.operations.iter().map(|(id, _)| id);
        let mut seen = HashSet::new();
        let ids = rows.chain(operations).filter(|id| seen.insert(*id));
        ids.cloned().collect()
    }

    /// Takes out what is to be written of one lease. What follows from it stays.
    pub(super) fn part(&mut self, id: &LeaseId) -> Self {
        let mut part = Self::default();
        if let Some(row) = self.rows.take(id) {
            part.rows.put(id.clone(), row);
        }
        let operations = std::mem::take(&mut self.operations);
        (part.operations, self.operations) = operations.into_iter().partition(|(of, _)| of == id);
        let created = std::mem::take(&mut self.created);
        (part.created, self.created) = created.into_iter().partition(|of| of == id);
        part
    }

    /// Takes out what is of leases that never were, or not as this says. Their
    /// phones are freed all the same.
    pub(super) fn forget(&mut self, gone: &HashSet<LeaseId>) {
        self.rows.keep(|id| !gone.contains(id));
        self.operations.retain(|(id, _)| !gone.contains(id));
        self.created.retain(|id| !gone.contains(id));
        self.effects.retain(|effect| match effect {
            Effect::Tell(lease, _) => !gone.contains(lease.id()),
            Effect::Open(_, id, _) => !gone.contains(id),
            Effect::Free(..) | Effect::Recycle(..) => true,
        });
        self.told.clear();
        for (place, effect) in self.effects.iter().enumerate() {
            if let Effect::Tell(lease, _) = effect {
                self.told.insert(lease.id().clone(), place);
            }
        }
    }
}

impl Rows {
    /// Puts a row in place of the one before of the same lease, if there is one.
    pub(super) fn put(&mut self, id: LeaseId, row: LeaseRow) {
        if let Some(place) = self.places.get(&id) {
            self.rows[*place].1 = row;
        } else {
            self.places.insert(id.clone(), self.rows.len());
            self.rows.push((id, row));
        }
    }

    fn take(&mut self, id: &LeaseId) -> Option<LeaseRow> {
        let place = *self.places.get(id)?;
        let (_, row) = self.rows.remove(place);
        self.find_places();
        Some(row)
    }

    fn keep(&mut self, wanted: impl Fn(&LeaseId) -> bool) {
        self.rows.retain(|(id, _)| wanted(id));
        self.find_places();
    }

    fn find_places(&mut self) {
        let ids = self.rows.iter().map(|(id, _)| id.clone());
        self.places = ids.enumerate().map(|(place, id)| (id, place)).collect();
    }
}
