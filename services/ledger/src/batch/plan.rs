//! What becomes of each entry of a batch: assumed for all of them, or judged by
//! what the database knows of their ids.
//!
//! Invariant: judged in order, so that an entry sees what those before it in
//! the batch bring about.

use std::collections::HashMap;
use std::collections::hash_map;

use fleetgate_runner::{CommandId, Fate};
use serde_json::{Map, Value};
use sqlx::SqliteTransaction;

use super::aliases::Aliases;
use super::leases::Leases;
use super::rows::json;
use crate::entry::{Change, Entry, NewIntent, NewOperation, NewRecord, NewTransition, Outcome};
use crate::error::LedgerError;
use crate::event::EventKind;
use crate::leases::NewLeaseWrite;
use crate::settings::DeviceSettings;

const SELECT_KNOWN: &str = "
SELECT c.command_id, c.device, c.kind, c.mutation, c.app_bundle_id, c.asked, f.revision, f.fate, f.final
FROM commands AS c
LEFT JOIN fates AS f ON f.seq = (
    SELECT n.seq FROM fates AS n WHERE n.command_seq = c.seq ORDER BY n.revision DESC LIMIT 1
)
WHERE c.command_id IN (SELECT value FROM json_each(?1))";

/// Rows to write.
#[derive(Debug, Clone, Copy)]
pub(super) enum Plan<'a> {
    Intend(&'a NewIntent),
    Record(&'a NewRecord),
    Revise(Revision<'a>),
    Operate(&'a NewOperation),
    Move(&'a NewTransition),
    Set(&'a DeviceSettings, &'a NewOperation),
    Lease(&'a NewLeaseWrite),
}

/// A fate of a command that is on record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Revision<'a> {
    pub(super) event: EventKind,
    pub(super) command_id: &'a CommandId,
    pub(super) number: i64,
    pub(super) outcome: &'a Outcome,
    pub(super) why: Option<&'a str>,
    pub(super) is_final: bool,
}

impl<'a> Plan<'a> {
    /// What is to be written if nothing on record speaks against it; `None` if
    /// that cannot be said without a look.
    pub(super) fn assumed(entry: &'a Entry) -> Option<Self> {
        match &entry.change {
            Change::Intend(intent) => Some(Self::Intend(intent)),
            Change::Record(record) => Some(Self::Record(record)),
            Change::Conclude(fate) => Some(Self::Revise(Revision {
                event: EventKind::Concluded,
                command_id: &fate.command_id,
                number: 0,
                outcome: &fate.outcome,
                why: None,
                is_final: false,
            })),
            Change::Operate(operation) => Some(Self::Operate(operation)),
            Change::Move(transition) => Some(Self::Move(transition)),
            Change::Lease(write) => Some(Self::Lease(write)),
            Change::Resolve(_) | Change::Set(..) => None,
        }
    }
}

/// Judges each entry by what the database, and the entries before it, know of
/// its id.
pub(super) async fn judge<'a>(
    transaction: &mut SqliteTransaction<'_>,
    entries: &[&'a Entry],
) -> Result<Vec<Result<Plan<'a>, LedgerError>>, sqlx::Error> {
    let ids: Vec<&CommandId> = entries
        .iter()
        .filter_map(|entry| entry.change.command_id())
        .collect();
    let rows: Vec<KnownRow> = sqlx::query_as(SELECT_KNOWN)
        .bind(json(&ids)?)
        .fetch_all(&mut **transaction)
        .await?;
    let mut known: HashMap<String, Known> = rows
        .into_iter()
        .map(|row| (row.command_id.clone(), Known::of(row)))
        .collect();
    let mut aliases = Aliases::read(transaction, entries).await?;
    let mut leases = Leases::read(transaction, entries).await?;
    Ok(entries
        .iter()
        .map(|entry| place(entry, &mut known, &mut aliases, &mut leases))
        .collect())
}

#[derive(sqlx::FromRow)]
struct KnownRow {
    command_id: String,
    device: String,
    kind: String,
    mutation: bool,
    app_bundle_id: Option<String>,
    asked: Option<String>,
    revision: Option<i64>,
    fate: Option<String>,
    r#final: Option<bool>,
}

/// A command that is on record, or will be with this batch.
struct Known {
    content: Content,
    newest: Option<Newest>,
}

/// What makes two commands the same.
#[derive(PartialEq)]
struct Content {
    device: String,
    kind: String,
    mutation: bool,
    app_bundle_id: Option<String>,
    /// `None` if it was not kept, which is like nothing.
    asked: Option<Map<String, Value>>,
}

/// The newest word on a command.
#[derive(Clone, Copy)]
struct Newest {
    revision: i64,
    /// Whether it leaves something to be learnt.
    open: bool,
}

impl Known {
    fn of(row: KnownRow) -> Self {
        let newest = row.revision.map(|revision| Newest {
            revision,
            open: row.fate.as_deref() == Some(Fate::Unknown.as_str()) && row.r#final != Some(true),
        });
        Self {
            content: Content {
                device: row.device,
                kind: row.kind,
                mutation: row.mutation,
                app_bundle_id: row.app_bundle_id,
                asked: row
                    .asked
                    .and_then(|asked| serde_json::from_str(&asked).ok()),
            },
            newest,
        }
    }

    fn new(command: &NewIntent, outcome: Option<&Outcome>) -> Self {
        Self {
            content: Content::of(command),
            newest: outcome.map(|outcome| Newest::of(0, outcome, false)),
        }
    }
}

impl Content {
    fn of(command: &NewIntent) -> Self {
        Self {
            device: command.device.to_string(),
            kind: command.kind.as_str().to_owned(),
            mutation: command.kind.is_mutation(),
            app_bundle_id: command.app_bundle_id.as_ref().map(ToString::to_string),
            asked: Some(command.asked.clone()),
        }
    }
}

impl Newest {
    fn of(revision: i64, outcome: &Outcome, is_final: bool) -> Self {
        Self {
            revision,
            open: outcome.fate == Fate::Unknown && !is_final,
        }
    }
}

fn place<'a>(
    entry: &'a Entry,
    known: &mut HashMap<String, Known>,
    aliases: &mut Aliases,
    leases: &mut Leases,
) -> Result<Plan<'a>, LedgerError> {
    use hash_map::Entry::{Occupied, Vacant};

    match &entry.change {
        Change::Intend(intent) => match known.entry(intent.command_id.to_string()) {
            Occupied(_) => Err(LedgerError::Duplicate {
                command_id: intent.command_id.clone(),
            }),
            Vacant(id) => {
                id.insert(Known::new(intent, None));
                Ok(Plan::Intend(intent))
            }
        },
        Change::Record(record) => match known.entry(record.command.command_id.to_string()) {
            Occupied(mut id) => repeat(record, id.get_mut()),
            Vacant(id) => {
                id.insert(Known::new(&record.command, Some(&record.outcome)));
                Ok(Plan::Record(record))
            }
        },
        Change::Conclude(fate) => revise(
            known,
            Revision {
                event: EventKind::Concluded,
                command_id: &fate.command_id,
                number: 0,
                outcome: &fate.outcome,
                why: None,
                is_final: false,
            },
        ),
        Change::Resolve(resolution) => revise(
            known,
            Revision {
                event: EventKind::Resolved,
                command_id: &resolution.command_id,
                number: 0,
                outcome: &resolution.outcome,
                why: Some(&resolution.why),
                is_final: resolution.is_final,
            },
        ),
        Change::Operate(operation) => Ok(Plan::Operate(operation)),
        Change::Move(transition) => Ok(Plan::Move(transition)),
        Change::Set(settings, operation) => {
            aliases.give(settings)?;
            Ok(Plan::Set(settings, operation))
        }
        Change::Lease(write) => {
            leases.take(write)?;
            Ok(Plan::Lease(write))
        }
    }
}

/// A record of an id that is on record: of a read that ran again, or refused.
fn repeat<'a>(record: &'a NewRecord, known: &mut Known) -> Result<Plan<'a>, LedgerError> {
    let command_id = &record.command.command_id;
    match known.newest {
        Some(newest)
            if !known.content.mutation && known.content == Content::of(&record.command) =>
        {
            let number = newest.revision + 1;
            known.newest = Some(Newest::of(number, &record.outcome, false));
            Ok(Plan::Revise(Revision {
                event: EventKind::Repeated,
                command_id,
                number,
                outcome: &record.outcome,
                why: None,
                is_final: false,
            }))
        }
        Some(_) | None => Err(LedgerError::Duplicate {
            command_id: command_id.clone(),
        }),
    }
}

/// A first fate needs a command without one; a resolution may also follow an
/// UNKNOWN that is not for good.
fn revise<'a>(
    known: &mut HashMap<String, Known>,
    mut revision: Revision<'a>,
) -> Result<Plan<'a>, LedgerError> {
    let command_id = revision.command_id.clone();
    let Some(known) = known.get_mut(command_id.as_str()) else {
        return Err(LedgerError::NotIntended { command_id });
    };
    revision.number = match known.newest {
        None => 0,
        Some(newest) if newest.open && revision.event == EventKind::Resolved => newest.revision + 1,
        Some(_) => return Err(LedgerError::AlreadyConcluded { command_id }),
    };
    known.newest = Some(Newest::of(
        revision.number,
        revision.outcome,
        revision.is_final,
    ));
    Ok(Plan::Revise(revision))
}
