//! How a ledger is kept.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// How a ledger is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerConfig {
    /// The file. It is made, readable by its owner only, if it is missing, and
    /// so is its directory. A database in memory is not supported.
    pub path: PathBuf,
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// How long an entry, or a read, waits for a database that another
    /// connection keeps locked.
    pub patience: Duration,
    /// How many reads may run at once.
    pub readers: NonZeroU32,
}

impl LedgerConfig {
    /// The defaults: full synchronisation, five seconds of patience, four
    /// readers.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        const READERS: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);
        Self {
            path: path.into(),
            synchronous: Synchronous::default(),
            patience: Duration::from_secs(5),
            readers: READERS,
        }
    }
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Synchronous {
    /// The disk: what was acknowledged survives a power cut.
    #[default]
    Full,
    /// The operating system: what was acknowledged survives the end of the
    /// process, and a power cut may take the last commits.
    Normal,
}
