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
//! Invariant: effects come in the order of the acts, each after the rows before
//! it; what was refused is offered again before anything newer.

use std::collections::HashSet;
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
    /// What is under way on these phones is ended by force.
    Recycle(Vec<Udid>, String),
}

/// What goes into the ledger together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<(LeaseId, LeaseRow)>,
    pub(super) operations: Vec<(LeaseId, NewOperation)>,
    pub(super) effects: Vec<Effect>,
    pub(super) answers: Vec<Answer>,
    /// Leases that are on no record before this, whatever became of them.
    pub(super) created: Vec<LeaseId>,
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
            answers,
            created,
        } = later;
        for row in rows {
            self.put(row);
        }
        self.operations.extend(operations);
        self.effects.extend(effects);
        self.answers.extend(answers);
        self.created.extend(created);
    }

    /// Of each lease the newest row counts. It keeps the place of the first, by
    /// which a list of leases is ordered.
    pub(super) fn put(&mut self, row: (LeaseId, LeaseRow)) {
        match self.rows.iter_mut().find(|(id, _)| *id == row.0) {
            Some(before) => *before = row,
            None => self.rows.push(row),
        }
    }

    /// Whether nothing is to be written before the rest may follow.
    pub(super) fn has_nothing_to_write(&self) -> bool {
        self.rows.is_empty() && self.operations.is_empty()
    }

    /// Takes out what is of leases that never were. Their phones are freed all
    /// the same.
    pub(super) fn forget(&mut self, gone: &HashSet<LeaseId>) {
        self.rows.retain(|(id, _)| !gone.contains(id));
        self.operations.retain(|(id, _)| !gone.contains(id));
        self.created.retain(|id| !gone.contains(id));
        self.effects.retain(|effect| match effect {
            Effect::Tell(lease, _) => !gone.contains(lease.id()),
            Effect::Open(_, id, _) => !gone.contains(id),
            Effect::Free(..) | Effect::Recycle(..) => true,
        });
    }
}
