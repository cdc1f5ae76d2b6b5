//! A mutation whose reply was lost is asked for, never sent again.
//!
//! ```text
//!   send ── reply ─────────────────────────────────────────► Replied
//!    │
//!    ├─ a read, or provably not executed ──────────────────► the error
//!    ├─ executed, its data unusable ───────────────────────► ResultLost
//!    │
//!    └─ fate unknown
//!         │
//!         ▼
//!        ASK: status + statusCommandId ◄── pause ───┐
//!         │                                         │ window still open
//!         ├─ accepted, started, no usable answer ───┴──────► Unknown
//!         ├─ completed, reply retained ────────────────────► Recovered
//!         ├─ completed, reply not retained ────────────────► ResultLost
//!         ├─ failed ───────────────────────────────────────► Recovered
//!         │    └─ RUNNER_BUSY after an earlier RUNNER_BUSY ► Unknown
//!         ├─ notAccepted, a word from a newer runner ──────► Unknown
//!         └─ nobody listens any more, for some seconds ────► Unknown
//! ```
//!
//! The job's deadline does not cut the questions short. They are repeated until
//! the command's own window, measured from its send, has closed, and asked once
//! at least: while the command is under way, and also while there is no answer,
//! since whatever lost the reply may take a while to pass. A runner that has
//! restarted meanwhile answers `notAccepted`, which ends the questions at once;
//! one that is over, so that the phone refuses connections to its port, took
//! its journal with it, and does not keep the caller for the rest of the window.
//! It may only seem so, as while a phone is plugged in again: the lane stays
//! shut for other mutations ([`hold`](crate::hold)).
//! What an entry proves is [`Testimony`]'s business; `Unknown` keeps the failure
//! that lost the reply as its cause, and the resolver looks into it further.

use std::task::{Context, Poll};
use std::time::Duration;

use fleetgate_runner::{
    Budgets, CommandId, CommandKind, Disposition, Envelope, JournalState, SendError,
};
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::backoff::Backoff;
use crate::dispatch::{Answer, Dispatch, Unanswered};
use crate::inquiry::{Inquiry, NoAnswer};
use crate::testimony::Testimony;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long the phone must say that nobody listens before that is believed.
const GONE: Duration = Duration::from_secs(3);

/// Makes [`RecoverLost`]s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecoverLostLayer {
    budgets: Budgets,
}

impl RecoverLostLayer {
    /// Windows and pauses under this clock.
    pub(crate) fn new(budgets: Budgets) -> Self {
        Self { budgets }
    }
}

impl<S> Layer<S> for RecoverLostLayer {
    type Service = RecoverLost<S>;

    fn layer(&self, inner: S) -> RecoverLost<S> {
        RecoverLost {
            inner,
            budgets: self.budgets,
        }
    }
}

/// Answers with what the journal knows when a mutation's reply is lost.
#[derive(Debug, Clone)]
pub(crate) struct RecoverLost<S> {
    inner: S,
    budgets: Budgets,
}

impl<S> Service<Dispatch> for RecoverLost<S>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Answer;
    type Error = Unanswered;
    type Future = BoxFuture<'static, Result<Answer, Unanswered>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Unanswered>> {
        self.inner.poll_ready(cx).map_err(Unanswered::Send)
    }

    fn call(&mut self, dispatch: Dispatch) -> Self::Future {
        let probe = self.inner.clone();
        // The ready one takes the call, its clone the questions.
        let mut inner = std::mem::replace(&mut self.inner, probe.clone());
        let budgets = self.budgets;
        Box::pin(async move {
            let kind = dispatch.request.command.kind();
            let id = dispatch.request.command_id.clone();
            let tally = dispatch.tally.clone();
            let window_closes = Instant::now() + budgets.budget(kind.class()).window;
            let cause = match inner.call(dispatch).await {
                Ok(envelope) => return Ok(Answer::Replied(envelope)),
                Err(error) => error,
            };
            let inquiry = Inquiry::new(probe);
            let lost = match (id, cause.disposition()) {
                (Some(id), Disposition::Unknown) if kind.is_mutation() => Lost { id, kind, cause },
                (_, Disposition::Executed) if kind.is_mutation() => return Ok(Answer::ResultLost),
                (_, Disposition::NotExecuted | Disposition::Executed | Disposition::Unknown) => {
                    return Err(Unanswered::Send(cause));
                }
            };
            tracing::warn!(cause = %lost.cause, "the reply is lost, asking the runner's journal");
            let declined_before = tally.is_declined();
            recover(inquiry, lost, budgets, window_closes, declined_before).await
        })
    }
}

/// A mutation without a reply.
#[derive(Debug)]
struct Lost {
    id: CommandId,
    kind: CommandKind,
    cause: SendError,
}

impl Lost {
    fn unknown(self, journal: Option<JournalState>) -> Result<Answer, Unanswered> {
        Err(Unanswered::Unknown {
            cause: self.cause,
            journal,
        })
    }
}

async fn recover<S>(
    inquiry: Inquiry<S>,
    lost: Lost,
    budgets: Budgets,
    window_closes: Instant,
    declined_before: bool,
) -> Result<Answer, Unanswered>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
{
    let mut backoff = Backoff::new(budgets.of(FIRST_PAUSE), budgets.of(LONGEST_PAUSE));
    let mut last_word = None;
    let mut gone_since = None;
    loop {
        let entry = inquiry.entry(&lost.id).await;
        let now = Instant::now();
        let is_gone = entry == Err(NoAnswer::Gone);
        gone_since = is_gone.then(|| gone_since.unwrap_or(now));
        match entry.map(|entry| Testimony::of(lost.kind, entry, declined_before)) {
            Ok(Testimony::Ended(answer)) => return Ok(answer),
            Ok(Testimony::Nothing(state)) => return lost.unknown(state),
            Ok(Testimony::UnderWay(state)) => last_word = Some(state),
            Err(NoAnswer::Gone | NoAnswer::Silence) => {}
        }
        if gone_since.is_some_and(|since| now - since >= budgets.of(GONE)) {
            return lost.unknown(last_word);
        }
        if now >= window_closes {
            return lost.unknown(last_word);
        }
        tokio::time::sleep_until(window_closes.min(now + backoff.pause())).await;
    }
}

#[cfg(test)]
mod tests;
