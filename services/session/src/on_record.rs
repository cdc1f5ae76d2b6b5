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
//!   fate, which the ledger learns from the runner's journal at a later start.
//! - refused as a duplicate: nothing was sent, and the entry that is there is
//!   not touched.
//! - refused otherwise: nothing was sent. It may have been committed though its
//!   acknowledgement was lost, so it is ended as not sent if it is there.
//!
//! A read has no intent, and is served even if it cannot be put on record.

use std::sync::Arc;
use std::task::{Context, Poll};

use fleetgate_runner::{Clearance, Refused};
use futures_util::future::{self, BoxFuture, FutureExt, TryFutureExt};
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::dispatch::{Answer, Dispatch, Unanswered};
use crate::failure::{Failed, Failure};
use crate::job::{Receipt, Success};
use crate::record::{Record, RecordError, RecordErrorKind};
use crate::recorder::{Ended, Recorder};
use crate::settle::settle;
use crate::turn::Turn;

/// Makes [`OnRecord`]s.
#[derive(Debug, Clone)]
pub(crate) struct OnRecordLayer<R> {
    recorder: Recorder<R>,
}

impl<R> OnRecordLayer<R> {
    /// Entries by this recorder.
    pub(crate) fn new(recorder: Recorder<R>) -> Self {
        Self { recorder }
    }
}

impl<S, R: Clone> Layer<S> for OnRecordLayer<R> {
    type Service = OnRecord<S, R>;

    fn layer(&self, inner: S) -> OnRecord<S, R> {
        OnRecord {
            inner,
            recorder: self.recorder.clone(),
        }
    }
}

/// Puts intents and fates on record. Always ready: the inner service's
/// readiness is awaited beside the intent.
#[derive(Debug, Clone)]
pub(crate) struct OnRecord<S, R> {
    inner: S,
    recorder: Recorder<R>,
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
        let recorder = self.recorder.clone();
        if turn.command.is_mutation() {
            Box::pin(mutate(inner, recorder, turn))
        } else {
            Box::pin(read(inner, recorder, turn))
        }
    }
}

async fn mutate<S, R>(inner: S, recorder: Recorder<R>, turn: Turn) -> Result<Success, Failed>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered>,
    R: Service<Record, Response = (), Error = RecordError> + Clone + Send + 'static,
    R::Future: Send,
{
    let intent = recorder.clone().intend(turn.clone()).boxed().shared();
    let refusal = |error| Refused(Arc::new(error));
    let clearance = Clearance::when(intent.clone().map_err(refusal));
    let execution = execute(inner, &turn, clearance);
    // Both to their ends: whether there is an intent to conclude must be known
    // even if the connection failed first.
    let (outcome, intent) = future::join(execution, intent).await;
    let ended = Ended::of(turn.command, turn.caller.as_deref(), &outcome);
    let Err(error) = intent else {
        return match recorder.conclude(ended).await {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(%error, "a mutation's fate is not on record");
                Err(Failed {
                    receipt: into_receipt(outcome),
                    failure: Failure::Record(error),
                })
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

async fn read<S, R>(inner: S, recorder: Recorder<R>, turn: Turn) -> Result<Success, Failed>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered>,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    let outcome = execute(inner, &turn, Clearance::granted()).await;
    recorder
        .note(Ended::of(turn.command, turn.caller.as_deref(), &outcome))
        .await;
    outcome
}

async fn execute<S>(inner: S, turn: &Turn, clearance: Clearance) -> Result<Success, Failed>
where
    S: Service<Dispatch, Response = Answer, Error = Unanswered>,
{
    let begin = Instant::now();
    let answer = inner.oneshot(Dispatch::of(turn, clearance)).await;
    settle(turn, answer, begin.elapsed())
}

fn into_receipt(outcome: Result<Success, Failed>) -> Receipt {
    match outcome {
        Ok(Success { receipt, .. }) | Err(Failed { receipt, .. }) => receipt,
    }
}

#[cfg(test)]
mod tests;
