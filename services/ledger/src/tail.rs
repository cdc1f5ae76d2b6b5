//! The ledger's events in their order, from a cursor on.
//!
//! A page is one short read. A cursor names the last link that its holder has
//! seen, by number and hash: one of another ledger, or of a ledger that was put
//! back to an older state, is refused rather than continued with other events.
//!
//! Invariant: pages that are read one after the other leave out no event;
//! where retention removed some, the reader is told.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use base64_simd::URL_SAFE_NO_PAD;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection, SqlitePool};

use crate::canonical::{Hash, Head};
use crate::chain::hash_of;
use crate::error::LedgerError;
use crate::event::EventKind;
use crate::operations::{Operation, operation_columns};
use crate::query::ReadError;
use crate::row::{CommandRow, Unreadable, columns};
use crate::time::system_time;
use crate::transitions::{Transition, transition_columns};

const DEFAULT_PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 500;

/// Links with whatever they bind.
const SELECT_LINKS: &str = concat!(
    "SELECT h.seq AS link, h.kind AS event, h.reference, h.at_us, h.hash, ",
    columns!("f.reply"),
    ", ",
    operation_columns!(),
    ", ",
    transition_columns!(),
    ", k.seq AS checkpoint_seq, k.ledger_id AS checkpoint_ledger_id, k.chain_seq, k.chain_hash, \
     k.pruned_through_us, k.commands_pruned, k.at_us AS checkpoint_at_us, \
     i.one AS identity_seq, i.ledger_id AS identity_ledger_id, i.created_us AS identity_created_us \
     FROM chain AS h \
     LEFT JOIN fates AS f ON h.kind IN ('recorded', 'concluded', 'repeated', 'resolved', 'carried_fate') \
     AND f.seq = h.reference \
     LEFT JOIN commands AS c ON c.seq = \
     CASE WHEN h.kind IN ('intended', 'carried') THEN h.reference ELSE f.command_seq END \
     LEFT JOIN operations AS o ON h.kind = 'operation' AND o.seq = h.reference \
     LEFT JOIN device_transitions AS t ON h.kind = 'transition' AND t.seq = h.reference \
     LEFT JOIN checkpoints AS k ON h.kind = 'pruned' AND k.seq = h.reference \
     LEFT JOIN identity AS i ON h.kind = 'opened' AND i.one = h.reference \
     WHERE h.seq > ?1 ORDER BY h.seq LIMIT ?2"
);

/// Where a reader of events stands. Opaque to clients; no secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor(pub(crate) Head);

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerEvent {
    /// Its place in the chain.
    pub seq: i64,
    /// Where to go on after it.
    pub cursor: Cursor,
    /// What happened.
    pub kind: EventKind,
    /// When it was handed to the ledger. To the microsecond.
    pub at: SystemTime,
    /// What it happened to.
    pub subject: Subject,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// The ledger itself.
    Ledger {
        /// The ledger's id, which it was given when it was made.
        ledger_id: String,
    },
    /// A command: as intended, without a conclusion, or with the conclusion
    /// that the event is about.
    Command(Box<CommandRow>),
    /// An operation.
    Operation(Operation),
    /// What a phone went through.
    Transition(Transition),
    /// The removal of older events.
    Checkpoint(Checkpoint),
}

/// What retention says about what it removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last link that was removed.
    pub removed: Head,
    /// The youngest time, of rows or of ids, of all commands ever removed.
    pub pruned_through: SystemTime,
    /// How many commands were ever removed.
    pub commands_pruned: u64,
}

/// Events that follow each other.
#[derive(Debug, Clone, PartialEq)]
pub struct TailPage {
    /// The events, the oldest first; none if nothing has happened since.
    pub events: Vec<LedgerEvent>,
    /// Where to go on; `None` only in a ledger without any event.
    pub cursor: Option<Cursor>,
}

/// The links after a number, with what they bind.
pub(crate) async fn links(
    connection: &mut SqliteConnection,
    after: i64,
    limit: u32,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    sqlx::query(SELECT_LINKS)
        .bind(after)
        .bind(limit)
        .fetch_all(connection)
        .await
}

pub(crate) async fn tail(
    pool: &SqlitePool,
    after: Option<Cursor>,
    page_size: u32,
) -> Result<TailPage, ReadError> {
    let limit = match page_size {
        0 => DEFAULT_PAGE,
        size => size.min(LARGEST_PAGE),
    };
    // One snapshot, so that nothing is removed between the look at the cursor
    // and the page.
    let mut snapshot = pool.begin().await?;
    if let Some(cursor) = after {
        check(&mut snapshot, cursor).await?;
    }
    let seen = after.map_or(0, |cursor| cursor.0.seq);
    let mut events = Vec::new();
    for row in links(&mut snapshot, seen, limit).await? {
        events.push(LedgerEvent::read(&row)?);
    }
    snapshot.rollback().await?;
    let cursor = events.last().map(|event| event.cursor).or(after);
    Ok(TailPage { events, cursor })
}

/// Where a reader stands who has seen everything.
pub(crate) async fn head(pool: &SqlitePool) -> Result<Option<Cursor>, ReadError> {
    let newest: Option<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT seq, hash FROM chain ORDER BY seq DESC LIMIT 1")
            .fetch_optional(pool)
            .await?;
    Ok(newest.map(cursor).transpose()?)
}

/// Whether the cursor is of this ledger, and nothing after it was removed.
async fn check(connection: &mut SqliteConnection, cursor: Cursor) -> Result<(), ReadError> {
    let kept: Option<(i64, Vec<u8>)> = sqlx::query_as("SELECT seq, hash FROM chain WHERE seq = ?1")
        .bind(cursor.0.seq)
        .fetch_optional(&mut *connection)
        .await?;
    let removed: Option<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT chain_seq, chain_hash FROM checkpoints ORDER BY seq DESC LIMIT 1")
            .fetch_optional(&mut *connection)
            .await?;
    let kept = kept.map(self::cursor).transpose()?;
    let removed = removed.map(self::cursor).transpose()?;
    match (kept, removed) {
        (Some(kept), _) if kept == cursor => Ok(()),
        (None, Some(removed)) if removed == cursor => Ok(()),
        (None, Some(removed)) if cursor.0.seq < removed.0.seq => {
            Err(LedgerError::CursorGap { resume: removed }.into())
        }
        (Some(_) | None, Some(_) | None) => Err(LedgerError::ForeignCursor.into()),
    }
}

fn cursor((seq, hash): (i64, Vec<u8>)) -> Result<Cursor, sqlx::Error> {
    Ok(Cursor(Head {
        seq,
        hash: hash_of(&hash)?,
    }))
}

impl LedgerEvent {
    fn read(row: &SqliteRow) -> Result<Self, LedgerError> {
        let seq = row.try_get("link").unwrap_or_default();
        Self::decode(row, seq).map_err(|error| LedgerError::UnreadableRow {
            seq,
            source: error.into(),
        })
    }

    fn decode(row: &SqliteRow, seq: i64) -> Result<Self, Unreadable> {
        let word: String = row.try_get("event")?;
        let kind = EventKind::from_word(&word).ok_or_else(|| format!("no event is {word:?}"))?;
        let hash: Vec<u8> = row.try_get("hash")?;
        Ok(Self {
            seq,
            cursor: cursor((seq, hash))?,
            kind,
            at: system_time(row.try_get("at_us")?),
            subject: Subject::decode(kind, row)?,
        })
    }
}

impl Subject {
    fn decode(kind: EventKind, row: &SqliteRow) -> Result<Self, Unreadable> {
        Ok(match kind {
            EventKind::Opened => Self::Ledger {
                ledger_id: row.try_get("identity_ledger_id")?,
            },
            EventKind::Intended
            | EventKind::Recorded
            | EventKind::Concluded
            | EventKind::Repeated
            | EventKind::Resolved
            | EventKind::Carried
            | EventKind::CarriedFate => Self::Command(Box::new(CommandRow::read(row)?)),
            EventKind::Operation => Self::Operation(Operation::decode(row)?),
            EventKind::Transition => Self::Transition(Transition::decode(row)?),
            EventKind::Pruned => Self::Checkpoint(Checkpoint::decode(row)?),
        })
    }
}

impl Checkpoint {
    pub(crate) fn decode(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        let hash: Vec<u8> = row.try_get("chain_hash")?;
        Ok(Self {
            removed: Head {
                seq: row.try_get("chain_seq")?,
                hash: hash_of(&hash)?,
            },
            pruned_through: system_time(row.try_get("pruned_through_us")?),
            commands_pruned: u64::try_from(row.try_get::<i64, _>("commands_pruned")?)
                .unwrap_or_default(),
        })
    }
}

impl Cursor {
    /// The link that it stands behind.
    pub fn head(&self) -> Head {
        self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = self.0.seq.to_be_bytes().to_vec();
        bytes.extend(self.0.hash.as_bytes());
        f.write_str(&URL_SAFE_NO_PAD.encode_to_string(bytes))
    }
}

impl FromStr for Cursor {
    type Err = LedgerError;

    fn from_str(text: &str) -> Result<Self, LedgerError> {
        const LEN: usize = 54;
        if text.len() != LEN {
            return Err(LedgerError::InvalidCursor);
        }
        let bytes = URL_SAFE_NO_PAD
            .decode_to_vec(text.as_bytes())
            .map_err(|_| LedgerError::InvalidCursor)?;
        let Some((seq, hash)) = bytes.split_first_chunk() else {
            return Err(LedgerError::InvalidCursor);
        };
        let seq = i64::from_be_bytes(*seq);
        if seq <= 0 {
            return Err(LedgerError::InvalidCursor);
        }
        let hash = Hash::try_from(hash).map_err(|_| LedgerError::InvalidCursor)?;
        Ok(Self(Head { seq, hash }))
    }
}
