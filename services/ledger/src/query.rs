//! Reading commands back, the newest first.

use std::time::SystemTime;

use fleetgate_runner::{CommandId, CommandKind, Fate, Udid};
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use crate::error::LedgerError;
use crate::pages::{self, Slices, push_list};
use crate::row::{CommandRow, SELECT, SELECT_WHOLE};
use crate::token::{Filter, PageToken, Scope};

/// Which commands to read. Filters of different fields must all hold; of the
/// values of one field, any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandQuery {
    /// Of this phone.
    pub device: Option<Udid>,
    /// Of one of these kinds; empty means all.
    pub kinds: Vec<CommandKind>,
    /// With one of these fates as the newest, `None` standing for a command
    /// that has none yet; empty means all.
    pub fates: Vec<Option<Fate>>,
    /// Recorded at or after this time.
    pub from: Option<SystemTime>,
    /// Recorded before this time.
    pub to: Option<SystemTime>,
    /// Asked for by this principal.
    pub principal: Option<String>,
    /// Carried out under the lease of this id.
    pub lease: Option<String>,
    /// At most this many; 0 means 100, more than 1000 means 1000.
    pub page_size: u32,
    /// Where the last page ended; of use only with the same filters.
    pub page_token: Option<PageToken>,
}

/// One page of commands.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandPage {
    /// The commands, the newest first.
    pub commands: Vec<CommandRow>,
    /// Where the page ended; `None` if nothing is left.
    pub next: Option<PageToken>,
}

/// Why a read failed.
pub(crate) enum ReadError {
    Database(sqlx::Error),
    Refused(LedgerError),
}

impl From<sqlx::Error> for ReadError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl From<LedgerError> for ReadError {
    fn from(error: LedgerError) -> Self {
        Self::Refused(error)
    }
}

pub(crate) async fn command(
    pool: &SqlitePool,
    id: &CommandId,
) -> Result<Option<CommandRow>, ReadError> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT_WHOLE);
    sql.push("WHERE c.command_id = ").push_bind(id.as_str());
    let row = sql.build().fetch_optional(pool).await?;
    Ok(row.as_ref().map(CommandRow::read).transpose()?)
}

pub(crate) async fn commands(
    pool: &SqlitePool,
    query: CommandQuery,
) -> Result<CommandPage, ReadError> {
    let filter = Filter::of(&query);
    let scope = Scope::Commands(pages::digest(&filter)?);
    let size = pages::size(query.page_size);
    let (before, floor) = match query.page_token {
        Some(token) if token.scope == scope => (token.before, token.floor),
        Some(_) => return Err(LedgerError::PageTokenMismatch.into()),
        None => range(pool, &filter).await?,
    };

    // One more than the page holds tells whether there is another page.
    let mut commands = Vec::new();
    for (low, before) in Slices::down(before, floor) {
        for row in read_slice(pool, &filter, low, before, size + 1 - commands.len()).await? {
            commands.push(CommandRow::read(&row)?);
        }
        if commands.len() > size {
            break;
        }
    }

    let more = commands.len() > size;
    commands.truncate(size);
    let next = commands.last().filter(|_| more).map(|last| PageToken {
        before: last.seq,
        floor,
        scope,
    });
    Ok(CommandPage { commands, next })
}

/// The rows that can match: up to but not including the first, not before the
/// second. Since wall clocks step, a range of times is not one of rows, but
/// lies within one, which its index tells without a look at the table.
async fn range(pool: &SqlitePool, filter: &Filter) -> Result<(i64, i64), sqlx::Error> {
    if filter.from_us.is_none() && filter.to_us.is_none() {
        let newest: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM commands")
            .fetch_one(pool)
            .await?;
        return Ok((newest.map_or(0, |newest| newest + 1), 0));
    }
    let mut sql =
        QueryBuilder::<Sqlite>::new("SELECT max(c.seq), min(c.seq) FROM commands AS c WHERE true");
    push_times(&mut sql, filter);
    let (newest, oldest): (Option<i64>, Option<i64>) = sql.build_query_as().fetch_one(pool).await?;
    Ok((
        newest.map_or(0, |newest| newest + 1),
        oldest.unwrap_or_default(),
    ))
}

async fn read_slice(
    pool: &SqlitePool,
    filter: &Filter,
    low: i64,
    before: i64,
    limit: usize,
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
    sql.push("WHERE c.seq >= ")
        .push_bind(low)
        .push(" AND c.seq < ")
        .push_bind(before);
    if let Some(device) = &filter.device {
        sql.push(" AND c.device = ").push_bind(device.as_str());
    }
    if !filter.kinds.is_empty() {
        sql.push(" AND c.kind IN ");
        push_list(
            &mut sql,
            filter.kinds.iter().map(|kind| kind.as_str().to_owned()),
        );
    }
    // Without an index: a slice is soon looked through, and every command would
    // pay for two more.
    for (column, value) in [
        ("principal", &filter.principal),
        ("lease_id", &filter.lease),
    ] {
        if let Some(value) = value {
            sql.push(" AND c.").push(column).push(" = ");
            sql.push_bind(value.as_str());
        }
    }
    push_fates(&mut sql, filter, low, before)?;
    push_times(&mut sql, filter);
    sql.push(" ORDER BY c.seq DESC LIMIT ")
        .push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    sql.build().fetch_all(pool).await
}

fn push_fates(
    sql: &mut QueryBuilder<Sqlite>,
    filter: &Filter,
    low: i64,
    before: i64,
) -> Result<(), sqlx::Error> {
    if filter.fates.is_empty() {
        return Ok(());
    }
    let names = filter
        .fates
        .iter()
        .flatten()
        .map(|fate| match serde_json::to_value(fate) {
            Ok(serde_json::Value::String(name)) => Ok(name),
            Ok(_) => Err(sqlx::Error::Encode("a fate has no name".into())),
            Err(error) => Err(sqlx::Error::Encode(error.into())),
        })
        .collect::<Result<Vec<_>, _>>()?;
    if filter.fates.contains(&None) {
        sql.push(" AND (f.seq IS NULL OR f.fate IN ");
        push_list(sql, names.into_iter());
        sql.push(")");
        return Ok(());
    }
    // The index finds those few that ever had such a fate; the newest decides.
    sql.push(" AND c.seq IN (SELECT h.command_seq FROM fates AS h WHERE h.fate IN ");
    push_list(sql, names.iter().cloned());
    sql.push(" AND h.command_seq >= ").push_bind(low);
    sql.push(" AND h.command_seq < ").push_bind(before);
    sql.push(") AND f.fate IN ");
    push_list(sql, names.into_iter());
    Ok(())
}

fn push_times(sql: &mut QueryBuilder<Sqlite>, filter: &Filter) {
    if let Some(from) = filter.from_us {
        sql.push(" AND c.created_us >= ").push_bind(from);
    }
    if let Some(to) = filter.to_us {
        sql.push(" AND c.created_us < ").push_bind(to);
    }
}
