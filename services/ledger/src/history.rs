//! What was said of one command over time, and what is still open.

use std::time::SystemTime;

use fleetgate_runner::{CommandId, Udid};
use sqlx::{QueryBuilder, Sqlite, SqlitePool};

use crate::query::ReadError;
use crate::row::{CommandRow, Conclusion, SELECT, SELECT_HISTORY};
use crate::survey::{self, is_unsettled};
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
/// oldest first: first the listed ones, then those that no survey has reached.
pub(crate) async fn unsettled(
    pool: &SqlitePool,
    device: Option<&Udid>,
    since: Option<SystemTime>,
) -> Result<Vec<CommandRow>, ReadError> {
    let since = since.map(bound);
    let select = |from: &str| {
        let mut sql = QueryBuilder::<Sqlite>::new(SELECT);
        sql.push("WHERE ").push(is_unsettled!());
        if let Some(since) = since {
            sql.push(" AND c.created_us >= ").push_bind(since);
        }
        if let Some(device) = device {
            sql.push(" AND c.device = ").push_bind(device.as_str());
        }
        sql.push(" AND ").push(from);
        sql
    };

    // One snapshot, since what a survey has passed is listed from then on.
    let mut snapshot = pool.begin().await?;
    let through = survey::through(&mut snapshot).await?;
    let newest: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM commands")
        .fetch_one(&mut *snapshot)
        .await?;
    let mut sql = select("c.seq IN (SELECT command_seq FROM unsettled WHERE command_seq <= ");
    sql.push_bind(through).push(") ORDER BY c.seq");
    let mut rows = sql.build().fetch_all(&mut *snapshot).await?;
    snapshot.rollback().await?;

    let (mut after, newest) = (through, newest.unwrap_or_default());
    while after < newest {
        let to = newest.min(after.saturating_add(SLICE));
        let mut sql = select("c.seq > ");
        sql.push_bind(after)
            .push(" AND c.seq <= ")
            .push_bind(to)
            .push(" ORDER BY c.seq");
        rows.append(&mut sql.build().fetch_all(pool).await?);
        after = to;
    }
    Ok(rows
        .iter()
        .map(CommandRow::read)
        .collect::<Result<_, _>>()?)
}

/// The youngest of what was ever removed.
pub(crate) async fn pruned_through(pool: &SqlitePool) -> Result<Option<SystemTime>, ReadError> {
    let pruned: Option<i64> =
        sqlx::query_scalar("SELECT pruned_through_us FROM checkpoints ORDER BY seq DESC LIMIT 1")
            .fetch_optional(pool)
            .await?;
    Ok(pruned.map(system_time))
}
