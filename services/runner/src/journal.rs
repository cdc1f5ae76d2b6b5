//! The runner's journal, as `status` with `statusCommandId` answers from it.

use serde::{Deserialize, Serialize};

use crate::code::RunnerError;
use crate::ids::CommandId;

/// The runner's word on one command id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JournalState {
    /// Not in the journal: never seen, or evicted since. Proves nothing.
    NotAccepted,
    /// Waiting in the runner's queue.
    Accepted,
    /// Executing.
    Started,
    /// Executed with a success.
    Completed,
    /// Ended with an error.
    Failed,
}

/// One entry of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// The id that was asked for.
    pub command_id: CommandId,
    /// Its state; `None` for a word from a newer runner.
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
