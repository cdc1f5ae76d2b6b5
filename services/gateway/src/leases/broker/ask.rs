//! What callers ask of the broker, and what they are answered.

use std::sync::Arc;

use fleetgate_lease::{Change, Epoch, Explanation, LeaseId, NewLease};
use fleetgate_ledger::LedgerError;
use tokio::sync::oneshot;

use super::super::asked::Asked;
use super::super::board::LeaseView;
use super::super::refused::Refused;
use super::super::rows::UnreadableLease;

/// What becomes of what was asked for.
pub(in crate::leases) type Reply = Result<LeaseView, LeaseError>;

/// Where the answer goes.
pub(in crate::leases) type To = oneshot::Sender<Reply>;

/// What is asked for.
#[derive(Debug)]
pub(in crate::leases) enum Ask {
    Create(Box<Order>, To),
    Renew {
        id: LeaseId,
        owner: String,
        /// The grant's number as the caller knows it.
        epoch: Option<Epoch>,
        to: To,
    },
    Update {
        id: LeaseId,
        owner: String,
        change: Change,
        to: To,
    },
    Release {
        id: LeaseId,
        owner: String,
        to: To,
    },
    Revoke {
        id: LeaseId,
        by: String,
        reason: String,
        /// Whether what is under way is ended by force.
        now: bool,
        to: To,
    },
    Explain {
        id: LeaseId,
        to: oneshot::Sender<Option<Explained>>,
    },
}

/// A lease that is wanted.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) lease: NewLease,
    /// What makes a repetition safe, if anything does.
    pub(crate) request_id: Option<String>,
    pub(crate) asked: Asked,
    /// Where its caller calls from.
    pub(crate) address: Option<String>,
}

/// A lease, and why it waits.
#[derive(Debug, Clone)]
pub(crate) struct Explained {
    pub(crate) view: LeaseView,
    pub(crate) why: Explanation,
}

/// Why something was not done.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum LeaseError {
    /// No open lease has this id; the ledger may know one that has ended.
    #[error("no such lease is open")]
    NotOpen,
    /// As a command would be told.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It was granted, so that its priority counts no more.
    #[error("the lease does not wait any more")]
    NotWaiting,
    /// It would have more labels than it can.
    #[error("the lease would have too many labels")]
    TooManyLabels,
    /// It makes no sense.
    #[error("{0}")]
    Unusable(&'static str),
    /// Its owner has as many as it may.
    #[error("{limit} leases are open already")]
    Quota {
        /// How many it may have.
        limit: usize,
    },
    /// The id is that of another request.
    #[error("the request id belongs to a request that differs in {}", fields.join(", "))]
    Differs {
        /// In what.
        fields: Vec<&'static str>,
    },
    /// The lease of this request has ended just now.
    #[error("the lease of this request has ended")]
    LookAgain,
    /// The ledger did not take it, and nothing was done.
    #[error(transparent)]
    Ledger(LedgerError),
    /// The ledger has not taken it yet, and is offered it again.
    #[error("{error}")]
    Unwritten {
        /// Why.
        error: LedgerError,
        /// The lease has ended, which counts at once.
        ended: bool,
    },
    /// A lease on record cannot be read.
    #[error(transparent)]
    Unreadable(Arc<UnreadableLease>),
    /// The gateway is about to end.
    #[error("the gateway is draining")]
    Closed,
}

impl From<LedgerError> for LeaseError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<fleetgate_lease::Refused> for LeaseError {
    fn from(refused: fleetgate_lease::Refused) -> Self {
        use fleetgate_lease::Refused as Scheduler;
        match refused {
            // A lease that drains is told of by those who ask the scheduler.
            Scheduler::NotFound | Scheduler::Ended(_) => Self::NotOpen,
            Scheduler::NotWaiting => Self::NotWaiting,
            Scheduler::Unusable(why) => Self::Unusable(why),
        }
    }
}

impl Answer {
    /// Tells that the ledger did not take it.
    pub(super) fn fail(self, is_new: bool, error: LedgerError) {
        let ended = self.view.lease.end().is_some();
        let error = match error {
            error if is_new => LeaseError::Ledger(error),
            error => LeaseError::Unwritten { error, ended },
        };
        // Whoever asked may have stopped waiting.
        self.to.send(Err(error)).ok();
    }
}

/// Somebody who waits until something is on record.
#[derive(Debug)]
pub(super) struct Answer {
    /// What is told if nothing newer is known by then.
    pub(super) view: LeaseView,
    pub(super) to: To,
}
