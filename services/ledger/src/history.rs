//! What was said of one command over time, and what is still open.

use std::time::SystemTime;

use fleetgate_runner::{CommandId, Fate, Udid};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use crate::query::ReadError;
use crate::row::{CommandRow, Conclusion, SELECT, SELECT_HISTORY};
use crate::time::{bound, system_time};

/// One read looks at this many commands at most.
const SLICE: i64 = 65_536;

/// Every word on a command, the first one first.
pub(crate) async fn history(
    pool: &SqlitePool,
    id: &CommandId,
) -> Result<Vec<Conclusion>, ReadError> {
    let mut sql = QueryBuilder::<Sqlite>::new(SELECT_HISTORY);
    sql.push("WHERE c.command_id = ")
        .push_bind(id.as_str())
        .push(" ORDER BY f.revision");
    let mut history = Vec::new();
    for row in sql.build().fetch_all(pool).await? {
        history.extend(CommandRow::read(&row)?.conclusion);
    }
    Ok(history)
}

/// Mutations without a fate, and those whose UNKNOWN may still be settled, the
/// oldest first.
pub(crate) async fn unsettled(
    pool: &SqlitePool,
    device: Option<&Udid>,
    since: Option<SystemTime>,
) -> Result<Vec<CommandRow>, ReadError> {
    let since = since.map(bound);
    let mut range = QueryBuilder::<Sqlite>::new("SELECT min(seq), max(seq) FROM commands");
    if let Some(since) = since {
        range.push(" WHERE created_us >= ").push_bind(since);
    }
    let (oldest, newest): (Option<i64>, Option<i64>) =
        range.build_query_as().fetch_one(pool).await?;
    let (Some(mut low), Some(newest)) = (oldest, newest) else {
        return Ok(Vec::new());
    };

    let mut unsettled = Vec::new();
    while low <= newest {
        let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
        sql.push("WHERE c.seq >= ")
            .push_bind(low)
            .push(" AND c.seq < ")
            .push_bind(low.saturating_add(SLICE))
            .push(" AND c.mutation = 1 AND (f.seq IS NULL OR (f.final = 0 AND f.fate = ")
            .push_bind(Fate::Unknown.as_str())
            .push("))");
        if let Some(since) = since {
            sql.push(" AND c.created_us >= ").push_bind(since);
        }
        if let Some(device) = device {
            sql.push(" AND c.device = ").push_bind(device.as_str());
        }
        sql.push(" ORDER BY c.seq");
        for row in sql.build().fetch_all(pool).await? {
            unsettled.push(CommandRow::read(&row)?);
        }
        low = low.saturating_add(SLICE);
    }
    Ok(unsettled)
}

/// The youngest of what was ever removed.
pub(crate) async fn pruned_through(pool: &SqlitePool) -> Result<Option<SystemTime>, ReadError> {
    let pruned: Option<i64> =
        sqlx::query_scalar("SELECT pruned_through_us FROM checkpoints ORDER BY seq DESC LIMIT 1")
            .fetch_optional(pool)
            .await?;
    Ok(pruned.map(system_time))
}
