//! The right to send a command, which may be withdrawn while it waits.
//!
//! Whoever gives it keeps the sender. What is withdrawn before the command's
//! intent ends as not sent ([`Failure::Withdrawn`]); what is in flight by then
//! goes on to its verdict. A command keeps its leave until it has ended,
//! whether anybody waits for it or not, so that the giver, having withdrawn it,
//! knows by [`Sender::closed`] when nothing is under way by it any more.
//!
//! Invariant: a giver that is gone has withdrawn nothing.
//!
//! [`Failure::Withdrawn`]: crate::Failure::Withdrawn
//! [`Sender::closed`]: tokio::sync::watch::Sender::closed

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

    /// Waits until it is withdrawn: for ever if it never is, be it because
    /// nobody is left to do so. Holds the leave meanwhile.
    pub(crate) async fn until_withdrawn(&self) {
        if let Some(mut withdrawn) = self.0.clone()
            && withdrawn.wait_for(Option::is_some).await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}
