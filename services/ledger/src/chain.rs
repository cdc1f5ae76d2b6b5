//! The end of the chain, and its beginning in a ledger that has none.
//!
//! A ledger from before there was a chain is adopted when it is opened: all of
//! its rows are bound, a command and then its fates, in one transaction, and an
//! operation says how many. A chain that lost its end, on the other hand, is
//! damage, and nothing is written behind it.
//!
//! Invariant: an identity and a first link come into being together.

use std::time::SystemTime;

use serde_json::{Map, Value};
use sqlx::{Connection, SqliteConnection, SqliteTransaction};

use crate::batch::rows::{Links, OperationJson, insert};
use crate::bind::{self, Adopted};
use crate::canonical::{Event, Hash, Head};
use crate::entry::NewOperation;
use crate::event::EventKind;
use crate::time::since_epoch;

const SELECT_MARKS: &str = "
SELECT (SELECT max(seq) FROM commands), (SELECT max(seq) FROM fates), (SELECT max(seq) FROM operations),
       h.seq, h.hash
FROM chain AS h
ORDER BY h.seq DESC
LIMIT 1";

/// Rows are adopted in slices of this many commands.
const SLICE: i64 = 1000;

/// The highest numbers given so far.
#[derive(Debug)]
pub(crate) struct Marks {
    command: i64,
    fate: i64,
    operation: i64,
    pub(crate) head: Head,
}

impl Marks {
    /// Reads them. The transaction must be one that writes.
    pub(crate) async fn read(transaction: &mut SqliteTransaction<'_>) -> Result<Self, sqlx::Error> {
        type Row = (Option<i64>, Option<i64>, Option<i64>, i64, Vec<u8>);
        let (command, fate, operation, seq, hash): Row = sqlx::query_as(SELECT_MARKS)
            .fetch_one(&mut **transaction)
            .await?;
        Ok(Self {
            command: command.unwrap_or_default(),
            fate: fate.unwrap_or_default(),
            operation: operation.unwrap_or_default(),
            head: Head {
                seq,
                hash: hash_of(&hash)?,
            },
        })
    }

    pub(crate) fn newest_command(&self) -> i64 {
        self.command
    }

    pub(crate) fn next_command(&mut self) -> i64 {
        self.command += 1;
        self.command
    }

    pub(crate) fn next_fate(&mut self) -> i64 {
        self.fate += 1;
        self.fate
    }

    pub(crate) fn next_operation(&mut self) -> i64 {
        self.operation += 1;
        self.operation
    }
}

/// A hash as the database holds it.
pub(crate) fn hash_of(bytes: &[u8]) -> Result<Hash, sqlx::Error> {
    Hash::try_from(bytes).map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Begins the chain of a ledger that has none; the number of the last link.
pub(crate) async fn begin(connection: &mut SqliteConnection) -> Result<Begun, sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let identified: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM identity)")
        .fetch_one(&mut *transaction)
        .await?;
    let head: Option<i64> = sqlx::query_scalar("SELECT max(seq) FROM chain")
        .fetch_one(&mut *transaction)
        .await?;
    let begun = match (identified, head) {
        (true, Some(head)) => Begun::At(head),
        (false, None) => Begun::At(adopt(&mut transaction).await?),
        (true, None) | (false, Some(_)) => Begun::Damaged,
    };
    transaction.commit().await?;
    Ok(begun)
}

/// Where the chain of an open ledger ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    At(i64),
    /// There is an identity without a chain, or a chain without an identity.
    Damaged,
}

async fn adopt(transaction: &mut SqliteTransaction<'_>) -> Result<i64, sqlx::Error> {
    let at = since_epoch(SystemTime::now());
    let ledger_id: String = sqlx::query_scalar(
        "INSERT INTO identity (one, ledger_id, created_us) VALUES (1, lower(hex(randomblob(16))), ?1) \
         RETURNING ledger_id",
    )
    .bind(at)
    .fetch_one(&mut **transaction)
    .await?;
    let mut links = Links::after(Head::NONE);
    links.add(EventKind::Opened, 1, at, |event| {
        event.text(&ledger_id);
        event.integer(at);
    });

    let mut adopted = (0_u64, 0_u64);
    let mut after = 0;
    loop {
        let rows = Adopted::after(transaction, after, SLICE).await?;
        let Some(last) = rows.last() else { break };
        after = last.command_seq;
        let mut current = None;
        for row in rows {
            if current != Some(row.command_seq) {
                current = Some(row.command_seq);
                adopted.0 += 1;
                add(
                    &mut links,
                    EventKind::Carried,
                    row.command_seq,
                    at,
                    |event| bind::command(&row.columns, event),
                )?;
            }
            if let Some(fate) = row.fate_seq {
                adopted.1 += 1;
                add(&mut links, EventKind::CarriedFate, fate, at, |event| {
                    bind::fate(&row.columns, event)
                })?;
            }
        }
        insert(transaction, &links.rows).await?;
        links.rows.clear();
    }

    if adopted.0 > 0 {
        let detail: Map<String, Value> = [("commands", adopted.0), ("fates", adopted.1)]
            .map(|(name, count)| (name.to_owned(), count.into()))
            .into_iter()
            .collect();
        let operation = NewOperation {
            who: "ledger".to_owned(),
            what: "adopt".to_owned(),
            target: None,
            detail,
        };
        let row = OperationJson::of(1, at, &operation)?;
        links.add(EventKind::Operation, 1, at, |event| row.bind(event));
        insert(transaction, &[row]).await?;
    }
    insert(transaction, &links.rows).await?;
    Ok(links.head.seq)
}

/// Adds a link whose content may turn out to be unreadable.
pub(crate) fn add(
    links: &mut Links,
    kind: EventKind,
    reference: i64,
    at: i64,
    bind: impl FnOnce(&mut Event) -> Result<(), sqlx::Error>,
) -> Result<(), sqlx::Error> {
    let mut bound = Ok(());
    links.add(kind, reference, at, |event| bound = bind(event));
    bound
}
