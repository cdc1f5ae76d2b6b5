//! The recorder as the session uses it: bounded in time, for one device.
//!
//! An entry that cannot be made within the session's patience is given up, and
//! the caller of these methods decides what that means. Only a mutation's fate
//! is tried more than once: its intent is on record, and would be left without
//! an end.

use std::sync::Arc;
use std::time::Duration;

use fleetgate_runner::{Command, Reply, Udid};
use futures_util::FutureExt;
use tokio::time::Instant;
use tower::{Service, ServiceExt};

use crate::backoff::Backoff;
use crate::failure::{Failed, Failure};
use crate::job::{Receipt, Success};
use crate::origin::Origin;
use crate::record::{
    Conclusion, Intent, Record, RecordError, RecordErrorKind, Resolution, Subject,
};
use crate::turn::Turn;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// One device's way to the recorder.
#[derive(Debug, Clone)]
pub(crate) struct Recorder<R> {
    inner: R,
    device: Udid,
    patience: Duration,
}

/// The recorder did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoAnswer(Duration);

/// A command that has ended.
#[derive(Debug)]
pub(crate) struct Ended<'a> {
    subject: Subject,
    origin: Origin,
    receipt: &'a Receipt,
    outcome: Result<Option<&'a Reply>, &'a Failure>,
}

impl<'a> Ended<'a> {
    /// A resolved command's end.
    pub(crate) fn of(
        command: Command,
        origin: Origin,
        outcome: &'a Result<Success, Failed>,
    ) -> Self {
        let subject = Subject::Resolved(command);
        match outcome {
            Ok(Success { receipt, reply }) => Self {
                outcome: Ok(receipt.kind.is_mutation().then_some(reply)),
                subject,
                origin,
                receipt,
            },
            Err(failed) => Self::failed(subject, origin, failed),
        }
    }

    /// The end of a command that failed, resolved or not.
    pub(crate) fn failed(subject: Subject, origin: Origin, failed: &'a Failed) -> Self {
        Self {
            subject,
            origin,
            receipt: &failed.receipt,
            outcome: Err(&failed.failure),
        }
    }
}

impl<R> Recorder<R>
where
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    /// Entries about `device`, each within `patience`.
    pub(crate) fn new(inner: R, device: Udid, patience: Duration) -> Self {
        Self {
            inner,
            device,
            patience,
        }
    }

    /// Puts on record that this mutation will be sent.
    pub(crate) async fn intend(self, turn: Turn) -> Result<(), RecordError> {
        let intent = Intent {
            device: self.device.clone(),
            command_id: turn.command_id,
            command: turn.command,
            origin: turn.origin,
        };
        self.enter(Record::Intent(intent), self.patience).await
    }

    /// Puts the fate of an intended mutation on record, trying again for as
    /// long as patience lasts.
    pub(crate) async fn conclude(self, ended: Ended<'_>) -> Result<(), RecordError> {
        let until = Instant::now() + self.patience;
        let record = Record::Concluded(Box::new(self.conclusion(ended, true)));
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let error = match self.enter(record.clone(), left).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let again = Instant::now() + backoff.pause();
            if error.kind == RecordErrorKind::Duplicate || again >= until {
                return Err(error);
            }
            tracing::warn!(%error, "a command's fate is not on record yet, trying again");
            tokio::time::sleep_until(again).await;
        }
    }

    /// Tries once to end an intent that may be on record although the recorder
    /// did not say so.
    pub(crate) async fn conclude_doubtful(self, ended: Ended<'_>) {
        let record = Record::Concluded(Box::new(self.conclusion(ended, true)));
        if let Err(error) = self.enter(record, self.patience).await {
            tracing::debug!(%error, "an unconfirmed intent is left without a fate");
        }
    }

    /// Puts a read, or a mutation that was never sent, on record. Its outcome
    /// does not depend on that, so a failure is only logged. That the id is on
    /// record already is none: a mutation may expire in the queue once more
    /// before the first note of that is written.
    pub(crate) async fn note(self, ended: Ended<'_>) {
        let record = Record::Concluded(Box::new(self.conclusion(ended, false)));
        match self.enter(record, self.patience).await {
            Ok(()) => {}
            Err(error) if error.kind == RecordErrorKind::Duplicate => {
                tracing::debug!(%error, "a command was on record already");
            }
            Err(error) => tracing::warn!(%error, "a command is not on record"),
        }
    }

    /// An entry about a mutation whose fate was open or unknown: what it turned
    /// out to be, or that it did not.
    pub(crate) fn resolution(
        &self,
        outcome: &Result<Success, Failed>,
        why: &str,
        settled_for_good: bool,
    ) -> Resolution {
        let (receipt, reply, failure) = match outcome {
            Ok(Success { receipt, reply }) => (receipt, Some(reply), None),
            Err(Failed { receipt, failure }) => (receipt, None, Some(failure)),
        };
        Resolution {
            device: self.device.clone(),
            receipt: receipt.clone(),
            reason: failure.map(|failure| failure.reason().to_owned()),
            message: failure.map(ToString::to_string),
            reply: reply.cloned(),
            failure: failure.cloned(),
            why: why.to_owned(),
            settled_for_good,
        }
    }

    /// Tries once to put such an entry on record.
    pub(crate) fn resolve(
        &self,
        resolution: Resolution,
    ) -> impl Future<Output = Result<(), RecordError>> + use<R> {
        self.enter(Record::Resolved(Box::new(resolution)), self.patience)
    }

    /// Does not borrow the recorder, which need not be `Sync`.
    fn enter(
        &self,
        record: Record,
        patience: Duration,
    ) -> impl Future<Output = Result<(), RecordError>> + use<R> {
        // Boxed, so that whoever may once have something to enter needs no room
        // for it until then.
        let entry = Box::pin(self.inner.clone().oneshot(record));
        let entry = tokio::time::timeout(patience, entry);
        entry.map(move |outcome| match outcome {
            Ok(result) => result,
            Err(_elapsed) => Err(RecordError {
                kind: RecordErrorKind::Unavailable,
                source: Arc::new(NoAnswer(patience)),
            }),
        })
    }

    fn conclusion(&self, ended: Ended<'_>, intended: bool) -> Conclusion {
        let Ended {
            subject,
            origin,
            receipt,
            outcome,
        } = ended;
        let (reply, failure) = match outcome {
            Ok(reply) => (reply, None),
            Err(failure) => (None, Some(failure)),
        };
        Conclusion {
            device: self.device.clone(),
            intended,
            origin,
            receipt: receipt.clone(),
            reason: failure.map(|failure| failure.reason().to_owned()),
            message: failure.map(|failure| subject.redact(failure.to_string())),
            reply: reply.cloned(),
            failure: failure.cloned(),
            subject,
        }
    }
}
