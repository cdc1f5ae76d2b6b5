//! What became of a command, and what it did.

use serde::{Deserialize, Serialize};

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Fate {
    /// Not one byte of it was sent.
    NotSent,
    /// The runner executed it and the reply is known.
    Completed,
    /// The runner executed it; the reply is lost and was not retained.
    CompletedResultLost,
    /// The runner gave a verdict against it, be it only that it was too busy to
    /// run it.
    Failed,
    /// It was sent, and nobody can say whether it ran.
    Unknown,
}

/// What a command did to the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Effect {
    /// Provably nothing.
    None,
    /// What was asked.
    Applied,
    /// Perhaps what was asked.
    Unknown,
}
