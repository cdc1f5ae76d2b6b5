//! What is under way with a phone's runner, and with its process.

use tokio::time::Instant;

/// What is under way with its runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// Nothing: it is not for us to launch, or must not be now.
    Rest,
    /// It is being launched; until when, once its process runs.
    Launching { until: Option<Instant> },
    /// It answers.
    Up,
    /// It is to end once nothing is in flight, or at some moment all the same.
    Yielding { then: Then, until: Option<Instant> },
    /// Its process is being ended.
    Stopping { then: Then },
    /// It is launched again at some moment.
    Pausing { until: Instant },
}

/// What follows the end of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Then {
    /// Another one, in its turn.
    Launch,
    /// Another one at once: an operator wants it.
    AtOnce,
    /// Another one, after a pause.
    Retry,
    /// None, for this reason.
    Quarantine(String),
    /// What the circumstances ask for then.
    Rest,
}

/// Whether there is a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Child {
    None,
    Starting,
    Running,
    Stopping,
}
