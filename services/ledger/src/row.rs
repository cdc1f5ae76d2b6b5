//! A command as the ledger holds it, read back into the domain's types.

use std::error::Error;
use std::sync::Arc;
use std::time::SystemTime;

use fleetgate_runner::{BundleId, CommandId, CommandKind, Udid};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as UnknownName;
use serde_json::{Map, Value};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::entry::{KeptReply, Outcome};
use crate::error::LedgerError;
use crate::leases::LeaseStamp;
use crate::time::{duration, system_time};

/// The columns of a command and of one of its fates. What takes the place of
/// the reply is given, since a page of commands does without.
macro_rules! columns {
    ($reply:literal) => {
        concat!(
            "c.seq, c.command_id, c.device, c.kind, c.mutation, c.app_bundle_id, c.parameters, c.asked, ",
            "c.caller, c.created_us, c.principal, c.lease_id, c.lease_epoch, ",
            "f.seq AS fate_seq, f.revision, f.fate, f.effect, f.reason, f.message, ",
            "f.warning, f.hint, f.reactivated, f.attempts, f.recovered, f.queue_wait_us, f.device_time_us, ",
            $reply,
            " AS reply, f.reply_bytes, f.why, f.final, f.concluded_us"
        )
    };
}
pub(crate) use columns;

/// Commands `c`, each with its newest fate `f`.
macro_rules! newest_fates {
    () => {
        "commands AS c LEFT JOIN fates AS f ON f.seq = (\
         SELECT n.seq FROM fates AS n WHERE n.command_seq = c.seq ORDER BY n.revision DESC LIMIT 1)"
    };
}
pub(crate) use newest_fates;

/// Each command with its newest fate.
macro_rules! select_newest {
    ($reply:literal) => {
        concat!("SELECT ", columns!($reply), " FROM ", newest_fates!(), " ")
    };
}

/// Whole commands, each with its newest fate.
pub(crate) const SELECT_WHOLE: &str = select_newest!("f.reply");

/// Commands without their replies, each with its newest fate.
pub(crate) const SELECT: &str = select_newest!("NULL");

/// Whole commands with each of their fates.
pub(crate) const SELECT_HISTORY: &str = concat!(
    "SELECT ",
    columns!("f.reply"),
    " FROM commands AS c JOIN fates AS f ON f.command_seq = c.seq "
);

/// A command and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandRow {
    /// Its place in the order of recording.
    pub seq: i64,
    /// Its id.
    pub command_id: CommandId,
    /// The phone.
    pub device: Udid,
    /// Which command.
    pub kind: CommandKind,
    /// The app that it names.
    pub app_bundle_id: Option<BundleId>,
    /// Its parameters, typed text replaced by its length.
    pub parameters: Map<String, Value>,
    /// What the caller asked for, typed text replaced by its length; `None` in
    /// what was recorded before this was kept.
    pub asked: Option<Map<String, Value>>,
    /// The address that it was asked for from.
    pub caller: Option<String>,
    /// Who asked for it; `None` in what was recorded before this was kept.
    pub principal: Option<String>,
    /// The lease that it was carried out under, if it needed one.
    pub lease: Option<LeaseStamp>,
    /// When it was handed to the ledger: a mutation before its first byte was
    /// sent, a read at its end. To the microsecond.
    pub created: SystemTime,
    /// The newest word on what became of it, or in an event the one that the
    /// event is about; `None` while it is in flight.
    pub conclusion: Option<Conclusion>,
}

/// What became of a command, and since when that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conclusion {
    /// 0 for the first word on the command; each later one counts instead of
    /// those before it.
    pub revision: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// When it was handed to the ledger. To the microsecond.
    pub concluded: SystemTime,
    /// How it was learnt, if it was learnt later.
    pub why: Option<String>,
    /// Whether nothing more can be learnt: an UNKNOWN for good.
    pub is_final: bool,
}

pub(crate) type Unreadable = Box<dyn Error + Send + Sync>;

impl CommandRow {
    pub(crate) fn read(row: &SqliteRow) -> Result<Self, LedgerError> {
        let seq = row.try_get("seq").unwrap_or_default();
        Self::decode(row, seq).map_err(|error| LedgerError::UnreadableRow {
            seq,
            source: Arc::from(error),
        })
    }

    fn decode(row: &SqliteRow, seq: i64) -> Result<Self, Unreadable> {
        let text = |column: &str| row.try_get::<String, _>(column);
        Ok(Self {
            seq,
            command_id: text("command_id")?.parse()?,
            device: text("device")?.parse()?,
            kind: named(&text("kind")?)?,
            app_bundle_id: match row.try_get::<Option<String>, _>("app_bundle_id")? {
                Some(id) => Some(id.parse()?),
                None => None,
            },
            parameters: serde_json::from_str(&text("parameters")?)?,
            asked: match row.try_get::<Option<String>, _>("asked")? {
                Some(asked) => Some(serde_json::from_str(&asked)?),
                None => None,
            },
            caller: row.try_get("caller")?,
            principal: row.try_get("principal")?,
            lease: LeaseStamp::decode(row)?,
            created: system_time(row.try_get("created_us")?),
            conclusion: Conclusion::decode(row)?,
        })
    }
}

impl Conclusion {
    pub(crate) fn decode(row: &SqliteRow) -> Result<Option<Self>, Unreadable> {
        let Some(fate) = row.try_get::<Option<String>, _>("fate")? else {
            return Ok(None);
        };
        let outcome = Outcome {
            fate: named(&fate)?,
            effect: named(&row.try_get::<String, _>("effect")?)?,
            reason: row.try_get("reason")?,
            message: row.try_get("message")?,
            warning: row.try_get("warning")?,
            hint: row.try_get("hint")?,
            reactivated: row.try_get("reactivated")?,
            attempts: u32::try_from(row.try_get::<i64, _>("attempts")?)?,
            recovered: row.try_get("recovered")?,
            queue_wait: duration(row.try_get("queue_wait_us")?),
            device_time: duration(row.try_get("device_time_us")?),
            reply: match row.try_get::<Option<i64>, _>("reply_bytes")? {
                Some(bytes) => Some(KeptReply {
                    bytes,
                    text: row.try_get("reply")?,
                }),
                None => None,
            },
        };
        Ok(Some(Self {
            revision: u32::try_from(row.try_get::<i64, _>("revision")?)?,
            outcome,
            concluded: system_time(row.try_get("concluded_us")?),
            why: row.try_get("why")?,
            is_final: row.try_get("final")?,
        }))
    }
}

/// A value of one of the domain's enums by the name that its serde gives it,
/// which is the only place where the names stand.
fn named<'de, T: Deserialize<'de>>(name: &'de str) -> Result<T, UnknownName> {
    T::deserialize(IntoDeserializer::<UnknownName>::into_deserializer(name))
}
