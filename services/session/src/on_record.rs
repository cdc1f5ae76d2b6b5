//! Nothing of a mutation is sent before its intent is on record, and nobody
//! hears of its fate before that is.
//!
//! ```text
//!               ┌─ intent ──────────┐ leave to write the first byte
//!   mutation ───┤                   ▼
//!               └─ connect ──── POST ──── verdict ──── fate ──── reply
//!
//!   read ───────── connect ──── POST ──── verdict ──── note ──── reply
//! ```
//!
//! The intent is the [`Clearance`] of the exchange, made once for all attempts
//! and driven from here, so that it is committed while the connection is being
//! made. Its own outcome decides what follows:
//!
//! - on record: the fate is put on record, for as long as patience lasts. If it
//!   cannot be, the caller gets [`Failure::Record`] and a receipt with the true
//!   fate, which the resolver goes on offering to the ledger. It also looks into
//!   every fate that is unknown, and such a mutation keeps the lane shut while the
//!   runner may still be executing it ([`hold`](crate::hold)).
//! - refused as a duplicate: nothing was sent, and the entry that is there is
//!   not touched.
//! - refused otherwise: nothing was sent. It may have been committed though its
//!   acknowledgement was lost, so it is ended as not sent if it is there.
//!
//! Before the intent comes the last look at the command's leave, which may have
//! been withdrawn since its turn came: while the viewport was read for it, for
//! instance. From the intent on it is in flight, and goes on.
//!
//! A read has no intent, and is served even if it cannot be put on record.
//!
//! Every verdict passes here, so this is where it is heard how the runner fares.

use std::sync::Arc;
use std::task::{Context, Poll};

use fleetgate_runner::{Budgets, Clearance, Effect, Fate, JournalState, Refused};
use futures_util::future::{self, BoxFuture, FutureExt, TryFutureExt};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::dispatch::{Answer, Dispatch, Unanswered};
use crate::docket::Docket;
use crate::doubt::Doubt;
use crate::failure::{Failed, Failure};
use crate::gauge::Gauge;
use crate::hold::{Held, Raised};
use crate::job::{Receipt, Success};
use crate::record::{Record, RecordError, RecordErrorKind, Resolution, Subject};
use crate::recorder::{Ended, Recorder};
use crate::settle::settle;
use crate::turn::Turn;

/// Makes [`OnRecord`]s.
#[derive(Debug, Clone)]
pub(crate) struct OnRecordLayer<R> {
    desk: Desk<R>,
}

/// Where word of a command goes.
#[derive(Debug, Clone)]
pub(crate) struct Desk<R> {
    /// On record.
    pub(crate) recorder: Recorder<R>,
    /// What it tells of the runner.
    pub(crate) gauge: Gauge,
    /// What remains to be found out.
    pub(crate) docket: Docket,
    /// How long what was sent may go on.
    pub(crate) budgets: Budgets,
}

impl<R> OnRecordLayer<R> {
    /// Word goes to this desk.
    pub(crate) fn new(desk: Desk<R>) -> Self {
        Self { desk }
    }
}

impl<S, R: Clone> Layer<S> for OnRecordLayer<R> {
    type Service = OnRecord<S, R>;

    fn layer(&self, inner: S) -> OnRecord<S, R> {
        OnRecord {
            inner,
            desk: self.desk.clone(),
        }
    }
}

/// Puts intents and fates on record. Always ready: the inner service's
/// readiness is awaited beside the intent.
#[derive(Debug, Clone)]
pub(crate) struct OnRecord<S, R> {
    inner: S,
    desk: Desk<R>,
}

impl<S, R> Service<Turn> for OnRecord<S, R>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered> + Clone + Send + 'static,
    S::Future: Send,
    R: Service<Record, Response = (), Error = RecordError> + Clone + Send + 'static,
    R::Future: Send,
{
    type Response = Success;
    type Error = Failed;
    type Future = BoxFuture<'static, Result<Success, Failed>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, turn: Turn) -> Self::Future {
        let inner = self.inner.clone();
        let desk = self.desk.clone();
        if turn.command.is_mutation() {
            Box::pin(mutate(inner, desk, turn))
        } else {
            Box::pin(read(inner, desk, turn))
        }
    }
}

async fn mutate<S, R>(inner: S, desk: Desk<R>, turn: Turn) -> Result<Success, Failed>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered>,
    R: Service<Record, Response = (), Error = RecordError> + Clone + Send + 'static,
    R::Future: Send,
{
    let Desk {
        recorder,
        gauge,
        docket,
        budgets,
    } = desk;
    if let Some(withdrawn) = turn.leave.withdrawn() {
        let failed = Failed {
            receipt: turn.receipt(Fate::NotSent, Effect::None),
            failure: Failure::Withdrawn(withdrawn),
        };
        let ended = Ended::failed(Subject::Resolved(turn.command), turn.origin, &failed);
        recorder.note(ended).await;
        return Err(failed);
    }
    let (begin, ids_before) = (Instant::now(), docket.count_id());
    let intent = recorder.clone().intend(turn.clone()).boxed().shared();
    let refusal = |error| Refused(Arc::new(error));
    let clearance = Clearance::when(intent.clone().map_err(refusal));
    let execution = execute(inner, &turn, clearance, &gauge);
    // Both to their ends: whether there is an intent to conclude must be known
    // even if the connection failed first.
    let (outcome, intent) = future::join(execution, intent).await;
    let ended = Ended::of(turn.command, turn.origin, &outcome);
    let Err(error) = intent else {
        let concluded = recorder.clone().conclude(ended).await;
        let raise = |doubt: Doubt| {
            let sent = turn.tally.sent_at().filter(|_| may_go_on(&doubt));
            let window = budgets.budget(doubt.kind().class()).window;
            let closes = sent.map(|sent| sent + window);
            let raised = match closes.filter(|closes| *closes > Instant::now()) {
                Some(closes) => Raised::Held(Held::sent(doubt, closes, &gauge)),
                None => Raised::Over(doubt),
            };
            docket.raise(raised);
        };
        let doubt = |Failed { receipt, failure }, found: Option<Box<Resolution>>| Doubt {
            has_fate: found.is_none(),
            receipt,
            failure,
            sent: begin.into(),
            declined: turn.tally.is_declined(),
            ids_before,
            found,
        };
        return match (concluded, outcome) {
            (Ok(()), Err(failed)) if failed.receipt.fate == Fate::Unknown => {
                raise(doubt(failed.clone(), None));
                Err(failed)
            }
            (Ok(()), outcome) => outcome,
            (Err(error), outcome) => {
                tracing::error!(%error, "a mutation's fate is not on record");
                let found = unrecorded(&recorder, &outcome);
                let is_refused = error.kind == RecordErrorKind::Duplicate;
                let told = Failed {
                    receipt: into_receipt(outcome.clone()),
                    failure: Failure::Record(error),
                };
                if !is_refused {
                    let known = outcome.err().unwrap_or_else(|| told.clone());
                    raise(doubt(known, Some(Box::new(found))));
                }
                Err(told)
            }
        };
    };
    let failure = match error.kind {
        RecordErrorKind::Duplicate => Failure::Duplicate,
        RecordErrorKind::Unavailable => {
            recorder.conclude_doubtful(ended).await;
            Failure::Record(error)
        }
    };
    Err(Failed {
        receipt: into_receipt(outcome),
        failure,
    })
}

/// True if the runner may still be executing it: its fate is unknown, and the
/// journal was not heard to say that the runner does not have it. (`failed` is
/// unknown only as the verdict on an earlier attempt.)
fn may_go_on(doubt: &Doubt) -> bool {
    let is_unheard_of = matches!(
        &doubt.failure,
        Failure::Unknown {
            journal: Some(JournalState::NotAccepted | JournalState::Failed),
            ..
        }
    );
    doubt.receipt.fate == Fate::Unknown && !is_unheard_of
}

/// The entry for a fate that is not on record, to be offered again.
fn unrecorded<R>(recorder: &Recorder<R>, outcome: &Result<Success, Failed>) -> Resolution
where
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    let (Ok(Success { receipt, .. }) | Err(Failed { receipt, .. })) = outcome;
    let is_known = receipt.fate != Fate::Unknown;
    let why = "the ledger did not take it when it became known";
    recorder.resolution(outcome, why, is_known)
}

async fn read<S, R>(inner: S, desk: Desk<R>, turn: Turn) -> Result<Success, Failed>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered>,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    if !turn.command.kind().bypasses_queue() {
        desk.docket.count_id();
    }
    let outcome = execute(inner, &turn, Clearance::granted(), &desk.gauge).await;
    desk.recorder
        .note(Ended::of(turn.command, turn.origin, &outcome))
        .await;
    outcome
}

async fn execute<S>(
    inner: S,
    turn: &Turn,
    clearance: Clearance,
    gauge: &Gauge,
) -> Result<Success, Failed>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered>,
{
    let begin = Instant::now();
    let answer = inner.oneshot(Dispatch::of(turn, clearance)).await;
    let outcome = settle(turn, answer, begin.elapsed());
    gauge.hear_outcome(&outcome);
    outcome.map_err(|Failed { receipt, failure }| Failed {
        receipt,
        failure: gauge.explain(failure),
    })
}

fn into_receipt(outcome: Result<Success, Failed>) -> Receipt {
    match outcome {
        Ok(Success { receipt, .. }) | Err(Failed { receipt, .. }) => receipt,
    }
}

#[cfg(test)]
mod tests;
