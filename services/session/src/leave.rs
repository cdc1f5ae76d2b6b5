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
//! Who is refused leave may still wait for a command of the same id that
//! somebody else was let in with ([`Leave::to_join`]): nothing is ever sent by
//! that.
//!
//! [`Failure::Withdrawn`]: crate::Failure::Withdrawn
//! [`Sender::closed`]: tokio::sync::watch::Sender::closed

use std::future;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

/// Leave to send a command; clones are the same leave.
#[derive(Debug, Clone)]
pub struct Leave(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Unconditional,
    Until(watch::Receiver<Option<Withdrawn>>),
    ToJoin,
}

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
        Self(Kind::Unconditional)
    }

    /// Leave until the other end says otherwise.
    pub fn until(withdrawn: watch::Receiver<Option<Withdrawn>>) -> Self {
        Self(Kind::Until(withdrawn))
    }

    /// Leave to wait for a command that is under way, and none to send one: where
    /// there is none of the same id, that is what is answered
    /// ([`Failure::NotUnderWay`](crate::Failure::NotUnderWay)).
    pub fn to_join() -> Self {
        Self(Kind::ToJoin)
    }

    /// Whether nothing is ever sent by it.
    pub(crate) fn is_to_join(&self) -> bool {
        matches!(self.0, Kind::ToJoin)
    }

    fn giver(&self) -> Option<&watch::Receiver<Option<Withdrawn>>> {
        match &self.0 {
            Kind::Until(withdrawn) => Some(withdrawn),
            Kind::Unconditional | Kind::ToJoin => None,
        }
    }

    /// Why it has been withdrawn, if it has.
    pub(crate) fn withdrawn(&self) -> Option<Withdrawn> {
        self.giver()?.borrow().clone()
    }

    /// True once it has been withdrawn.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.giver()
            .is_some_and(|withdrawn| withdrawn.borrow().is_some())
    }
}

/// Waits until one of these is withdrawn: for ever if none ever is, be it
/// because nobody is left to do so. Holds them meanwhile.
pub(crate) async fn any_withdrawn(leaves: impl Iterator<Item = &Leave>) {
    let mut given: Vec<_> = leaves.filter_map(Leave::giver).collect();
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
