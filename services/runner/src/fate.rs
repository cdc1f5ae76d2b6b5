//! What became of a command, and what it did.

use crate::words::closed_words;

closed_words! {
    /// What became of a command.
    pub enum Fate {
        /// Not one byte of it was sent.
        NotSent = "NOT_SENT",
        /// The runner executed it and the reply is known.
        Completed = "COMPLETED",
        /// The runner executed it; the reply is lost and was not retained.
        CompletedResultLost = "COMPLETED_RESULT_LOST",
        /// The runner gave a verdict against it, be it only that it was too busy to
        /// run it.
        Failed = "FAILED",
        /// It was sent, and nobody can say whether it ran.
        Unknown = "UNKNOWN",
    }
}

closed_words! {
    /// What a command did to the device.
    pub enum Effect {
        /// Provably nothing.
        None = "NONE",
        /// What was asked.
        Applied = "APPLIED",
        /// Perhaps what was asked.
        Unknown = "UNKNOWN",
    }
}
