//! Leases that the ledger will never take as they are.
//!
//! ```text
//!   a batch ── what it says cannot be ──► each of its leases alone ─► on record
//!                                            └── the same ──► SPOILT: left out
//! ```
//!
//! A ledger that is full or away takes a batch later. One that holds something
//! else already, or must not hold what this says, never does, and would keep all
//! other leases waiting for ever.
//!
//! Invariant: a lease that is left out stands still as far as anybody is told, and
//! nobody gets a phone by it; its phones are freed when its time is over. The
//! others go on.

use std::collections::HashSet;
use std::sync::Arc;

use fleetgate_lease::{Input, LeaseId};
use fleetgate_ledger::LedgerError;
use tracing::error;

use super::Broker;
use super::ask::Answer;
use super::outbox::Batch;

/// Whether it is what was to be written that is wrong, and not the ledger.
pub(super) fn is_of_the_rows(error: &LedgerError) -> bool {
    matches!(
        error,
        LedgerError::LeaseRequestTaken { .. }
            | LedgerError::LeaseMismatch { .. }
            | LedgerError::EpochTaken { .. }
            | LedgerError::UnredactedOperation { .. }
            | LedgerError::Rejected { .. }
    )
}

impl Broker {
    /// Finds out which lease of a batch is to blame, and leaves that one out.
    pub(super) fn sort_out(&mut self, mut batch: Batch, error: &LedgerError) {
        let leases = batch.leases();
        let is_new = !batch.created.is_empty();
        batch.append(std::mem::take(&mut self.gathered));
        self.gathered = batch;
        match leases.as_slice() {
            [spoilt] => self.leave_out(spoilt, is_new, error),
            _several => self.alone = leases.into(),
        }
    }

    fn leave_out(&mut self, id: &LeaseId, is_new: bool, error: &LedgerError) {
        let row = self.gathered.rows.rows.iter().find(|(of, _)| of == id);
        let row = row.map(|(_, row)| row);
        error!(lease.id = %id, %error, ?row, "a lease can never be put on record like this");
        let answers = std::mem::take(&mut self.gathered.answers);
        let (of_it, others): (Vec<_>, _) = answers
            .into_iter()
            .partition(|Answer { view, .. }| view.lease.id() == id);
        self.gathered.answers = others;
        for answer in of_it {
            answer.fail(is_new, error.clone());
        }
        let last = self.gathered.last_told(id).map(Arc::clone);
        self.gathered.forget(&HashSet::from([id.clone()]));
        if is_new {
            self.take_back(id);
            return;
        }
        // It has an end, although nobody gets to drive by it.
        self.step(Input::Opened { id: id.clone() }).ok();
        if let Some(ended) = last.filter(|last| !last.state().is_open()) {
            self.gate.tell(ended);
            self.board.forget(id);
        }
    }
}
