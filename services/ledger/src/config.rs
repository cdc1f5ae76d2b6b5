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
    /// What is removed again.
    pub retention: RetentionConfig,
}

/// What is removed again, and when. An open intent never is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Events that were recorded longer ago than this are removed.
    pub max_age: Option<Duration>,
    /// While the pages in use exceed this, the oldest events are removed. The
    /// file itself follows.
    pub max_bytes: Option<u64>,
    /// How often there is a look.
    pub interval: Duration,
}

impl Default for RetentionConfig {
    /// Nothing is removed.
    fn default() -> Self {
        Self {
            max_age: None,
            max_bytes: None,
            interval: Duration::from_mins(1),
        }
    }
}

impl LedgerConfig {
    /// The defaults: full synchronisation, five seconds of patience, four
    /// readers, and everything kept.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        const READERS: NonZeroU32 = NonZeroU32::MIN.saturating_add(3);
        Self {
            path: path.into(),
            synchronous: Synchronous::default(),
            patience: Duration::from_secs(5),
            readers: READERS,
            retention: RetentionConfig::default(),
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
