//! Removing what is oldest.
//!
//! A step removes a beginning of the chain, in one transaction:
//!
//! ```text
//! before   ▏1 ▏2 ▏3 ▏4 ▏5 ▏6 ▏                      2: an intent whose fate is 6
//! after                 ▏5 ▏6 ▏7 carried 2 ▏8 pruned up to 4, its hash ▏
//! ```
//!
//! A command goes when every link that binds it or its fates is in that
//! beginning. What must outlive its link is bound anew at the end of the chain:
//! a command that is still open, one whose fate came later than the step
//! reaches, and the newest of all, so that numbers are never given again.
//! Operations and transitions go with their links; what holds for a phone now is
//! no part of the chain and stays. The checkpoint tells the last hash that was
//! removed, and is a link itself.
//!
//! Leases are no part of the chain either. One that has ended goes when it is too
//! old, and where there is too much, with what was recorded until it ended: it
//! does not outlive the operations that tell of it.
//!
//! Before anything is removed or bound anew, the beginning is held against its
//! hashes: retention must not make good what somebody has tampered with.
//!
//! Invariants: an open intent is never removed, nor is an open lease; the chain
//! verifies after each step if it did before; `pruned_through` is not less than
//! the time, by row or by id, of any command that was ever removed.

use std::collections::{BTreeSet, HashSet};
use std::time::SystemTime;

use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection, SqliteTransaction};

use self::beginning::{Beginning, Going};
use self::checkpoint::CheckpointJson;
use crate::batch::rows::{Links, insert, json};
use crate::batch::{CommitError, abandon, finish, undo};
use crate::bind;
use crate::chain::{Marks, add};
use crate::config::RetentionConfig;
use crate::event::EventKind;
use crate::leases::rows::forget;
use crate::row::columns;
use crate::space::Space;
use crate::time::{micros, since_epoch};
use crate::verify::Break;

mod beginning;
mod checkpoint;

/// The most links that one step removes, and the most leases: some tens of
/// milliseconds.
const STEP: u32 = 1024;

const SELECT_CARRIED: &str = concat!(
    "SELECT ",
    columns!("f.reply"),
    " FROM json_each(?1) AS e CROSS JOIN commands AS c ON c.seq = e.value ",
    "LEFT JOIN fates AS f ON f.command_seq = c.seq ORDER BY c.seq, f.revision"
);

/// What one step came to.
#[derive(Debug)]
pub(crate) enum Step {
    Removed(Removed),
    /// There is nothing to remove.
    Nothing,
    /// The beginning is not what was written. It stays, since binding any of it
    /// anew would hide that.
    Broken(Break),
}

/// What one step removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Removed {
    pub(crate) commands: i64,
    pub(crate) leases: i64,
    /// The number of the chain's last link, if the chain was changed.
    pub(crate) head: Option<i64>,
}

/// Removes what one step can of what is too old or too much.
pub(crate) async fn step(
    connection: &mut SqliteConnection,
    config: &RetentionConfig,
    now: SystemTime,
) -> Result<Step, CommitError> {
    let Some(before) = before(connection, config, now).await? else {
        return Ok(Step::Nothing);
    };
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    match remove(&mut transaction, before, since_epoch(now)).await {
        Ok(step @ Step::Removed(_)) => {
            finish(transaction).await?;
            Ok(step)
        }
        Ok(step @ (Step::Nothing | Step::Broken(_))) => {
            undo(transaction).await?;
            Ok(step)
        }
        Err(error) => Err(abandon(transaction, error).await),
    }
}

/// What is from before this time is to go.
#[derive(Debug, Clone, Copy)]
enum Before {
    /// Since it is too old.
    Time(i64),
    /// All of it, the oldest first, since there is too much.
    Any,
}

async fn before(
    connection: &mut SqliteConnection,
    config: &RetentionConfig,
    now: SystemTime,
) -> Result<Option<Before>, sqlx::Error> {
    if let Some(most) = config.max_bytes
        && Space::read(connection).await?.used() > i64::try_from(most).unwrap_or(i64::MAX)
    {
        return Ok(Some(Before::Any));
    }
    let time = |age| since_epoch(now).saturating_sub(micros(age));
    Ok(config.max_age.map(time).map(Before::Time))
}

/// Removes the beginning of the chain, and leases.
async fn remove(
    transaction: &mut SqliteTransaction<'_>,
    before: Before,
    at: i64,
) -> Result<Step, sqlx::Error> {
    let links = match before {
        Before::Time(time) => time,
        Before::Any => i64::MAX,
    };
    let pruned = match prune(transaction, links, at).await? {
        Pruned::Removed(pruned) => Some(pruned),
        Pruned::Nothing => None,
        Pruned::Broken(broken) => return Ok(Step::Broken(broken)),
    };
    let ended = match (before, &pruned) {
        (Before::Time(time), _) => time,
        (Before::Any, Some(pruned)) => pruned.through.saturating_add(1),
        (Before::Any, None) => return Ok(Step::Nothing),
    };
    let leases = forget(transaction, ended, STEP).await?;
    if pruned.is_none() && leases == 0 {
        return Ok(Step::Nothing);
    }
    Ok(Step::Removed(Removed {
        commands: pruned.as_ref().map_or(0, |pruned| pruned.commands),
        leases: i64::try_from(leases).unwrap_or(i64::MAX),
        head: pruned.map(|pruned| pruned.head),
    }))
}

/// What became of the beginning of the chain.
enum Pruned {
    Removed(Shortened),
    Nothing,
    Broken(Break),
}

/// A chain without its beginning.
struct Shortened {
    /// That went with it.
    commands: i64,
    /// The youngest time of a link that went.
    through: i64,
    /// The number of the last link.
    head: i64,
}

async fn prune(
    transaction: &mut SqliteTransaction<'_>,
    before: i64,
    at: i64,
) -> Result<Pruned, sqlx::Error> {
    let oldest: Option<i64> = sqlx::query_scalar("SELECT at_us FROM chain ORDER BY seq LIMIT 1")
        .fetch_optional(&mut **transaction)
        .await?;
    if oldest.is_none_or(|oldest| oldest >= before) {
        return Ok(Pruned::Nothing);
    }
    let marks = Marks::read(transaction).await?;
    let beginning = match Beginning::read(transaction, before).await? {
        Ok(beginning) => beginning,
        Err(broken) => return Ok(Pruned::Broken(broken)),
    };
    let going = Going::among(transaction, &beginning, marks.newest_command()).await?;
    if going.commands.is_empty()
        && beginning.operations.is_empty()
        && beginning.transitions.is_empty()
    {
        return Ok(Pruned::Nothing);
    }

    let mut links = Links::after(marks.head);
    carry(transaction, &beginning, &going, at, &mut links).await?;
    let checkpoint = CheckpointJson::next(transaction, &beginning, &going, at).await?;
    links.add(EventKind::Pruned, checkpoint.seq, at, |event| {
        event.text(&checkpoint.ledger);
        event.integer(checkpoint.chain_seq);
        event.blob(beginning.last.hash.as_bytes());
        event.integer(checkpoint.pruned_through);
        event.integer(checkpoint.commands_pruned);
        event.integer(checkpoint.at);
    });

    for (table, column, numbers) in [
        ("fates", "command_seq", &going.commands),
        ("commands", "seq", &going.commands),
        ("operations", "seq", &beginning.operations),
        ("device_transitions", "seq", &beginning.transitions),
        ("checkpoints", "seq", &beginning.checkpoints),
    ] {
        let statement =
            format!("DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?1))");
        sqlx::query(AssertSqlSafe(statement))
            .bind(json(numbers)?)
            .execute(&mut **transaction)
            .await?;
    }
    sqlx::query("DELETE FROM chain WHERE seq <= ?1")
        .bind(beginning.last.seq)
        .execute(&mut **transaction)
        .await?;
    insert(transaction, &[checkpoint]).await?;
    insert(transaction, &links.rows).await?;
    Ok(Pruned::Removed(Shortened {
        commands: going.count(),
        through: beginning.through,
        head: links.head.seq,
    }))
}

/// Binds anew what the beginning bound and what does not go.
async fn carry(
    transaction: &mut SqliteTransaction<'_>,
    beginning: &Beginning,
    going: &Going,
    at: i64,
    links: &mut Links,
) -> Result<(), sqlx::Error> {
    let gone: HashSet<i64> = going.commands.iter().copied().collect();
    let kept: BTreeSet<i64> = beginning
        .commands
        .iter()
        .chain(beginning.fates.keys())
        .copied()
        .filter(|command| !gone.contains(command))
        .collect();
    let mut last = None;
    for row in sqlx::query(SELECT_CARRIED)
        .bind(json(&kept)?)
        .fetch_all(&mut **transaction)
        .await?
    {
        let command: i64 = row.try_get("seq")?;
        if last.replace(command) != Some(command) && beginning.commands.contains(&command) {
            add(links, EventKind::Carried, command, at, |event| {
                bind::command(&row, event)
            })?;
        }
        if let Some(fate) = row.try_get::<Option<i64>, _>("fate_seq")?
            && beginning.holds_fate(command, fate)
        {
            add(links, EventKind::CarriedFate, fate, at, |event| {
                bind::fate(&row, event)
            })?;
        }
    }
    Ok(())
}
