//! The runner's journal, as `status` with `statusCommandId` answers from it.
//!
//! An entry is kept as the runner tells it. What it means for the command that
//! was lost is the session's business.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::code::{RunnerCode, RunnerError};
use crate::ids::CommandId;
use crate::words::closed_words;

closed_words! {
    /// The runner's word on one command id.
    pub enum JournalState {
        /// Not in the journal: never seen, or evicted since. Proves nothing.
        NotAccepted = "notAccepted",
        /// Waiting in the runner's queue.
        Accepted = "accepted",
        /// Executing.
        Started = "started",
        /// Executed with a success.
        Completed = "completed",
        /// Ended with an error.
        Failed = "failed",
    }
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Wire", into = "Wire")]
pub struct JournalEntry {
    /// The id that was asked for.
    pub command_id: CommandId,
    /// Its state; `None` for no state or a word from a newer runner, neither of
    /// which proves anything.
    pub state: Option<JournalState>,
    /// The command's name on the wire.
    pub command: Option<String>,
    /// Whether its reply was a success.
    pub response_ok: Option<bool>,
    /// The whole reply envelope as JSON text, if it was retained.
    pub response_json: Option<String>,
    /// The verdict, if there was one against it.
    pub error: Option<RunnerError>,
}

/// The entry as it stands on the wire.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    command_id: CommandId,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_ok: Option<bool>,
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "text_or_object"
    )]
    response_json: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<RunnerCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_hint: Option<String>,
}

impl From<Wire> for JournalEntry {
    fn from(wire: Wire) -> Self {
        let error = wire.error_code.map(|code| RunnerError {
            code,
            message: wire.error_message.unwrap_or_default(),
            hint: wire.error_hint,
        });
        Self {
            command_id: wire.command_id,
            state: wire.state.as_deref().and_then(JournalState::from_word),
            command: wire.command,
            response_ok: wire.response_ok,
            response_json: wire.response_json,
            error,
        }
    }
}

impl From<JournalEntry> for Wire {
    fn from(entry: JournalEntry) -> Self {
        let (error_code, error_message, error_hint) = match entry.error {
            Some(RunnerError {
                code,
                message,
                hint,
            }) => (Some(code), Some(message), hint),
            None => (None, None, None),
        };
        Self {
            command_id: entry.command_id,
            state: entry.state.map(|state| state.as_str().to_owned()),
            command: entry.command,
            response_ok: entry.response_ok,
            response_json: entry.response_json,
            error_code,
            error_message,
            error_hint,
        }
    }
}

/// The retained reply is JSON text in a string. One that stands there as an
/// object means the same.
fn text_or_object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let Some(raw) = Option::<Box<RawValue>>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let text = if raw.get().starts_with('{') {
        String::from(Box::<str>::from(raw))
    } else {
        serde_json::from_str(raw.get()).map_err(serde::de::Error::custom)?
    };
    Ok(Some(text))
}
