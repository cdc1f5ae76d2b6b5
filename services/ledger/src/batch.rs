//! One batch of entries as one transaction.
//!
//! A batch is written on the assumption that all of it can be: one statement
//! for its commands, one for its fates and one for their links in the chain,
//! each over a JSON array. If fewer rows are written than were given, an entry
//! names an id that it must not; the transaction is undone, the entries are
//! judged by what the database knows of their ids, and those that pass are
//! written. So the common case pays for no look-up, and one bad entry costs the
//! others nothing but time.
//!
//! Invariant: what [`commit`] reports as written is committed, and nothing else
//! of the batch is.

mod aliases;
mod leases;
mod plan;
pub(crate) mod rows;

use std::time::{Duration, SystemTime};

use sqlx::{Connection, SqliteConnection, SqliteTransaction};
use tokio::time::Instant;

use self::plan::{Plan, Revision};
use self::rows::{CommandJson, FateJson, Links, TransitionJson, insert};
use crate::chain::Marks;
use crate::entry::Entry;
use crate::error::LedgerError;
use crate::event::EventKind;
use crate::leases::rows::{LeaseJson, advance};
use crate::settings::SettingsJson;
use crate::time::since_epoch;

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

/// A batch was written, as far as it could be.
#[derive(Debug)]
pub(crate) struct Committed {
    /// What became of each entry, in their order.
    pub(crate) verdicts: Vec<Result<(), LedgerError>>,
    pub(crate) written: Written,
}

/// What a transaction wrote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// The number of the chain's last link.
    pub(crate) head: i64,
    /// The number of the newest command.
    pub(crate) newest: i64,
    /// What the chain took: reading its end, hashing and inserting its links.
    pub(crate) chaining: Duration,
}

/// Writes what can be written of `entries`.
pub(crate) async fn commit(
    connection: &mut SqliteConnection,
    entries: &[&Entry],
) -> Result<Committed, CommitError> {
    if let Some(plans) = entries
        .iter()
        .map(|entry| Some((entry.at, Plan::assumed(entry)?)))
        .collect::<Option<Vec<_>>>()
    {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        match write(&mut transaction, &plans).await {
            Ok(Some(written)) => {
                finish(transaction).await?;
                return Ok(Committed {
                    verdicts: entries.iter().map(|_| Ok(())).collect(),
                    written,
                });
            }
            Ok(None) => undo(transaction).await?,
            Err(error) => return Err(abandon(transaction, error).await),
        }
    }

    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let judged = match plan::judge(&mut transaction, entries).await {
        Ok(judged) => judged,
        Err(error) => return Err(abandon(transaction, error).await),
    };
    let mut plans = Vec::new();
    let mut verdicts = Vec::new();
    for (entry, judgement) in entries.iter().zip(judged) {
        verdicts.push(judgement.map(|plan| plans.push((entry.at, plan))));
    }
    match write(&mut transaction, &plans).await {
        Ok(Some(written)) => {
            finish(transaction).await?;
            Ok(Committed { verdicts, written })
        }
        Ok(None) => {
            let error =
                sqlx::Error::Protocol("a batch that was judged was not written in full".to_owned());
            Err(abandon(transaction, error).await)
        }
        Err(error) => Err(abandon(transaction, error).await),
    }
}

/// After a commit that failed, SQLite may or may not have ended the
/// transaction; a new connection knows where it stands.
pub(crate) async fn finish(transaction: SqliteTransaction<'_>) -> Result<(), CommitError> {
    transaction.commit().await.map_err(|error| CommitError {
        error,
        spoiled: true,
    })
}

pub(crate) async fn undo(transaction: SqliteTransaction<'_>) -> Result<(), CommitError> {
    transaction.rollback().await.map_err(|error| CommitError {
        error,
        spoiled: true,
    })
}

/// Undoes a transaction that failed with `error`. SQLite may have undone it by
/// itself, in which case the driver's view of the connection is wrong.
pub(crate) async fn abandon(transaction: SqliteTransaction<'_>, error: sqlx::Error) -> CommitError {
    let spoiled = transaction.rollback().await.is_err();
    CommitError { error, spoiled }
}

/// Writes the rows and their links; `None` if the database did not take all of
/// them.
async fn write(
    transaction: &mut SqliteTransaction<'_>,
    plans: &[(SystemTime, Plan<'_>)],
) -> Result<Option<Written>, sqlx::Error> {
    let started = Instant::now();
    let mut marks = Marks::read(transaction).await?;
    let mut links = Links::after(marks.head);
    let mut commands = Vec::new();
    let mut fates = Vec::new();
    let mut operations = Vec::new();
    let mut transitions = Vec::new();
    let mut settings = Vec::new();
    let mut leases = Vec::new();
    let mut clock = None;
    for &(at, plan) in plans {
        let at = since_epoch(at);
        match plan {
            Plan::Intend(intent) => {
                let command = CommandJson::of(marks.next_command(), at, intent)?;
                links.add(EventKind::Intended, command.seq, at, |event| {
                    command.bind(event);
                });
                commands.push(command);
            }
            Plan::Record(record) => {
                let command = CommandJson::of(marks.next_command(), at, &record.command)?;
                let first = Revision {
                    event: EventKind::Recorded,
                    command_id: &record.command.command_id,
                    number: 0,
                    outcome: &record.outcome,
                    why: None,
                    is_final: false,
                };
                let fate = FateJson::of(marks.next_fate(), at, first);
                links.add(first.event, fate.seq, at, |event| {
                    command.bind(event);
                    fate.bind(event);
                });
                commands.push(command);
                fates.push(fate);
            }
            Plan::Revise(revision) => {
                let fate = FateJson::of(marks.next_fate(), at, revision);
                links.add(revision.event, fate.seq, at, |event| fate.bind(event));
                fates.push(fate);
            }
            Plan::Operate(operation) => {
                operations.push(links.operation(marks.next_operation(), at, operation)?);
            }
            Plan::Move(transition) => {
                let transition = TransitionJson::of(links.next(), at, transition);
                links.add(EventKind::Transition, transition.seq, at, |event| {
                    transition.bind(event);
                });
                transitions.push(transition);
            }
            Plan::Set(device, operation) => {
                operations.push(links.operation(marks.next_operation(), at, operation)?);
                settings.push(SettingsJson::of(device)?);
            }
            Plan::Lease(write) => {
                for operation in &write.operations {
                    operations.push(links.operation(marks.next_operation(), at, operation)?);
                }
                for lease in &write.rows {
                    leases.push(LeaseJson::of(lease)?);
                }
                clock = clock.max(Some(write.clock));
            }
        }
    }
    let hashed = started.elapsed();
    let rows_taken = insert(transaction, &commands).await?
        && insert(transaction, &fates).await?
        && insert(transaction, &operations).await?
        && insert(transaction, &transitions).await?
        && insert(transaction, &settings).await?
        && insert(transaction, &leases).await?;
    if let Some(clock) = clock {
        let last_epoch = leases.iter().filter_map(LeaseJson::epoch).max();
        advance(transaction, clock, last_epoch.unwrap_or_default()).await?;
    }
    let inserting = Instant::now();
    let taken = rows_taken && insert(transaction, &links.rows).await?;
    Ok(taken.then(|| Written {
        head: links.head.seq,
        newest: marks.newest_command(),
        chaining: hashed + inserting.elapsed(),
    }))
}
