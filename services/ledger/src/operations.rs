//! What was done other than by a command, read back: the newest first.

use std::time::SystemTime;

use serde_json::{Map, Value};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqlitePool};

use crate::error::LedgerError;
use crate::pages::{self, Slices};
use crate::query::ReadError;
use crate::row::Unreadable;
use crate::time::{bound, system_time};
use crate::token::{PageToken, Scope};

/// The columns of an operation, by names that are no other column's.
macro_rules! operation_columns {
    () => {
        "o.seq AS operation_seq, o.who, o.what, o.target, o.detail, o.at_us AS operation_at_us"
    };
}
pub(crate) use operation_columns;

const SELECT: &str = concat!("SELECT ", operation_columns!(), " FROM operations AS o ");

/// What was done other than by a command: to the ledger, to the gateway, to a
/// lease, or to a phone by an operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// Who did it.
    pub who: String,
    /// What it was.
    pub what: String,
    /// What it was done to.
    pub target: Option<String>,
    /// Whatever else is to be known of it.
    pub detail: Map<String, Value>,
}

/// An operation, and when it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationRow {
    /// Its place among the operations.
    pub seq: i64,
    /// When it was handed to the ledger. To the microsecond.
    pub at: SystemTime,
    /// What was done.
    pub operation: Operation,
}

/// Which operations to read. All filters must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationQuery {
    /// By this one.
    pub who: Option<String>,
    /// Of this kind: `deny-call`.
    pub what: Option<String>,
    /// Done to this.
    pub target: Option<String>,
    /// Recorded at or after this time.
    pub since: Option<SystemTime>,
    /// At most this many; 0 means 100, more than 1000 means 1000.
    pub page_size: u32,
    /// Where the last page ended; of use only with the same filters.
    pub page_token: Option<PageToken>,
}

/// One page of operations.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationPage {
    /// The operations, the newest first.
    pub operations: Vec<OperationRow>,
    /// Where the page ended; `None` if nothing is left.
    pub next: Option<PageToken>,
}

pub(crate) async fn operations(
    pool: &SqlitePool,
    query: OperationQuery,
) -> Result<OperationPage, ReadError> {
    let since = query.since.map(bound);
    let scope = Scope::Operations(pages::digest(&(
        &query.who,
        &query.what,
        &query.target,
        since,
    ))?);
    let (before, floor) = match &query.page_token {
        Some(token) if token.scope == scope => (token.before, token.floor),
        Some(_) => return Err(LedgerError::PageTokenMismatch.into()),
        None => range(pool, since).await?,
    };

    let size = pages::size(query.page_size);
    let mut operations = Vec::new();
    for (low, before) in Slices::down(before, floor) {
        let left = size + 1 - operations.len();
        for row in read_slice(pool, &query, since, (low, before), left).await? {
            operations.push(OperationRow::read(&row)?);
        }
        if operations.len() > size {
            break;
        }
    }
    let more = operations.len() > size;
    operations.truncate(size);
    let next = operations.last().filter(|_| more).map(|last| PageToken {
        before: last.seq,
        floor,
        scope,
    });
    Ok(OperationPage { operations, next })
}

/// The rows that can match, as for commands: since wall clocks step, those since
/// a time lie within a range of rows, and are not one.
async fn range(pool: &SqlitePool, since: Option<i64>) -> Result<(i64, i64), sqlx::Error> {
    let Some(since) = since else {
        return pages::whole(pool, "operations").await;
    };
    let (newest, oldest): (Option<i64>, Option<i64>) =
        sqlx::query_as("SELECT max(seq), min(seq) FROM operations WHERE at_us >= ?1")
            .bind(since)
            .fetch_one(pool)
            .await?;
    Ok((
        newest.map_or(0, |newest| newest + 1),
        oldest.unwrap_or_default(),
    ))
}

async fn read_slice(
    pool: &SqlitePool,
    query: &OperationQuery,
    since: Option<i64>,
    (low, before): (i64, i64),
    limit: usize,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
    sql.push("WHERE o.seq >= ").push_bind(low);
    sql.push(" AND o.seq < ").push_bind(before);
    for (column, value) in [
        ("who", &query.who),
        ("what", &query.what),
        ("target", &query.target),
    ] {
        if let Some(value) = value {
            sql.push(" AND o.").push(column).push(" = ");
            sql.push_bind(value.as_str());
        }
    }
    if let Some(since) = since {
        sql.push(" AND o.at_us >= ").push_bind(since);
    }
    sql.push(" ORDER BY o.seq DESC LIMIT ")
        .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    sql.build().fetch_all(pool).await
}

impl Operation {
    pub(crate) fn decode(row: &SqliteRow) -> Result<Self, Unreadable> {
        Ok(Self {
            who: row.try_get("who")?,
            what: row.try_get("what")?,
            target: row.try_get("target")?,
            detail: serde_json::from_str(&row.try_get::<String, _>("detail")?)?,
        })
    }
}

impl OperationRow {
    fn read(row: &SqliteRow) -> Result<Self, LedgerError> {
        Self::decode(row).map_err(|error| LedgerError::UnreadableRow {
            seq: row.try_get("operation_seq").unwrap_or_default(),
            source: error.into(),
        })
    }

    fn decode(row: &SqliteRow) -> Result<Self, Unreadable> {
        Ok(Self {
            seq: row.try_get("operation_seq")?,
            at: system_time(row.try_get("operation_at_us")?),
            operation: Operation::decode(row)?,
        })
    }
}
