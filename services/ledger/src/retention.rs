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
//! reaches, and the newest of all, so that numbers are never given again. The
//! checkpoint tells the last hash that was removed, and is a link itself.
//!
//! Invariants: an open intent is never removed; the chain verifies after each
//! step; `pruned_through` is not less than the time, by row or by id, of any
//! command that was ever removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::SystemTime;

use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection, Row, SqliteConnection, SqliteTransaction};

use crate::batch::rows::{Links, TableRow, insert, json};
use crate::batch::{CommitError, abandon, finish, undo};
use crate::bind;
use crate::chain::{Marks, add, hash_of};
use crate::config::RetentionConfig;
use crate::event::EventKind;
use crate::row::columns;
use crate::space::Space;
use crate::time::{micros, since_epoch};

/// The most links that one step removes: some tens of milliseconds.
const STEP: i64 = 2048;

const SELECT_BEGINNING: &str = "
SELECT h.seq, h.kind, h.reference, h.hash, f.command_seq
FROM chain AS h
LEFT JOIN fates AS f ON f.seq = h.reference
     AND h.kind IN ('recorded', 'concluded', 'repeated', 'resolved', 'carried_fate')
WHERE h.seq < coalesce((SELECT min(y.seq) FROM (SELECT seq, at_us FROM chain ORDER BY seq LIMIT ?2) AS y
                        WHERE y.at_us >= ?1), 9223372036854775807)
ORDER BY h.seq
LIMIT ?2";

const SELECT_BOUND: &str = "
SELECT c.seq, c.command_id, c.created_us, count(f.seq) AS fates
FROM json_each(?1) AS e
CROSS JOIN commands AS c ON c.seq = e.value
LEFT JOIN fates AS f ON f.command_seq = c.seq
GROUP BY c.seq";

const SELECT_CARRIED: &str = concat!(
    "SELECT ",
    columns!("f.reply"),
    " FROM json_each(?1) AS e CROSS JOIN commands AS c ON c.seq = e.value ",
    "LEFT JOIN fates AS f ON f.command_seq = c.seq ORDER BY c.seq, f.revision"
);

const INSERT_CHECKPOINT: &str = "
INSERT INTO checkpoints (seq, ledger_id, chain_seq, chain_hash, pruned_through_us, commands_pruned, at_us)
SELECT e.value ->> 'seq', e.value ->> 'ledger', e.value ->> 'chainSeq', unhex(e.value ->> 'chainHash'),
       e.value ->> 'prunedThrough', e.value ->> 'commandsPruned', e.value ->> 'at'
FROM json_each(?1) AS e";

/// What one step removed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pruned {
    pub(crate) commands: i64,
    /// The number of the chain's last link.
    pub(crate) head: i64,
}

/// Removes what one step can of what is too old or too much; `None` if there is
/// nothing.
pub(crate) async fn step(
    connection: &mut SqliteConnection,
    config: &RetentionConfig,
    now: SystemTime,
) -> Result<Option<Pruned>, CommitError> {
    let Some(before) = before(connection, config, now).await? else {
        return Ok(None);
    };
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    match prune(&mut transaction, before, since_epoch(now)).await {
        Ok(Some(pruned)) => {
            finish(transaction).await?;
            Ok(Some(pruned))
        }
        Ok(None) => {
            undo(transaction).await?;
            Ok(None)
        }
        Err(error) => Err(abandon(transaction, error).await),
    }
}

/// Links from before this time are to go: all of them if there is too much.
async fn before(
    connection: &mut SqliteConnection,
    config: &RetentionConfig,
    now: SystemTime,
) -> Result<Option<i64>, sqlx::Error> {
    if let Some(most) = config.max_bytes
        && Space::read(connection).await?.used() > i64::try_from(most).unwrap_or(i64::MAX)
    {
        return Ok(Some(i64::MAX));
    }
    Ok(config
        .max_age
        .map(|age| since_epoch(now).saturating_sub(micros(age))))
}

async fn prune(
    transaction: &mut SqliteTransaction<'_>,
    before: i64,
    at: i64,
) -> Result<Option<Pruned>, sqlx::Error> {
    let marks = Marks::read(transaction).await?;
    let rows = sqlx::query(SELECT_BEGINNING)
        .bind(before)
        .bind(STEP)
        .fetch_all(&mut **transaction)
        .await?;
    let beginning = Beginning::of(&rows)?;
    let going = Going::among(transaction, &beginning, marks.newest_command()).await?;
    if going.commands.is_empty() && beginning.operations.is_empty() {
        return Ok(None);
    }

    let mut links = Links::after(marks.head);
    carry(transaction, &beginning, &going, at, &mut links).await?;
    let checkpoint = CheckpointJson::next(transaction, &beginning, &going, at).await?;
    add(&mut links, EventKind::Pruned, checkpoint.seq, at, |event| {
        event.text(&checkpoint.ledger);
        event.integer(checkpoint.chain_seq);
        event.blob(hash_of(&beginning.hash)?.as_bytes());
        event.integer(checkpoint.pruned_through);
        event.integer(checkpoint.commands_pruned);
        event.integer(checkpoint.at);
        Ok(())
    })?;

    for (table, column, numbers) in [
        ("fates", "command_seq", &going.commands),
        ("commands", "seq", &going.commands),
        ("operations", "seq", &beginning.operations),
        ("checkpoints", "seq", &beginning.checkpoints),
    ] {
        let statement = format!(
            "DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?1))"
        );
        sqlx::query(AssertSqlSafe(statement))
            .bind(json(numbers)?)
            .execute(&mut **transaction)
            .await?;
    }
    sqlx::query("DELETE FROM chain WHERE seq <= ?1")
        .bind(beginning.last)
        .execute(&mut **transaction)
        .await?;
    insert(transaction, &[checkpoint]).await?;
    insert(transaction, &links.rows).await?;
    Ok(Some(Pruned {
        commands: going.count(),
        head: links.head.seq,
    }))
}

/// The links that are to be removed, by what they bind.
#[derive(Debug, Default)]
struct Beginning {
    last: i64,
    hash: Vec<u8>,
    commands: BTreeSet<i64>,
    /// By the command that each is a fate of.
    fates: HashMap<i64, HashSet<i64>>,
    operations: Vec<i64>,
    checkpoints: Vec<i64>,
}

impl Beginning {
    fn of(rows: &[SqliteRow]) -> Result<Self, sqlx::Error> {
        let mut beginning = Self::default();
        for row in rows {
            beginning.last = row.try_get("seq")?;
            let word: &str = row.try_get("kind")?;
            let reference: i64 = row.try_get("reference")?;
            let command: Option<i64> = row.try_get("command_seq")?;
            match EventKind::from_word(word) {
                Some(EventKind::Opened) => {}
                Some(EventKind::Intended | EventKind::Carried) => {
                    beginning.commands.insert(reference);
                }
                Some(EventKind::Recorded) => {
                    beginning.commands.extend(command);
                    beginning.fate(command, reference);
                }
                Some(
                    EventKind::Concluded
                    | EventKind::Repeated
                    | EventKind::Resolved
                    | EventKind::CarriedFate,
                ) => beginning.fate(command, reference),
                Some(EventKind::Operation) => beginning.operations.push(reference),
                Some(EventKind::Pruned) => beginning.checkpoints.push(reference),
                None => {
                    let unknown = format!("link {} is of an unknown kind", beginning.last);
                    return Err(sqlx::Error::Decode(unknown.into()));
                }
            }
        }
        if let Some(last) = rows.last() {
            beginning.hash = last.try_get("hash")?;
        }
        Ok(beginning)
    }

    fn fate(&mut self, command: Option<i64>, fate: i64) {
        if let Some(command) = command {
            self.fates.entry(command).or_default().insert(fate);
        }
    }

    fn holds_fate(&self, command: i64, fate: i64) -> bool {
        self.fates
            .get(&command)
            .is_some_and(|fates| fates.contains(&fate))
    }
}

/// The commands that go with the beginning, and their fates.
#[derive(Debug, Default)]
struct Going {
    commands: Vec<i64>,
    /// The youngest of their times.
    through: i64,
}

impl Going {
    async fn among(
        transaction: &mut SqliteTransaction<'_>,
        beginning: &Beginning,
        newest: i64,
    ) -> Result<Self, sqlx::Error> {
        let rows: Vec<(i64, String, i64, i64)> = sqlx::query_as(SELECT_BOUND)
            .bind(json(&beginning.commands)?)
            .fetch_all(&mut **transaction)
            .await?;
        let mut going = Self::default();
        for (command, id, created, fates) in rows {
            let bound = beginning.fates.get(&command).map_or(0, HashSet::len);
            if bound == 0 || i64::try_from(bound) != Ok(fates) || command == newest {
                continue;
            }
            going.commands.push(command);
            going.through = going.through.max(created).max(minted(&id));
        }
        Ok(going)
    }

    fn count(&self) -> i64 {
        i64::try_from(self.commands.len()).unwrap_or(i64::MAX)
    }
}

/// The time that an id tells, if it tells one.
fn minted(id: &str) -> i64 {
    id.parse()
        .ok()
        .and_then(|id: fleetgate_runner::CommandId| id.minted())
        .map_or(0, since_epoch)
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

/// A row of `checkpoints`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckpointJson {
    seq: i64,
    ledger: String,
    chain_seq: i64,
    chain_hash: String,
    pruned_through: i64,
    commands_pruned: i64,
    at: i64,
}

impl TableRow for CheckpointJson {
    const INSERT: &'static str = INSERT_CHECKPOINT;
}

impl CheckpointJson {
    async fn next(
        transaction: &mut SqliteTransaction<'_>,
        beginning: &Beginning,
        going: &Going,
        at: i64,
    ) -> Result<Self, sqlx::Error> {
        let ledger = sqlx::query_scalar("SELECT ledger_id FROM identity")
            .fetch_one(&mut **transaction)
            .await?;
        let newest: Option<(i64, i64, i64)> = sqlx::query_as(
            "SELECT seq, pruned_through_us, commands_pruned FROM checkpoints ORDER BY seq DESC LIMIT 1",
        )
        .fetch_optional(&mut **transaction)
        .await?;
        let (seq, through, commands) = newest.unwrap_or_default();
        Ok(Self {
            seq: seq + 1,
            ledger,
            chain_seq: beginning.last,
            chain_hash: hash_of(&beginning.hash)?.to_string(),
            pruned_through: through.max(going.through),
            commands_pruned: commands.saturating_add(going.count()),
            at,
        })
    }
}
