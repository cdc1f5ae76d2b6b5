//! A place given as a fraction is looked up in the viewport of this moment.
//!
//! Keyboard and rotation change the viewport, so it is read in the same turn as
//! the command that needs it, right before: as a read of its own, with an id
//! and an entry of its own. It may bring the app to the front, which the
//! command's receipt reports as well.
//!
//! If it cannot be read, the command fails as not sent, with the viewport's
//! failure as its reason; nor is the command sent if nobody waits for it any
//! more by then. Neither has had an intent, so either is put on record here.

use std::task::{Context, Poll};

use fleetgate_runner::{
    Command, CommandId, CommandKind, Effect, Fate, InvalidReply, Point, Reply, Viewport,
};
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

use crate::failure::{Failed, Failure};
use crate::job::{Receipt, Success};
use crate::record::{Record, RecordError, Subject};
use crate::recorder::{Ended, Recorder};
use crate::tally::Tally;
use crate::turn::Turn;

/// Makes [`Aim`]s.
#[derive(Debug, Clone)]
pub(crate) struct AimLayer<R> {
    recorder: Recorder<R>,
}

impl<R> AimLayer<R> {
    /// Entries by this recorder.
    pub(crate) fn new(recorder: Recorder<R>) -> Self {
        Self { recorder }
    }
}

impl<S, R: Clone> Layer<S> for AimLayer<R> {
    type Service = Aim<S, R>;

    fn layer(&self, inner: S) -> Aim<S, R> {
        Aim {
            inner,
            recorder: self.recorder.clone(),
        }
    }
}

/// Resolves points. Always ready: the inner service is called once or twice,
/// each time when it is ready.
#[derive(Debug, Clone)]
pub(crate) struct Aim<S, R> {
    inner: S,
    recorder: Recorder<R>,
}

impl<S, R> Service<Turn<Point>> for Aim<S, R>
where
    S: Service<Turn, Response = Success, Error = Failed> + Clone + Send + 'static,
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

    fn call(&mut self, turn: Turn<Point>) -> Self::Future {
        let inner = self.inner.clone();
        let recorder = self.recorder.clone();
        Box::pin(async move {
            let sight = match turn.command.viewport_first() {
                None => Sight {
                    reactivated: false,
                    viewport: Ok(None),
                },
                Some(read) => look(inner.clone(), &turn, read).await,
            };
            let reactivated = sight.reactivated;
            match sight.aim(&turn) {
                Ok(command) => {
                    let turn = Turn {
                        fronted: reactivated,
                        ..turn.with(command)
                    };
                    inner.oneshot(turn).await
                }
                Err(failure) => {
                    let receipt = turn.receipt(Fate::NotSent, Effect::None);
                    let failed = Failed {
                        receipt: Receipt {
                            reactivated,
                            ..receipt
                        },
                        failure,
                    };
                    let subject = Subject::from(turn.command);
                    recorder
                        .note(Ended::failed(subject, turn.origin, &failed))
                        .await;
                    Err(failed)
                }
            }
        })
    }
}

/// What is known of the viewport.
#[derive(Debug)]
struct Sight {
    reactivated: bool,
    /// None where none was needed.
    viewport: Result<Option<Viewport>, Failure>,
}

impl Sight {
    /// The turn's command as it can be sent.
    fn aim(self, turn: &Turn<Point>) -> Result<Command, Failure> {
        let viewport = self.viewport?;
        // Somebody who has been told that the deadline passed is not to be
        // surprised by a tap.
        if viewport.is_some() && !turn.patience.lasts_past(Instant::now()) {
            return Err(Failure::DeadlineExceeded);
        }
        turn.command
            .clone()
            .resolve(viewport.as_ref())
            .ok_or_else(|| unusable("no place in it has finite coordinates"))
    }
}

/// Reads the viewport, in the same turn but as a command of its own.
async fn look<S>(inner: S, turn: &Turn<Point>, command: Command) -> Sight
where
    S: Service<Turn, Response = Success, Error = Failed>,
{
    let read = Turn {
        command_id: CommandId::mint(),
        tally: Tally::default(),
        ..turn.clone().with(command)
    };
    let (receipt, viewport) = match inner.oneshot(read).await {
        Ok(Success { receipt, reply }) => (receipt, frame(&reply)),
        Err(Failed { receipt, failure }) => (receipt, Err(Failure::Viewport(Box::new(failure)))),
    };
    Sight {
        reactivated: receipt.reactivated,
        viewport: viewport.map(Some),
    }
}

fn frame(reply: &Reply) -> Result<Viewport, Failure> {
    match reply {
        Reply::Viewport(viewport) => Ok(*viewport),
        Reply::Done(_)
        | Reply::Snapshot(_)
        | Reply::Screenshot(_)
        | Reply::Status(_)
        | Reply::CommandStatus(_) => Err(unusable("it is the reply to another command")),
    }
}

fn unusable(detail: &str) -> Failure {
    let (kind, detail) = (CommandKind::Viewport, detail.to_owned());
    Failure::Viewport(Box::new(Failure::Reply(InvalidReply::Data {
        kind,
        detail,
    })))
}

#[cfg(test)]
mod tests;
