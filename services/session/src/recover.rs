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
//!         ├─ accepted, started ─────────────────────┴──────► Unknown
//!         ├─ completed, reply retained ────────────────────► Recovered
//!         ├─ completed, reply not retained ────────────────► ResultLost
//!         ├─ failed ───────────────────────────────────────► Recovered
//!         │    └─ RUNNER_BUSY after an earlier RUNNER_BUSY ► Unknown
//!         ├─ notAccepted, a word from a newer runner ──────► Unknown
//!         └─ no answer ────────────────────────────────────► Unknown
//! ```
//!
//! The question is a read of its own, in the short recovery window, resent like
//! any read; the job's deadline does not cut it short. A command that the
//! journal shows under way is asked for until its own window, measured from its
//! send, has closed, and once at least. `Unknown` keeps the failure that lost
//! the reply as its cause.
//!
//! What the journal cannot tell:
//!
//! - `notAccepted` may mean never seen or evicted since, so it proves nothing.
//! - Of a failed command it need not hold `reactivated` (and a failed one has
//!   no `warning`): they are taken from the retained envelope where there is
//!   one, and are otherwise unknown and reported as absent.
//! - An entry has no attempt number. The runner overwrites it when an id comes
//!   again, and after `RUNNER_BUSY` the same id does come again: if the reply to
//!   that later attempt is lost and the journal says `failed`, `RUNNER_BUSY`, it
//!   may be the old verdict, with the later request still in some buffer on its
//!   way. Calling that busy would be leave to send a third request, and the
//!   phone could run both. So it is `Unknown`. Any other entry of that id can
//!   only be the later attempt's, and so can any entry of an id's first
//!   attempt, since an id is used for one command only.

use std::task::{Context, Poll};
use std::time::Duration;

use fleetgate_runner::{
    Budgets, Clearance, Command, CommandId, CommandKind, DeviceCommand, Disposition, Envelope,
    InvalidReply, JournalEntry, JournalState, Reply, Request, RunnerCode, RunnerError, SendError,
};
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::backoff::Backoff;
use crate::dispatch::{Allowance, Answer, Dispatch, Unanswered};
use crate::tally::Tally;
use crate::turn::Patience;

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

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
            let lost = match (id, cause.disposition()) {
                (Some(id), Disposition::Unknown) if kind.is_mutation() => Lost { id, kind, cause },
                (_, Disposition::Executed) if kind.is_mutation() => return Ok(Answer::ResultLost),
                (_, Disposition::NotExecuted | Disposition::Executed | Disposition::Unknown) => {
                    return Err(Unanswered::Send(cause));
                }
            };
            tracing::warn!(cause = %lost.cause, "the reply is lost, asking the runner's journal");
            recover(probe, lost, budgets, window_closes, tally.is_declined()).await
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
    probe: S,
    lost: Lost,
    budgets: Budgets,
    window_closes: Instant,
    declined_before: bool,
) -> Result<Answer, Unanswered>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
{
    let mut backoff = Backoff::new(budgets.of(FIRST_PAUSE), budgets.of(LONGEST_PAUSE));
    loop {
        let Some(entry) = ask(probe.clone(), &lost.id).await else {
            return lost.unknown(None);
        };
        match entry.state {
            Some(JournalState::Completed) => return Ok(completed(lost.kind, &entry)),
            Some(JournalState::Failed) => {
                let verdict = Answer::Recovered(failed(lost.kind, entry));
                if declined_before && verdict.is_retryable() {
                    return lost.unknown(Some(JournalState::Failed));
                }
                return Ok(verdict);
            }
            Some(state @ (JournalState::Accepted | JournalState::Started)) => {
                let now = Instant::now();
                if now >= window_closes {
                    return lost.unknown(Some(state));
                }
                tokio::time::sleep_until(window_closes.min(now + backoff.pause())).await;
            }
            state @ (Some(JournalState::NotAccepted) | None) => return lost.unknown(state),
        }
    }
}

/// One look into the journal; `None` if there is no usable answer about `id`.
async fn ask<S>(probe: S, id: &CommandId) -> Option<JournalEntry>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError>,
{
    let command = Command::Device(DeviceCommand::CommandStatus { of: id.clone() });
    let question = Dispatch {
        request: Request {
            command_id: None,
            command,
        },
        clearance: Clearance::granted(),
        allowance: Allowance::Recovery,
        patience: Patience::until(None),
        tally: Tally::default(),
    };
    match probe.oneshot(question).await {
        Ok(Envelope {
            result: Ok(Reply::CommandStatus(entry)),
            ..
        }) if entry.command_id == *id => Some(entry),
        Ok(Envelope { result: Ok(_), .. }) => {
            tracing::warn!("the journal answered about something else");
            None
        }
        Ok(Envelope {
            result: Err(error), ..
        }) => {
            tracing::warn!(%error, "the journal was refused");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "the journal could not be asked");
            None
        }
    }
}

/// The retained envelope, if there is one that can be read.
fn retained(kind: CommandKind, entry: &JournalEntry) -> Option<Envelope> {
    let json = entry.response_json.as_ref()?;
    Envelope::decode(kind, json.as_bytes())
        .inspect_err(
            |error: &InvalidReply| tracing::warn!(%error, "the retained reply is unusable"),
        )
        .ok()
}

fn completed(kind: CommandKind, entry: &JournalEntry) -> Answer {
    retained(kind, entry).map_or(Answer::ResultLost, Answer::Recovered)
}

/// The verdict against the command: the retained envelope if it is one, since
/// it alone says whether the app was brought to the front, or else the entry's.
fn failed(kind: CommandKind, entry: JournalEntry) -> Envelope {
    match retained(kind, &entry) {
        Some(envelope) if envelope.result.is_err() => envelope,
        Some(_) | None => {
            let error = entry.error.unwrap_or_else(|| RunnerError {
                code: RunnerCode::CommandFailed,
                message: "the runner's journal gives no reason".to_owned(),
                hint: None,
            });
            Envelope {
                reactivated: false,
                warning: None,
                result: Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
