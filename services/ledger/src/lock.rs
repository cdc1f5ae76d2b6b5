//! One writer per file.
//!
//! SQLite lets processes take turns at a file, and two gateways that did would
//! each believe that they alone know which ids are in flight. An advisory lock
//! on a file beside the ledger keeps the second out. It must not be on the
//! ledger itself: closing any descriptor of a file drops the POSIX locks that
//! SQLite holds on it in this process.
//!
//! The lock goes with its last descriptor, so a killed gateway leaves none
//! behind. A process that is just being started by another thread has a copy of
//! the descriptor until it runs its own program: so the lock is given back by
//! word, and not only by closing ours.
//! The file stays: removing it would let two gateways lock two files of one
//! name.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::LedgerError;

/// Held for as long as the file may be written.
#[derive(Debug)]
pub(crate) struct WriterLock {
    file: File,
}

impl WriterLock {
    /// Takes the lock of the ledger at `path`, at once or not at all.
    pub(crate) fn take(path: &Path) -> Result<Self, LedgerError> {
        let lock = beside(path, ".lock");
        let failed = |source| LedgerError::File {
            path: lock.clone(),
            source: Arc::new(source),
        };
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file }),
            Err(TryLockError::WouldBlock) => Err(LedgerError::InUse {
                path: path.to_owned(),
                lock,
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        if let Err(error) = self.file.unlock() {
            tracing::debug!(%error, "the ledger's lock goes with its descriptor");
        }
    }
}

/// The file that has the name of `path` and a suffix.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_free_once_it_is_given_back_whoever_has_a_copy_of_its_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.db");
        let lock = WriterLock::take(&path).unwrap();
        let copy = lock.file.try_clone().unwrap();
        let taken = WriterLock::take(&path).unwrap_err();
        assert!(matches!(taken, LedgerError::InUse { .. }), "{taken:?}");
        drop(lock);
        WriterLock::take(&path).unwrap();
        drop(copy);
    }
}
