//! Rows on their way out of the database and into the chain's encoding.
//!
//! What is bound is what is stored, whatever type it has: a value that was
//! tampered with must change the hash, not fail to be read.

use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteTransaction, TypeInfo, ValueRef};

use crate::canonical::Event;
use crate::row::columns;

/// The columns of each part of an event, by the names that the statements of
/// this crate give them.
const IDENTITY: &[&str] = &["identity_ledger_id", "identity_created_us"];
const COMMAND: &[&str] = &[
    "command_id",
    "device",
    "kind",
    "mutation",
    "app_bundle_id",
    "parameters",
    "asked",
    "caller",
    "created_us",
];
/// Of a command too, unless all of them are null.
const ACCESS: &[&str] = &["principal", "lease_id", "lease_epoch"];
const FATE: &[&str] = &[
    "command_id",
    "revision",
    "fate",
    "effect",
    "reason",
    "message",
    "warning",
    "hint",
    "reactivated",
    "attempts",
    "recovered",
    "queue_wait_us",
    "device_time_us",
    "reply",
    "reply_bytes",
    "why",
    "final",
    "concluded_us",
];
const OPERATION: &[&str] = &["who", "what", "target", "detail", "operation_at_us"];
const TRANSITION: &[&str] = &[
    "transition_device",
    "from_state",
    "to_state",
    "transition_reason",
    "transition_detail",
    "transition_at_us",
];
const CHECKPOINT: &[&str] = &[
    "checkpoint_ledger_id",
    "chain_seq",
    "chain_hash",
    "pruned_through_us",
    "commands_pruned",
    "checkpoint_at_us",
];

pub(crate) fn identity(row: &SqliteRow, event: &mut Event) -> Result<(), sqlx::Error> {
    bind(row, IDENTITY, event)
}

pub(crate) fn command(row: &SqliteRow, event: &mut Event) -> Result<(), sqlx::Error> {
    bind(row, COMMAND, event)?;
    for name in ACCESS {
        if !row.try_get_raw(*name)?.is_null() {
            return bind(row, ACCESS, event);
        }
    }
    Ok(())
}

pub(crate) fn fate(row: &SqliteRow, event: &mut Event) -> Result<(), sqlx::Error> {
    bind(row, FATE, event)
}

pub(crate) fn operation(row: &SqliteRow, event: &mut Event) -> Result<(), sqlx::Error> {
    bind(row, OPERATION, event)
}

pub(crate) fn transition(row: &SqliteRow, event: &mut Event) -> Result<(), sqlx::Error> {
    bind(row, TRANSITION, event)
}

pub(crate) fn checkpoint(row: &SqliteRow, event: &mut Event) -> Result<(), sqlx::Error> {
    bind(row, CHECKPOINT, event)
}

fn bind(row: &SqliteRow, names: &[&str], event: &mut Event) -> Result<(), sqlx::Error> {
    for name in names {
        let value = row.try_get_raw(*name)?;
        if value.is_null() {
            event.null();
            continue;
        }
        match value.type_info().name() {
            "INTEGER" => event.integer(row.try_get_unchecked(*name)?),
            "TEXT" => event.text(row.try_get_unchecked(*name)?),
            "BLOB" => event.blob(row.try_get_unchecked(*name)?),
            other => {
                return Err(sqlx::Error::ColumnDecode {
                    index: (*name).to_owned(),
                    source: format!("the chain binds no {other}").into(),
                });
            }
        }
    }
    Ok(())
}

/// A row from before the chain: a command with one of its fates, or with none.
pub(crate) struct Adopted {
    pub(crate) command_seq: i64,
    pub(crate) fate_seq: Option<i64>,
    pub(crate) columns: SqliteRow,
}

impl Adopted {
    /// Those of the next `limit` commands.
    pub(crate) async fn after(
        transaction: &mut SqliteTransaction<'_>,
        after: i64,
        limit: i64,
    ) -> Result<Vec<Self>, sqlx::Error> {
        const SELECT: &str = concat!(
            "SELECT ",
            columns!("f.reply"),
            " FROM (SELECT * FROM commands WHERE seq > ?1 ORDER BY seq LIMIT ?2) AS c ",
            "LEFT JOIN fates AS f ON f.command_seq = c.seq ",
            "ORDER BY c.seq, f.revision"
        );
        sqlx::query(SELECT)
            .bind(after)
            .bind(limit)
            .fetch_all(&mut **transaction)
            .await?
            .into_iter()
            .map(|columns| {
                Ok(Self {
                    command_seq: columns.try_get("seq")?,
                    fate_seq: columns.try_get("fate_seq")?,
                    columns,
                })
            })
            .collect()
    }
}
