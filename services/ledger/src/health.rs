//! How a ledger fares: whether it can be written, and how much room there is.
//!
//! Invariant: `writable` tells how the last attempt to write ended, and a
//! failure is looked into again until one succeeds, whether or not anybody
//! writes: a gateway that is given no work because its ledger fails would never
//! learn that it does not fail any more.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::LedgerError;
use crate::lock::beside;

/// How a ledger fares.
#[derive(Debug, Clone)]
pub struct LedgerHealth {
    /// The file.
    pub path: PathBuf,
    /// Whether the last attempt to write succeeded, and the file is still where
    /// it was.
    pub writable: bool,
    /// Why it cannot be written.
    pub last_error: Option<LedgerError>,
    /// The bytes of the file and of its WAL.
    pub size_bytes: u64,
    /// The bytes that are left to this user in its file system; `None` if it
    /// does not say.
    pub free_bytes: Option<u64>,
}

/// Why the last attempt to write failed; nothing if it succeeded.
#[derive(Debug, Default)]
pub(crate) struct LastFailure(Mutex<Option<LedgerError>>);

impl LastFailure {
    pub(crate) fn set(&self, failure: Option<LedgerError>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    pub(crate) fn get(&self) -> Option<LedgerError> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The bytes of the file and of its WAL.
pub(crate) fn size(path: &Path) -> u64 {
    [path.to_owned(), beside(path, "-wal")]
        .iter()
        .filter_map(|path| path.metadata().ok())
        .map(|found| found.len())
        .sum()
}

/// The bytes that are left where the file is.
pub(crate) fn free(path: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
