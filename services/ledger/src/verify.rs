//! Whether the ledger is still what was written.
//!
//! The walk computes every hash of the chain again from the rows as they are
//! now, and then counts: a row that no link binds was put there by somebody
//! else. So a changed, removed, inserted or reordered row shows, be it a link
//! or what a link binds.
//!
//! What cannot show from the file alone is a chain that was cut off at its end,
//! or computed anew, together with all that it binds. For that a [`Head`] must
//! have been kept elsewhere.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use crate::canonical::Head;
use crate::error::{LedgerError, classify};
use crate::event::EventKind;
use crate::open::{Header, known_schema};
use crate::tail::Checkpoint;

mod walk;

pub(crate) use self::walk::{follow, newest_checkpoint};

const PATIENCE: Duration = Duration::from_secs(5);

/// What a walk found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyReport {
    /// The ledger's id; `None` if it is gone.
    pub ledger_id: Option<String>,
    /// Links that were found to be as written.
    pub events: u64,
    /// Commands that they bind.
    pub commands: u64,
    /// Where the chain begins, if older events were removed.
    pub checkpoint: Option<Checkpoint>,
    /// The last link that was found to be as written: keep it elsewhere, and
    /// give it to a later walk.
    pub head: Head,
    /// Whether the head that was given could be compared: not if retention has
    /// removed its link, nor if none was given.
    pub known_compared: bool,
    /// Where the ledger is not what was written.
    pub first_break: Option<Break>,
}

impl VerifyReport {
    /// Whether nothing was found to be wrong.
    pub fn is_intact(&self) -> bool {
        self.first_break.is_none()
    }
}

/// Where the ledger is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    /// The first link that does not hold; for a row that no link binds, the one
    /// after the last.
    pub seq: i64,
    /// What is wrong.
    pub what: Fault,
}

/// What is wrong with a ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The beginning is missing, and no checkpoint says that it was removed.
    NoBeginning,
    /// A link is missing.
    Missing,
    /// What the link binds is missing.
    Unbound {
        /// What kind of event it is.
        kind: EventKind,
    },
    /// The link, or what it binds, is not what was hashed.
    Changed {
        /// What kind of event it is.
        kind: EventKind,
    },
    /// No kind of event has this name.
    UnknownKind {
        /// The name.
        kind: String,
    },
    /// A table holds rows that no link binds.
    Outside {
        /// The table.
        table: &'static str,
        /// One of the rows, by its `seq`.
        row: i64,
    },
    /// A command is unsettled, and not found where such commands are looked for.
    Unlisted {
        /// Its row.
        command: i64,
    },
    /// The link that was given is not there any more.
    CutOff {
        /// The link that was given.
        known: Head,
    },
    /// The link that was given is another one now.
    Rewritten {
        /// The link that was given.
        known: Head,
    },
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq;
        match &self.what {
            Fault::NoBeginning => write!(
                f,
                "the chain begins with link {seq}, and no checkpoint says that those before it were removed"
            ),
            Fault::Missing => write!(f, "link {seq} is missing"),
            Fault::Unbound { kind } => {
                write!(f, "what link {seq} ({kind}) binds is missing")
            }
            Fault::Changed { kind } => write!(
                f,
                "link {seq} ({kind}), or what it binds, is not what was written"
            ),
            Fault::UnknownKind { kind } => {
                write!(f, "link {seq} is of a kind that is not known: {kind:?}")
            }
            Fault::Outside { table, row } => {
                write!(f, "no link binds row {row} of {table}")
            }
            Fault::Unlisted { command } => write!(
                f,
                "the command in row {command} is unsettled, and not listed as such"
            ),
            Fault::CutOff { known } => write!(
                f,
                "the chain was cut off before link {}, which was known to be there",
                known.seq
            ),
            Fault::Rewritten { known } => write!(
                f,
                "link {} was rewritten: it was known to have the hash {}",
                known.seq, known.hash
            ),
        }
    }
}

/// Walks the chain of the ledger at `path`, which is only read; a gateway may
/// be writing it. `known` is a head that an earlier walk has reported.
///
/// An error means that the walk was not possible; what it found to be wrong is
/// in the report.
pub async fn verify(path: &Path, known: Option<Head>) -> Result<VerifyReport, LedgerError> {
    let failed = |error| classify(path, PATIENCE, error);
    // SQLite's own error would not tell a missing file from an unreadable one.
    std::fs::File::open(path).map_err(|source| LedgerError::File {
        path: path.to_owned(),
        source: Arc::new(source),
    })?;
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(PATIENCE)
        .disable_statement_logging()
        .connect()
        .await
        .map_err(failed)?;
    let header = Header::read(&mut connection).await.map_err(failed)?;
    header.check(path)?;
    match header.schema {
        Some(schema) if schema == known_schema() => {}
        found => {
            return Err(LedgerError::OlderSchema {
                path: path.to_owned(),
                found: found.unwrap_or_default(),
                known: known_schema(),
            });
        }
    }
    let report = walk::walk(&mut connection, known).await.map_err(failed)?;
    connection.close().await.map_err(failed)?;
    Ok(report)
}
