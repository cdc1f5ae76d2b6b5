//! Leases, as far as the ledger knows them: whose, in which state, with which
//! epoch, and whatever else there is to them as a text that means nothing here.
//!
//! Like a phone's settings they change in place, are no part of the chain, and
//! are written together with the operations that say what was done. Who is
//! granted what is for others to decide. What is seen to is what no mistake of
//! theirs may break: an owner's request makes one lease, a lease that has ended
//! is not opened again, and of two grants the later has the higher epoch.
//!
//! Invariant: `last_epoch` is not less than any epoch that was ever given, also
//! of leases that were removed since, and the clock never goes back.

use std::time::{Duration, SystemTime};

use fleetgate_runner::Udid;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqlitePool};

use crate::entry::NewOperation;
use crate::error::LedgerError;
use crate::pages::{self, Slices, push_list};
use crate::query::ReadError;
use crate::row::Unreadable;
use crate::time::{duration, system_time};
use crate::token::{PageToken, Scope};

pub(crate) mod rows;

const SELECT: &str = "SELECT l.seq, l.lease_id, l.owner, l.request_id, l.state, l.is_open, l.epoch, l.devices, \
                      l.created_us, l.ended_us, l.body FROM leases AS l ";

/// The lease that a command was carried out under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseStamp {
    /// Its id.
    pub id: String,
    /// The epoch of its grant. Less than 2^63.
    pub epoch: u64,
}

/// A lease. Times are kept to the microsecond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseRow {
    /// Its id.
    pub id: String,
    /// Whose it is. Never changes.
    pub owner: String,
    /// The request that made it, by its owner's name for it: no two leases of one
    /// owner have one. Never changes; `None` in a later write of a lease leaves
    /// the one that it has.
    pub request_id: Option<String>,
    /// Its state, by a name that means nothing here: `ACTIVE`.
    pub state: String,
    /// Whether it has still something before it. Once not, never again.
    pub is_open: bool,
    /// The epoch of its grant, from 1, which no other lease ever had. Once there
    /// is one it stays. Less than 2^63.
    pub epoch: Option<u64>,
    /// The phones that it was granted.
    pub devices: Vec<Udid>,
    /// When it was created. Never changes: what a later write says is not looked
    /// at.
    pub created: SystemTime,
    /// When it ended for its owner. Must be there unless it is open.
    pub ended: Option<SystemTime>,
    /// Whatever else there is to it: a JSON object, which means nothing here.
    pub body: String,
}

/// What is to be written of leases in one commit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewLeaseWrite {
    /// The leases that changed, as they are now.
    pub rows: Vec<LeaseRow>,
    /// What was done to them, in order.
    pub operations: Vec<NewOperation>,
    /// How far the clock of leases has run. Less than what is on record changes
    /// nothing. Kept in microseconds.
    pub clock: Duration,
}

/// Which leases to read. Filters of different fields must all hold; of the
/// values of one field, any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeaseQuery {
    /// In one of these states; empty means all.
    pub states: Vec<String>,
    /// Of this owner.
    pub owner: Option<String>,
    /// Of those that were granted this phone.
    pub device: Option<Udid>,
    /// At most this many; 0 means 100, more than 1000 means 1000.
    pub page_size: u32,
    /// Where the last page ended; of use only with the same filters.
    pub page_token: Option<PageToken>,
}

/// One page of leases.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasePage {
    /// The leases, the newest first.
    pub leases: Vec<LeaseRow>,
    /// Where the page ended; `None` if nothing is left.
    pub next: Option<PageToken>,
}

/// Where the time and the numbers of leases go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseClock {
    /// How far the clock of leases has run. To the microsecond.
    pub clock: Duration,
    /// The last epoch that was given; 0 if none was.
    pub last_epoch: u64,
}

/// Those that have still something before them, the oldest first.
pub(crate) async fn open(pool: &SqlitePool) -> Result<Vec<LeaseRow>, ReadError> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
    sql.push("WHERE l.is_open = 1 ORDER BY l.seq");
    let mut leases = Vec::new();
    for row in sql.build().fetch_all(pool).await? {
        leases.push(LeaseRow::read(&row)?);
    }
    Ok(leases)
}

/// The lease of an id.
pub(crate) async fn lease(pool: &SqlitePool, id: &str) -> Result<Option<LeaseRow>, ReadError> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
    sql.push("WHERE l.lease_id = ").push_bind(id);
    one(pool, sql).await
}

/// The lease that an owner's request made.
pub(crate) async fn by_request(
    pool: &SqlitePool,
    owner: &str,
    request_id: &str,
) -> Result<Option<LeaseRow>, ReadError> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
    sql.push("WHERE l.owner = ").push_bind(owner);
    sql.push(" AND l.request_id = ").push_bind(request_id);
    one(pool, sql).await
}

async fn one(
    pool: &SqlitePool,
    mut sql: QueryBuilder<Sqlite>,
) -> Result<Option<LeaseRow>, ReadError> {
    let row = sql.build().fetch_optional(pool).await?;
    Ok(row.as_ref().map(LeaseRow::read).transpose()?)
}

/// One page of leases, found in slices.
pub(crate) async fn leases(
    pool: &SqlitePool,
    mut query: LeaseQuery,
) -> Result<LeasePage, ReadError> {
    query.states.sort_unstable();
    query.states.dedup();
    let scope = Scope::Leases(pages::digest(&(
        &query.states,
        &query.owner,
        &query.device,
    ))?);
    let (before, floor) = match &query.page_token {
        Some(token) if token.scope == scope => (token.before, token.floor),
        Some(_) => return Err(LedgerError::PageTokenMismatch.into()),
        None => pages::whole(pool, "leases").await?,
    };

    let size = pages::size(query.page_size);
    let mut rows = Vec::new();
    for (low, before) in Slices::down(before, floor) {
        rows.extend(read_slice(pool, &query, low, before, size + 1 - rows.len()).await?);
        if rows.len() > size {
            break;
        }
    }
    let more = rows.len() > size;
    rows.truncate(size);
    let next = match rows.last().filter(|_| more) {
        Some(last) => Some(PageToken {
            before: last.try_get("seq")?,
            floor,
            scope,
        }),
        None => None,
    };
    let leases = rows.iter().map(LeaseRow::read).collect::<Result<_, _>>()?;
    Ok(LeasePage { leases, next })
}

async fn read_slice(
    pool: &SqlitePool,
    query: &LeaseQuery,
    low: i64,
    before: i64,
    limit: usize,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
    sql.push("WHERE l.seq >= ").push_bind(low);
    sql.push(" AND l.seq < ").push_bind(before);
    if !query.states.is_empty() {
        sql.push(" AND l.state IN ");
        push_list(&mut sql, query.states.iter().cloned());
    }
    if let Some(owner) = &query.owner {
        sql.push(" AND l.owner = ").push_bind(owner.as_str());
    }
    if let Some(device) = &query.device {
        sql.push(" AND l.seq IN (SELECT d.lease FROM lease_devices AS d WHERE d.device = ");
        sql.push_bind(device.as_str());
        sql.push(" AND d.lease >= ").push_bind(low);
        sql.push(" AND d.lease < ").push_bind(before);
        sql.push(")");
    }
    sql.push(" ORDER BY l.seq DESC LIMIT ")
        .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    sql.build().fetch_all(pool).await
}

/// Where the time and the numbers of leases go on.
pub(crate) async fn clock(pool: &SqlitePool) -> Result<LeaseClock, ReadError> {
    let (clock, last_epoch): (i64, i64) =
        sqlx::query_as("SELECT clock_us, last_epoch FROM lease_clock")
            .fetch_one(pool)
            .await?;
    Ok(LeaseClock {
        clock: duration(clock),
        last_epoch: last_epoch.unsigned_abs(),
    })
}

impl LeaseStamp {
    /// Of a command's row.
    pub(crate) fn decode(row: &SqliteRow) -> Result<Option<Self>, Unreadable> {
        Ok(match row.try_get::<Option<String>, _>("lease_id")? {
            Some(id) => Some(Self {
                id,
                epoch: u64::try_from(row.try_get::<i64, _>("lease_epoch")?)?,
            }),
            None => None,
        })
    }
}

impl LeaseRow {
    fn read(row: &SqliteRow) -> Result<Self, LedgerError> {
        Self::decode(row).map_err(|error| LedgerError::UnreadableLease {
            lease: row.try_get("lease_id").unwrap_or_default(),
            source: error.into(),
        })
    }

    fn decode(row: &SqliteRow) -> Result<Self, Unreadable> {
        let epoch: Option<i64> = row.try_get("epoch")?;
        let ended: Option<i64> = row.try_get("ended_us")?;
        Ok(Self {
            id: row.try_get("lease_id")?,
            owner: row.try_get("owner")?,
            request_id: row.try_get("request_id")?,
            state: row.try_get("state")?,
            is_open: row.try_get("is_open")?,
            epoch: epoch.map(u64::try_from).transpose()?,
            devices: serde_json::from_str(&row.try_get::<String, _>("devices")?)?,
            created: system_time(row.try_get("created_us")?),
            ended: ended.map(system_time),
            body: row.try_get("body")?,
        })
    }
}
