//! What phones went through, read back: of one phone, the newest first.
//!
//! A page is one short read along the index of its phone, so its cost is that
//! of its rows, whatever else the ledger holds. What is recorded meanwhile comes
//! before the first page and never shifts a page.

use std::time::SystemTime;

use fleetgate_runner::Udid;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};

use crate::error::LedgerError;
use crate::pages;
use crate::query::ReadError;
use crate::row::Unreadable;
use crate::time::system_time;
use crate::token::{PageToken, Scope};

/// The columns of a transition, by names that are no other column's.
macro_rules! transition_columns {
    () => {
        "t.seq AS transition_seq, t.device AS transition_device, t.from_state, t.to_state, \
         t.reason AS transition_reason, t.detail AS transition_detail, t.at_us AS transition_at_us"
    };
}
pub(crate) use transition_columns;

const SELECT: &str = concat!(
    "SELECT ",
    transition_columns!(),
    " FROM device_transitions AS t WHERE t.device = ?1 AND t.seq < ?2 ORDER BY t.seq DESC LIMIT ?3"
);

/// What a phone went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Its place in the chain.
    pub seq: i64,
    /// When it was handed to the ledger. To the microsecond.
    pub at: SystemTime,
    /// The phone.
    pub device: Udid,
    /// The state that it left.
    pub from: String,
    /// The state that it came into; the same if it stayed in it.
    pub to: String,
    /// Why: a code.
    pub reason: String,
    /// More about it, in words.
    pub detail: Option<String>,
}

/// One page of what a phone went through.
#[derive(Debug, Clone, PartialEq)]
pub struct TransitionPage {
    /// The transitions, the newest first.
    pub transitions: Vec<Transition>,
    /// Where the page ended; `None` if nothing is left.
    pub next: Option<PageToken>,
}

pub(crate) async fn transitions(
    pool: &SqlitePool,
    device: &Udid,
    page_size: u32,
    token: Option<PageToken>,
) -> Result<TransitionPage, ReadError> {
    let scope = Scope::Transitions(device.clone());
    let before = match token {
        Some(token) if token.scope == scope => token.before,
        Some(_) => return Err(LedgerError::PageTokenMismatch.into()),
        None => i64::MAX,
    };
    let size = pages::size(page_size);
    // One more than the page holds tells whether there is another page.
    let rows = sqlx::query(SELECT)
        .bind(device.as_str())
        .bind(before)
        .bind(i64::try_from(size + 1).unwrap_or(i64::MAX))
        .fetch_all(pool)
        .await?;
    let more = rows.len() > size;
    let transitions = rows
        .iter()
        .take(size)
        .map(Transition::read)
        .collect::<Result<Vec<_>, _>>()?;
    let next = transitions.last().filter(|_| more).map(|last| PageToken {
        before: last.seq,
        floor: 0,
        scope,
    });
    Ok(TransitionPage { transitions, next })
}

impl Transition {
    fn read(row: &SqliteRow) -> Result<Self, LedgerError> {
        Self::decode(row).map_err(|error| LedgerError::UnreadableRow {
            seq: row.try_get("transition_seq").unwrap_or_default(),
            source: error.into(),
        })
    }

    pub(crate) fn decode(row: &SqliteRow) -> Result<Self, Unreadable> {
        Ok(Self {
            seq: row.try_get("transition_seq")?,
            at: system_time(row.try_get("transition_at_us")?),
            device: row.try_get::<String, _>("transition_device")?.parse()?,
            from: row.try_get("from_state")?,
            to: row.try_get("to_state")?,
            reason: row.try_get("transition_reason")?,
            detail: row.try_get("transition_detail")?,
        })
    }
}
