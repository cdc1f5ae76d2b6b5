//! What travels through the lower half of the stack, from [`OnRecord`] down to
//! the window: a request with its leave to be sent, and what comes back.
//!
//! [`OnRecord`]: crate::on_record::OnRecord

use fleetgate_runner::{Clearance, Envelope, JournalState, Request, SendError};

use crate::tally::Tally;
use crate::turn::{Patience, Turn};

/// A request to be sent, as often as the layers below see fit.
#[derive(Debug, Clone)]
pub(crate) struct Dispatch {
    /// What to send.
    pub(crate) request: Request,
    /// What must come before its first byte; shared by all attempts.
    pub(crate) clearance: Clearance,
    /// Which window each attempt gets.
    pub(crate) allowance: Allowance,
    /// Until when another attempt is worth making.
    pub(crate) patience: Patience,
    /// The attempts so far.
    pub(crate) tally: Tally,
}

/// Which window an attempt gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Allowance {
    /// The one of the command's class.
    Command,
    /// The short one of a status request that recovers a lost reply.
    Recovery,
    /// The shorter one of a status request to a runner that is coming up.
    Readiness,
}

impl Dispatch {
    /// The dispatch of a turn.
    pub(crate) fn of(turn: &Turn, clearance: Clearance) -> Self {
        // The runner neither journals nor coalesces what bypasses its queue, so
        // the protocol has no id for it.
        let journaled = !turn.command.kind().bypasses_queue();
        Self {
            request: Request {
                command_id: journaled.then(|| turn.command_id.clone()),
                command: turn.command.clone(),
            },
            clearance,
            allowance: Allowance::Command,
            patience: turn.patience.clone(),
            tally: turn.tally.clone(),
        }
    }
}

/// What the runner made of a command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// Its reply.
    Replied(Envelope),
    /// Its verdict, from the journal: the reply was lost.
    Recovered(Envelope),
    /// It executed the command with success; what it said is lost.
    ResultLost,
}

impl Answer {
    /// True for the verdict after which the same command may be sent again.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Replied(envelope) | Self::Recovered(envelope) => envelope
                .result
                .as_ref()
                .is_err_and(|error| error.code.is_retryable()),
            Self::ResultLost => false,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Unanswered {
    /// The last attempt failed, and nothing can or need be asked about it: it
    /// was not executed, or the command is a read.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A mutation was sent and the journal cannot tell what became of it.
    #[error("the fate of the command is unknown: {cause}")]
    Unknown {
        /// How the reply was lost.
        cause: SendError,
        /// The journal's last word, if it gave one.
        journal: Option<JournalState>,
    },
    /// The session was shut down.
    #[error("the session was shut down")]
    Abandoned,
    /// A layer or the exchange panicked.
    #[error("the command's execution crashed")]
    Crashed,
}
