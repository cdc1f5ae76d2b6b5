//! The right to send a command, which may be withdrawn while it waits.
//!
//! Whoever gives it keeps the sender. What is withdrawn before the command's
//! intent ends as not sent ([`Failure::Withdrawn`]); what is in flight by then
//! goes on to its verdict. A command keeps its leave until it has ended,
//! whether anybody waits for it or not, so that the giver, having withdrawn it,
//! knows by [`Sender::closed`] when nothing is under way by it any more.
//!
//! What was withdrawn stays so. Invariant: a giver that is gone has withdrawn
//! nothing.
//!
//! [`Failure::Withdrawn`]: crate::Failure::Withdrawn
//! [`Sender::closed`]: tokio::sync::watch::Sender::closed

use std::future;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

/// Leave to send a command; clones are the same leave.
#[derive(Debug, Clone)]
pub struct Leave(Option<watch::Receiver<Option<Withdrawn>>>);

/// Why leave was withdrawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Withdrawn {
    /// As a code.
    pub reason: &'static str,
    /// In words.
    pub message: String,
    /// What a person may do about it.
    pub hint: Option<String>,
}

impl Leave {
    /// Leave that nobody withdraws.
    pub fn unconditional() -> Self {
        Self(None)
    }

    /// Leave until the other end says otherwise.
    pub fn until(withdrawn: watch::Receiver<Option<Withdrawn>>) -> Self {
        Self(Some(withdrawn))
    }

    /// Why it has been withdrawn, if it has.
    pub(crate) fn withdrawn(&self) -> Option<Withdrawn> {
        self.0.as_ref()?.borrow().clone()
    }

    /// True once it has been withdrawn.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|withdrawn| withdrawn.borrow().is_some())
    }
}

/// Waits until one of these is withdrawn: for ever if none ever is, be it
/// because nobody is left to do so. Holds them meanwhile.
pub(crate) async fn any_withdrawn(leaves: impl Iterator<Item = &Leave>) {
    let mut given: Vec<_> = leaves.filter_map(|leave| leave.0.as_ref()).collect();
    // What waits is mostly by one leave.
    given.dedup_by(|one, other| one.same_channel(other));
    let mut withdrawals: FuturesUnordered<_> = given.into_iter().map(withdrawal).collect();
    if withdrawals.next().await.is_none() {
        future::pending::<()>().await;
    }
}

async fn withdrawal(of: &watch::Receiver<Option<Withdrawn>>) {
    if of.clone().wait_for(Option::is_some).await.is_err() {
        future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests;
