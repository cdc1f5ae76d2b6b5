//! What a ledger's writer has done since it was opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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
    /// What the committed transactions took, from their beginning to the end of
    /// their commit.
    pub writing: Duration,
    /// How much of that went into the chain: reading its end, hashing, and
    /// inserting its links.
    pub chaining: Duration,
    /// Commands removed by retention.
    pub pruned: u64,
    /// Leases removed by retention.
    pub leases_pruned: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    commits: AtomicU64,
    written: AtomicU64,
    refused: AtomicU64,
    found_locked: AtomicU64,
    writing_ns: AtomicU64,
    chaining_ns: AtomicU64,
    pruned: AtomicU64,
    leases_pruned: AtomicU64,
}

impl Counters {
    pub(crate) fn committed(&self, writing: Duration, chaining: Duration) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        add(&self.writing_ns, writing);
        add(&self.chaining_ns, chaining);
    }

    pub(crate) fn pruned(&self, commands: u64, leases: u64) {
        self.pruned.fetch_add(commands, Ordering::Relaxed);
        self.leases_pruned.fetch_add(leases, Ordering::Relaxed);
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
            writing: Duration::from_nanos(self.writing_ns.load(Ordering::Relaxed)),
            chaining: Duration::from_nanos(self.chaining_ns.load(Ordering::Relaxed)),
            pruned: self.pruned.load(Ordering::Relaxed),
            leases_pruned: self.leases_pruned.load(Ordering::Relaxed),
        }
    }
}

fn add(counter: &AtomicU64, time: Duration) {
    counter.fetch_add(
        u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        Ordering::Relaxed,
    );
}
