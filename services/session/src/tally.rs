//! What has been tried for one command so far, and what that proves.
//!
//! An attempt can end without a word: dropped at a shutdown, or by a panic.
//! The tally outlives it and can still tell what its end proves.
//!
//! Invariant: [`Tally::without_answer`] says that nothing was sent only if no attempt may
//! have written its first byte.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fleetgate_runner::{Effect, Fate, Sent};
use tokio::time::Instant;

/// The attempts at one command; clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<Attempts>>);

#[derive(Debug, Default)]
struct Attempts {
    count: u32,
    /// When the first byte of the latest that was sent was written, or later.
    sent: Option<Instant>,
    /// The latest attempt, until the runner declines it.
    open: Option<Sent>,
    /// An attempt before the latest was sent and had no answer.
    exposed: bool,
    /// The runner has declined an attempt.
    declined: bool,
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Attempts> {
        // Every update is one assignment after another without a panic between
        // them, so a poisoned tally is still a right one.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new attempt begins; the mark that it will be sent with.
    pub(crate) fn attempt(&self) -> Sent {
        let mut attempts = self.lock();
        let sent = Sent::default();
        attempts.count = attempts.count.saturating_add(1);
        if attempts
            .open
            .replace(sent.clone())
            .is_some_and(|before| before.is_marked())
        {
            attempts.exposed = true;
        }
        sent
    }

    /// The latest attempt was answered `RUNNER_BUSY`: it is proved not to have
    /// run.
    pub(crate) fn decline(&self) {
        let mut attempts = self.lock();
        attempts.open = None;
        attempts.declined = true;
    }

    /// True once the runner has declined an attempt.
    pub(crate) fn is_declined(&self) -> bool {
        self.lock().declined
    }

    /// How many attempts there were.
    pub(crate) fn count(&self) -> u32 {
        self.lock().count
    }

    /// An attempt was seen to have written its first byte just now.
    pub(crate) fn see_sent(&self) {
        self.lock().sent = Some(Instant::now());
    }

    /// When the latest attempt that was sent was seen to be, which is not before
    /// its first byte.
    pub(crate) fn sent_at(&self) -> Option<Instant> {
        self.lock().sent
    }

    /// What is proved if no attempt gets any answer from now on.
    pub(crate) fn without_answer(&self) -> (Fate, Effect) {
        let attempts = self.lock();
        if attempts.exposed || attempts.open.as_ref().is_some_and(Sent::is_marked) {
            (Fate::Unknown, Effect::Unknown)
        } else if attempts.declined {
            (Fate::Failed, Effect::None)
        } else {
            (Fate::NotSent, Effect::None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_tried_or_nothing_written_proves_that_nothing_was_sent() {
        let tally = Tally::default();
        assert_eq!(tally.without_answer(), (Fate::NotSent, Effect::None));
        let _unmarked = tally.attempt();
        assert_eq!(tally.without_answer(), (Fate::NotSent, Effect::None));
        assert_eq!(tally.count(), 1);
    }

    #[test]
    fn a_first_byte_without_an_answer_proves_nothing_whatever_follows() {
        let tally = Tally::default();
        tally.attempt().mark();
        assert_eq!(tally.without_answer(), (Fate::Unknown, Effect::Unknown));
        let _unmarked = tally.attempt();
        assert_eq!(tally.without_answer(), (Fate::Unknown, Effect::Unknown));
    }

    #[test]
    fn a_declined_attempt_is_a_verdict_until_the_next_one_is_sent() {
        let tally = Tally::default();
        tally.attempt().mark();
        tally.decline();
        assert_eq!(tally.without_answer(), (Fate::Failed, Effect::None));
        let next = tally.attempt();
        assert_eq!(tally.without_answer(), (Fate::Failed, Effect::None));
        next.mark();
        assert_eq!(tally.without_answer(), (Fate::Unknown, Effect::Unknown));
    }
}
