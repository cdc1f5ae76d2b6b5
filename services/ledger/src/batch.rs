//! One batch of entries as one transaction.
//!
//! A batch is written on the assumption that all of it can be: one statement
//! for its commands and one for its fates, each over a JSON array. If either
//! writes fewer rows than it was given, an entry names an id that it must not;
//! the transaction is undone, the entries are sifted against what the database
//! knows of their ids, and those that pass are written. So the common case pays
//! for no look-up, and one bad entry costs the others nothing but time.
//!
//! Invariant: what [`commit`] reports as written is committed, and nothing else
//! of the batch is.

use std::collections::HashMap;
use std::collections::hash_map;

use fleetgate_runner::{CommandId, CommandKind, Effect, Fate};
use serde::Serialize;
use serde_json::{Map, Value};
use sqlx::{Connection, SqliteConnection, SqliteTransaction};

use crate::entry::{Change, Entry};
use crate::error::LedgerError;
use crate::time::{micros, since_epoch};

/// The arrival of an entry is its place in the audit, hence the order.
const INSERT_COMMANDS: &str = "
INSERT INTO commands (command_id, device, kind, mutation, app_bundle_id, parameters, caller, created_us)
SELECT e.value ->> 'id', e.value ->> 'device', e.value ->> 'kind', e.value ->> 'mutation', e.value ->> 'app',
       e.value -> 'parameters', e.value ->> 'caller', e.value ->> 'at'
FROM json_each(?1) AS e
WHERE true
ORDER BY e.key
ON CONFLICT (command_id) DO NOTHING";

/// The cross join makes the array the outer loop. Revision 0 is the first word
/// on a command, so a command that has one conflicts.
const INSERT_FATES: &str = "
INSERT INTO fates (command_seq, revision, fate, effect, reason, message, warning, reactivated, attempts,
                   recovered, queue_wait_us, device_time_us, concluded_us)
SELECT c.seq, 0, e.value ->> 'fate', e.value ->> 'effect', e.value ->> 'reason', e.value ->> 'message',
       e.value ->> 'warning', e.value ->> 'reactivated', e.value ->> 'attempts', e.value ->> 'recovered',
       e.value ->> 'queueWait', e.value ->> 'deviceTime', e.value ->> 'at'
FROM json_each(?1) AS e
CROSS JOIN commands AS c ON c.command_id = e.value ->> 'id'
WHERE true
ORDER BY e.key
ON CONFLICT (command_seq, revision) DO NOTHING";

const SELECT_KNOWN: &str = "
SELECT c.command_id, EXISTS (SELECT 1 FROM fates AS f WHERE f.command_seq = c.seq)
FROM commands AS c
WHERE c.command_id IN (SELECT value FROM json_each(?1))";

/// Nothing of a batch was written.
#[derive(Debug)]
pub(crate) struct CommitError {
    pub(crate) error: sqlx::Error,
    /// The connection's state is not known any more: it must be replaced.
    pub(crate) spoiled: bool,
}

impl From<sqlx::Error> for CommitError {
    fn from(error: sqlx::Error) -> Self {
        Self {
            error,
            spoiled: false,
        }
    }
}

/// Writes what can be written of `entries` and says, in their order, what
/// became of each.
pub(crate) async fn commit(
    connection: &mut SqliteConnection,
    entries: &[&Entry],
) -> Result<Vec<Result<(), LedgerError>>, CommitError> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    match insert(&mut transaction, entries).await {
        Ok(true) => {
            finish(transaction).await?;
            return Ok(entries.iter().map(|_| Ok(())).collect());
        }
        Ok(false) => undo(transaction).await?,
        Err(error) => return Err(abandon(transaction, error).await),
    }

    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let verdicts = match sift(&mut transaction, entries).await {
        Ok(verdicts) => verdicts,
        Err(error) => return Err(abandon(transaction, error).await),
    };
    let passed: Vec<&Entry> = entries
        .iter()
        .zip(&verdicts)
        .filter_map(|(entry, verdict)| verdict.is_ok().then_some(*entry))
        .collect();
    match insert(&mut transaction, &passed).await {
        Ok(true) => {
            finish(transaction).await?;
            Ok(verdicts)
        }
        Ok(false) => {
            let error =
                sqlx::Error::Protocol("a batch that was sifted was not written in full".to_owned());
            Err(abandon(transaction, error).await)
        }
        Err(error) => Err(abandon(transaction, error).await),
    }
}

/// After a commit that failed, SQLite may or may not have ended the
/// transaction; a new connection knows where it stands.
async fn finish(transaction: SqliteTransaction<'_>) -> Result<(), CommitError> {
    transaction.commit().await.map_err(|error| CommitError {
        error,
        spoiled: true,
    })
}

async fn undo(transaction: SqliteTransaction<'_>) -> Result<(), CommitError> {
    transaction.rollback().await.map_err(|error| CommitError {
        error,
        spoiled: true,
    })
}

/// Undoes a transaction that failed with `error`. SQLite may have undone it by
/// itself, in which case the driver's view of the connection is wrong.
async fn abandon(transaction: SqliteTransaction<'_>, error: sqlx::Error) -> CommitError {
    let spoiled = transaction.rollback().await.is_err();
    CommitError { error, spoiled }
}

/// True if every entry was written in full.
async fn insert(
    transaction: &mut SqliteTransaction<'_>,
    entries: &[&Entry],
) -> Result<bool, sqlx::Error> {
    let commands: Vec<_> = entries
        .iter()
        .filter_map(|entry| CommandJson::of(entry))
        .collect();
    let fates: Vec<_> = entries
        .iter()
        .filter_map(|entry| FateJson::of(entry))
        .collect();
    Ok(insert_rows(transaction, INSERT_COMMANDS, &commands).await?
        && insert_rows(transaction, INSERT_FATES, &fates).await?)
}

async fn insert_rows<T: Serialize + Sync>(
    transaction: &mut SqliteTransaction<'_>,
    statement: &'static str,
    rows: &[T],
) -> Result<bool, sqlx::Error> {
    if rows.is_empty() {
        return Ok(true);
    }
    let inserted = sqlx::query(statement)
        .bind(json(rows)?)
        .execute(&mut **transaction)
        .await?;
    Ok(usize::try_from(inserted.rows_affected()).is_ok_and(|inserted| inserted == rows.len()))
}

/// What is known of a command's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Open,
    Concluded,
}

/// Judges each entry by what the database, and the entries before it, know of
/// its id.
async fn sift(
    transaction: &mut SqliteTransaction<'_>,
    entries: &[&Entry],
) -> Result<Vec<Result<(), LedgerError>>, sqlx::Error> {
    let ids: Vec<&CommandId> = entries.iter().map(|entry| entry.command_id()).collect();
    let rows: Vec<(String, bool)> = sqlx::query_as(SELECT_KNOWN)
        .bind(json(&ids)?)
        .fetch_all(&mut **transaction)
        .await?;
    let mut known: HashMap<String, Known> = rows
        .into_iter()
        .map(|(id, concluded)| {
            (
                id,
                if concluded {
                    Known::Concluded
                } else {
                    Known::Open
                },
            )
        })
        .collect();
    Ok(entries
        .iter()
        .map(|entry| judge(entry, known.entry(entry.command_id().to_string())))
        .collect())
}

fn judge(entry: &Entry, known: hash_map::Entry<'_, String, Known>) -> Result<(), LedgerError> {
    use hash_map::Entry::{Occupied, Vacant};

    let command_id = entry.command_id().clone();
    match (&entry.change, known) {
        (Change::Intend(_) | Change::Record(_), Occupied(_)) => {
            Err(LedgerError::Duplicate { command_id })
        }
        (Change::Intend(_), Vacant(id)) => {
            id.insert(Known::Open);
            Ok(())
        }
        (Change::Record(_), Vacant(id)) => {
            id.insert(Known::Concluded);
            Ok(())
        }
        (Change::Conclude(_), Vacant(_)) => Err(LedgerError::NotIntended { command_id }),
        (Change::Conclude(_), Occupied(mut id)) => match id.get() {
            Known::Open => {
                id.insert(Known::Concluded);
                Ok(())
            }
            Known::Concluded => Err(LedgerError::AlreadyConcluded { command_id }),
        },
    }
}

fn json<T: Serialize + ?Sized>(rows: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(rows).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// A row of `commands`, on its way into the database.
#[derive(Serialize)]
struct CommandJson<'a> {
    id: &'a CommandId,
    device: &'a str,
    kind: CommandKind,
    mutation: bool,
    app: Option<&'a str>,
    parameters: &'a Map<String, Value>,
    caller: Option<&'a str>,
    at: i64,
}

impl<'a> CommandJson<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        let command = entry.command()?;
        Some(Self {
            id: &command.command_id,
            device: command.device.as_str(),
            kind: command.kind,
            mutation: command.kind.is_mutation(),
            app: command
                .app_bundle_id
                .as_ref()
                .map(fleetgate_runner::BundleId::as_str),
            parameters: &command.parameters,
            caller: command.caller.as_deref(),
            at: since_epoch(entry.at),
        })
    }
}

/// A row of `fates`, on its way into the database.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FateJson<'a> {
    id: &'a CommandId,
    fate: Fate,
    effect: Effect,
    reason: Option<&'a str>,
    message: Option<&'a str>,
    warning: Option<&'a str>,
    reactivated: bool,
    attempts: u32,
    recovered: bool,
    queue_wait: i64,
    device_time: i64,
    at: i64,
}

impl<'a> FateJson<'a> {
    fn of(entry: &'a Entry) -> Option<Self> {
        let outcome = entry.outcome()?;
        Some(Self {
            id: entry.command_id(),
            fate: outcome.fate,
            effect: outcome.effect,
            reason: outcome.reason.as_deref(),
            message: outcome.message.as_deref(),
            warning: outcome.warning.as_deref(),
            reactivated: outcome.reactivated,
            attempts: outcome.attempts,
            recovered: outcome.recovered,
            queue_wait: micros(outcome.queue_wait),
            device_time: micros(outcome.device_time),
            at: since_epoch(entry.at),
        })
    }
}
