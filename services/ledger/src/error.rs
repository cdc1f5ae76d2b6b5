//! Everything a ledger can refuse or fail with.
//!
//! Errors are cheap to clone, since one failure of a batch is the answer to
//! everybody in it. [`classify`] is the only place that reads SQLite's codes.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{CommandId, Udid};

use crate::tail::Cursor;

/// Whatever a failure was caused by.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// What a ledger can refuse or fail with.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// The path names no file.
    #[error(
        "a ledger must be a file, which {path:?} is not; databases in memory are not supported"
    )]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The directory is not there and could not be made.
    #[error("cannot make the ledger's directory {path:?}")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The file, or the lock file beside it, could not be made or opened.
    #[error("cannot open {path:?}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// Another gateway has it open. Only one may write it.
    #[error("the ledger {path:?} is open in another gateway, which holds {lock:?}")]
    InUse {
        /// The ledger.
        path: PathBuf,
        /// The lock file.
        lock: PathBuf,
    },
    /// A newer gateway wrote it. It was not touched.
    #[error(
        "the ledger {path:?} has schema {found}, and this gateway knows no newer one than {known}: \
         use a newer gateway; the file was not touched"
    )]
    NewerSchema {
        /// The ledger.
        path: PathBuf,
        /// The schema's version in the file.
        found: i64,
        /// The newest that this binary knows.
        known: i64,
    },
    /// A database, but somebody else's. It was not touched.
    #[error("{path:?} is a database of another program; it was not touched")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is damaged.
    #[error("the ledger {path:?} is damaged; it was kept as it is: move it away or restore a copy")]
    Corrupt {
        /// The ledger.
        path: PathBuf,
        /// Why.
        #[source]
        source: Cause,
    },
    /// An older gateway wrote it, and reading alone cannot bring it up to date.
    #[error(
        "the ledger {path:?} has schema {found}, and only a gateway can bring it up to {known}"
    )]
    OlderSchema {
        /// The ledger.
        path: PathBuf,
        /// The schema's version in the file.
        found: i64,
        /// The one that is needed.
        known: i64,
    },
    /// The chain of its events lost its beginning or its end altogether.
    #[error(
        "the ledger {path:?} lost the chain of its events; it was kept as it is: restore a copy"
    )]
    BrokenChain {
        /// The ledger.
        path: PathBuf,
    },
    /// The schema could not be brought up to date.
    #[error("cannot bring the schema of the ledger {path:?} up to date")]
    Schema {
        /// The ledger.
        path: PathBuf,
        /// Why.
        #[source]
        source: Cause,
    },

    /// A command of this id is on record. Nothing was written.
    #[error("a command with the id {command_id} is on record")]
    Duplicate {
        /// The id.
        command_id: CommandId,
    },
    /// No command of this id is on record, so it can have no fate. Nothing was
    /// written.
    #[error("no command with the id {command_id} is on record, so it cannot be concluded")]
    NotIntended {
        /// The id.
        command_id: CommandId,
    },
    /// The command has a fate, and not one that may be corrected. Nothing was
    /// written.
    #[error("the command {command_id} is concluded")]
    AlreadyConcluded {
        /// The id.
        command_id: CommandId,
    },
    /// The parameters hold typed text. Nothing was written.
    #[error("the parameters of the command {command_id} hold typed text, which is never recorded")]
    Unredacted {
        /// The id.
        command_id: CommandId,
    },
    /// Another phone has the alias. Nothing was written.
    #[error("the alias {alias:?} is that of {device}")]
    AliasTaken {
        /// The alias.
        alias: String,
        /// The phone that has it.
        device: Udid,
    },
    /// The details of an operation hold typed text. Nothing was written.
    #[error("the details of the operation {what:?} hold typed text, which is never recorded")]
    UnredactedOperation {
        /// What it was.
        what: String,
    },
    /// The owner's request has made a lease. Nothing was written.
    #[error("the request {request_id:?} of {owner:?} has made the lease {lease}")]
    LeaseRequestTaken {
        /// The owner.
        owner: String,
        /// The request.
        request_id: String,
        /// The lease that it has made.
        lease: String,
    },
    /// The lease is on record with something else that never changes. Nothing was
    /// written.
    #[error("the lease {lease} is on record with another {what}")]
    LeaseMismatch {
        /// The lease.
        lease: String,
        /// What never changes: `owner`, `request`, `epoch` or `end`.
        what: &'static str,
    },
    /// The epoch is not higher than all that were given before, or another
    /// lease's. Nothing was written.
    #[error("the epoch {epoch} was given before, so the lease {lease} cannot have it")]
    EpochTaken {
        /// The epoch.
        epoch: u64,
        /// The lease that was to have it.
        lease: String,
    },
    /// The entry breaks a rule of the schema. Nothing was written.
    #[error("the ledger's schema does not take the entry")]
    Rejected {
        /// Which rule.
        #[source]
        source: Cause,
    },
    /// Another connection kept the database locked, or every reader was busy.
    /// Nothing was written; trying again is safe.
    #[error("the ledger {path:?} was locked for longer than {patience:?}")]
    Unavailable {
        /// The ledger.
        path: PathBuf,
        /// How long was waited.
        patience: Duration,
        /// What the last attempt met.
        #[source]
        source: Cause,
    },
    /// The disk is full. Nothing was written; writing works again when there is
    /// room.
    #[error("no room to write the ledger {path:?}")]
    Full {
        /// The ledger.
        path: PathBuf,
        /// Why.
        #[source]
        source: Cause,
    },
    /// The database failed. What was being written is most likely not there,
    /// but a failure to synchronise may leave it behind.
    #[error("the ledger {path:?} failed")]
    Storage {
        /// The ledger.
        path: PathBuf,
        /// Why.
        #[source]
        source: Cause,
    },
    /// The ledger is closed. Nothing was written.
    #[error("the ledger is closed")]
    Closed,
    /// The writer ended before it answered. The entry may have been written.
    #[error("the ledger's writer ended before it answered")]
    Interrupted,

    /// Not a page token of this ledger.
    #[error("not a page token")]
    InvalidPageToken,
    /// A page token of a query with other filters.
    #[error("the page token belongs to a query with other filters")]
    PageTokenMismatch,
    /// Not a cursor.
    #[error("not a cursor")]
    InvalidCursor,
    /// A cursor that this ledger never gave out: it is of another ledger, or
    /// this one was put back to an older state.
    #[error("the cursor is not one of this ledger")]
    ForeignCursor,
    /// Events after the cursor were removed by retention.
    #[error("the events after the cursor were removed; those that are left begin after {resume}")]
    CursorGap {
        /// Where to go on, having missed what was removed.
        resume: Cursor,
    },
    /// A row holds what this version cannot read.
    #[error("cannot read the ledger's row {seq}")]
    UnreadableRow {
        /// The row of `commands`, or of `chain` if it belongs to no command.
        seq: i64,
        /// Why.
        #[source]
        source: Cause,
    },
    /// A phone's settings hold what this version cannot read.
    #[error("cannot read the settings of {device:?}")]
    UnreadableSettings {
        /// The phone, by what stands there.
        device: String,
        /// Why.
        #[source]
        source: Cause,
    },
    /// A lease's row holds what this version cannot read.
    #[error("cannot read the lease {lease:?}")]
    UnreadableLease {
        /// The lease, by what stands there.
        lease: String,
        /// Why.
        #[source]
        source: Cause,
    },
}

impl LedgerError {
    /// True if the same entry may be taken later: it was the place that failed,
    /// and not what was asked for.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable { .. }
            | Self::Full { .. }
            | Self::Storage { .. }
            | Self::Interrupted => true,
            Self::NotAFile { .. }
            | Self::Directory { .. }
            | Self::File { .. }
            | Self::InUse { .. }
            | Self::NewerSchema { .. }
            | Self::Foreign { .. }
            | Self::Corrupt { .. }
            | Self::OlderSchema { .. }
            | Self::BrokenChain { .. }
            | Self::Schema { .. }
            | Self::Duplicate { .. }
            | Self::NotIntended { .. }
            | Self::AlreadyConcluded { .. }
            | Self::Unredacted { .. }
            | Self::AliasTaken { .. }
            | Self::UnredactedOperation { .. }
            | Self::LeaseRequestTaken { .. }
            | Self::LeaseMismatch { .. }
            | Self::EpochTaken { .. }
            | Self::Rejected { .. }
            | Self::Closed
            | Self::InvalidPageToken
            | Self::PageTokenMismatch
            | Self::InvalidCursor
            | Self::ForeignCursor
            | Self::CursorGap { .. }
            | Self::UnreadableRow { .. }
            | Self::UnreadableSettings { .. }
            | Self::UnreadableLease { .. } => false,
        }
    }
}

/// What an error of the database means to whoever writes or reads.
pub(crate) fn classify(path: &Path, patience: Duration, error: sqlx::Error) -> LedgerError {
    let path = path.to_owned();
    let condition = condition(&error);
    if matches!(error, sqlx::Error::PoolClosed) {
        return LedgerError::Closed;
    }
    let source: Cause = Arc::new(error);
    match condition {
        Condition::Locked => LedgerError::Unavailable {
            path,
            patience,
            source,
        },
        Condition::Damaged => LedgerError::Corrupt { path, source },
        Condition::Full => LedgerError::Full { path, source },
        Condition::Constraint => LedgerError::Rejected { source },
        Condition::Other => LedgerError::Storage { path, source },
    }
}

/// The classes of the database's errors that call for different answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Locked,
    Damaged,
    Full,
    Constraint,
    Other,
}

/// The class of an error, by SQLite's primary result code.
pub(crate) fn condition(error: &sqlx::Error) -> Condition {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const CORRUPT: i32 = 11;
    const FULL: i32 = 13;
    const CONSTRAINT: i32 = 19;
    const NOT_A_DATABASE: i32 = 26;
    // The one extended code that counts: no room to map the WAL's index, which
    // is how a full disk shows when a ledger is opened.
    const IOERR_SHMSIZE: i32 = 4874;

    if matches!(error, sqlx::Error::PoolTimedOut) {
        return Condition::Locked;
    }
    let extended = error
        .as_database_error()
        .and_then(|error| error.code()?.parse::<i32>().ok());
    if extended == Some(IOERR_SHMSIZE) {
        return Condition::Full;
    }
    match extended.map(|code| code & 0xff) {
        Some(BUSY | LOCKED) => Condition::Locked,
        Some(CORRUPT | NOT_A_DATABASE) => Condition::Damaged,
        Some(FULL) => Condition::Full,
        Some(CONSTRAINT) => Condition::Constraint,
        Some(_) | None => Condition::Other,
    }
}
