//! What a ledger's writer has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a ledger's writer has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerStats {
    /// Transactions committed. Under load, fewer than the entries.
    pub commits: u64,
    /// Entries written.
    pub written: u64,
    /// Entries refused, for whatever reason.
    pub refused: u64,
    /// Attempts to write that found the database locked.
    pub found_locked: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    written: AtomicU64,
    refused: AtomicU64,
    found_locked: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, written: bool) {
        let counter = if written {
            &self.written
        } else {
            &self.refused
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn found_locked(&self) {
        self.found_locked.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> LedgerStats {
        LedgerStats {
            commits: self.commits.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            found_locked: self.found_locked.load(Ordering::Relaxed),
        }
    }
}
