//! The ledger as the session sees it: a `tower` service that takes a [`Record`]
//! and answers once it is durable.
//!
//! A fate is told to those who watch the fleet as soon as it is on record, and
//! not before. One that the ledger took after its session had given up waiting
//! for that is not told: the ledger has it.

use std::sync::Arc;
use std::task::{Context, Poll};

use fleetgate_ledger::{
    KeptReply, LeaseStamp, Ledger, LedgerError, NewFate, NewIntent, NewRecord, NewResolution,
    Outcome,
};
use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandId, Reply};
use fleetgate_session::{
    Conclusion, Failure, Intent, Receipt, Record, RecordError, RecordErrorKind, Resolution, Subject,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tower::Service;

use crate::chronicle::Chronicle;
use crate::convert::command_fate;
use crate::kept::Kept;
use crate::pending::Pending;

/// The most of a text that is kept of what a runner says, in bytes.
const MAX_WORDS: usize = 2048;

/// Records by the ledger.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    ledger: Ledger,
    pending: Pending,
    chronicle: Chronicle,
}

impl Recorder {
    pub(crate) fn new(ledger: Ledger, pending: Pending, chronicle: Chronicle) -> Self {
        Self {
            ledger,
            pending,
            chronicle,
        }
    }
}

impl Service<Record> for Recorder {
    type Response = ();
    type Error = RecordError;
    type Future = BoxFuture<'static, Result<(), RecordError>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), RecordError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, record: Record) -> Self::Future {
        let Self {
            ledger,
            pending,
            chronicle,
        } = self.clone();
        async move {
            match record {
                Record::Intent(intent) => {
                    let command_id = intent.command_id.clone();
                    let asked = asked(&pending, &command_id);
                    let intended = ledger.intend(intended(intent, asked)).await;
                    // Otherwise the session still ends the command by a
                    // conclusion.
                    if matches!(intended, Err(LedgerError::Duplicate { .. })) {
                        pending.forget(&command_id);
                    }
                    intended.map_err(refused)?;
                }
                Record::Concluded(conclusion) => {
                    // Also if the session's patience ends before the ledger does.
                    let _ended = pending.ending(&conclusion.receipt.command_id);
                    let asked = asked(&pending, &conclusion.receipt.command_id);
                    let Conclusion {
                        device,
                        receipt,
                        reason,
                        ..
                    } = &*conclusion;
                    let fate = command_fate(device, receipt, reason.clone(), false);
                    conclude(&ledger, *conclusion, asked)
                        .await
                        .map_err(refused)?;
                    chronicle.command(fate);
                }
                Record::Resolved(resolution) => {
                    let command_id = resolution.receipt.command_id.clone();
                    let Resolution {
                        device,
                        receipt,
                        reason,
                        ..
                    } = &*resolution;
                    let fate = command_fate(device, receipt, reason.clone(), false);
                    let resolution = resolved(*resolution);
                    ledger.resolve(resolution).await.map_err(unresolvable)?;
                    chronicle.command(pb::CommandFate {
                        revised: is_revised(&ledger, &command_id).await,
                        ..fate
                    });
                }
            }
            Ok(())
        }
        .boxed()
    }
}

/// Whether the newest word on a command is not the first: a command may have
/// been left without one. If that cannot be read, there was one in most cases.
async fn is_revised(ledger: &Ledger, command_id: &CommandId) -> bool {
    let words = ledger.history(command_id).await;
    words.map_or(true, |words| words.len() > 1)
}

/// What the caller asked for, in its own form: a session knows only what it
/// sends. Nothing is noted any more of a read whose caller has left, and a read
/// has no such fields.
fn asked(pending: &Pending, command_id: &CommandId) -> Map<String, Value> {
    pending
        .get(command_id)
        .map(|note| note.asked)
        .unwrap_or_default()
}

async fn conclude(
    ledger: &Ledger,
    conclusion: Conclusion,
    asked: Map<String, Value>,
) -> Result<(), LedgerError> {
    let Conclusion {
        device,
        intended,
        subject,
        origin,
        receipt,
        reason,
        message,
        reply,
        failure,
    } = conclusion;
    let command_id = receipt.command_id.clone();
    let outcome = outcome(Facts {
        receipt,
        reason,
        message,
        reply,
        failure,
    });
    if intended {
        return ledger
            .conclude(NewFate {
                command_id,
                outcome,
            })
            .await;
    }
    let command = NewIntent {
        command_id,
        device,
        kind: subject.kind(),
        app_bundle_id: subject.bundle_id().cloned(),
        parameters: match &subject {
            Subject::Resolved(command) => command.recorded(),
            Subject::Unresolved(_) => Map::new(),
        },
        asked,
        caller: origin.address,
        principal: origin.principal,
        lease: origin.lease.map(stamp),
    };
    ledger.record(NewRecord { command, outcome }).await
}

fn intended(intent: Intent, asked: Map<String, Value>) -> NewIntent {
    let Intent {
        device,
        command_id,
        command,
        origin,
    } = intent;
    NewIntent {
        command_id,
        device,
        kind: command.kind(),
        app_bundle_id: command.bundle_id().cloned(),
        parameters: command.recorded(),
        asked,
        caller: origin.address,
        principal: origin.principal,
        lease: origin.lease.map(stamp),
    }
}

fn stamp(lease: fleetgate_session::LeaseStamp) -> LeaseStamp {
    LeaseStamp {
        id: lease.id,
        epoch: lease.epoch,
    }
}

fn resolved(resolution: Resolution) -> NewResolution {
    let Resolution {
        device: _,
        receipt,
        reason,
        message,
        reply,
        failure,
        why,
        settled_for_good,
    } = resolution;
    NewResolution {
        command_id: receipt.command_id.clone(),
        outcome: outcome(Facts {
            receipt,
            reason,
            message,
            reply,
            failure,
        }),
        why: shortened(why),
        is_final: settled_for_good,
    }
}

/// What a session says of a command's end.
struct Facts {
    receipt: Receipt,
    reason: Option<String>,
    message: Option<String>,
    reply: Option<Reply>,
    failure: Option<Failure>,
}

fn outcome(facts: Facts) -> Outcome {
    let Facts {
        receipt,
        reason,
        message,
        reply,
        failure,
    } = facts;
    let hint = failure.as_ref().and_then(Failure::hint);
    let hint = hint.map(|hint| shortened(hint.into_owned()));
    let kept = Kept::of(&receipt, reply, failure).and_then(|kept| kept.text());
    Outcome {
        fate: receipt.fate,
        effect: receipt.effect,
        reason: reason.map(shortened),
        message: message.map(shortened),
        warning: receipt.warning.map(shortened),
        hint,
        reactivated: receipt.reactivated,
        attempts: receipt.attempts,
        recovered: receipt.recovered,
        queue_wait: receipt.queue_wait,
        device_time: receipt.device_time,
        reply: kept.map(KeptReply::of),
    }
}

/// A runner can say megabytes, and a page of commands holds a thousand.
fn shortened(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(MAX_WORDS));
    words
}

/// A command that retention has removed is not waited for: nothing is left of
/// it that could be settled.
fn unresolvable(error: LedgerError) -> RecordError {
    let is_gone = matches!(error, LedgerError::NotIntended { .. });
    let refused = refused(error);
    if is_gone {
        let kind = RecordErrorKind::Duplicate;
        RecordError { kind, ..refused }
    } else {
        refused
    }
}

fn refused(error: LedgerError) -> RecordError {
    let kind = match &error {
        LedgerError::Duplicate { .. } | LedgerError::AlreadyConcluded { .. } => {
            RecordErrorKind::Duplicate
        }
        LedgerError::NotAFile { .. }
        | LedgerError::Directory { .. }
        | LedgerError::File { .. }
        | LedgerError::InUse { .. }
        | LedgerError::NewerSchema { .. }
        | LedgerError::Foreign { .. }
        | LedgerError::Corrupt { .. }
        | LedgerError::OlderSchema { .. }
        | LedgerError::BrokenChain { .. }
        | LedgerError::Schema { .. }
        | LedgerError::NotIntended { .. }
        | LedgerError::Unredacted { .. }
        | LedgerError::UnredactedOperation { .. }
        | LedgerError::AliasTaken { .. }
        | LedgerError::LeaseRequestTaken { .. }
        | LedgerError::LeaseMismatch { .. }
        | LedgerError::EpochTaken { .. }
        | LedgerError::Rejected { .. }
        | LedgerError::Unavailable { .. }
        | LedgerError::Full { .. }
        | LedgerError::Storage { .. }
        | LedgerError::Closed
        | LedgerError::Interrupted
        | LedgerError::InvalidPageToken
        | LedgerError::PageTokenMismatch
        | LedgerError::InvalidCursor
        | LedgerError::ForeignCursor
        | LedgerError::CursorGap { .. }
        | LedgerError::UnreadableRow { .. }
        | LedgerError::UnreadableSettings { .. }
        | LedgerError::UnreadableLease { .. } => RecordErrorKind::Unavailable,
    };
    RecordError {
        kind,
        source: Arc::new(error),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fleetgate_ledger::LedgerConfig;
    use fleetgate_runner::{CommandKind, Effect, Fate};
    use tower::ServiceExt;

    use super::*;
    use crate::feed::Feed;
    use crate::metrics::counters;

    #[tokio::test]
    async fn a_fate_of_a_command_that_is_not_on_record_any_more_is_not_offered_again() {
        let directory = tempfile::tempdir().unwrap();
        let config = LedgerConfig::new(directory.path().join("ledger.db"));
        let ledger = Ledger::open(config).await.unwrap();
        let receipt = Receipt {
            command_id: "pruned".parse().unwrap(),
            kind: CommandKind::Tap,
            fate: Fate::Completed,
            effect: Effect::Applied,
            reactivated: false,
            warning: None,
            attempts: 1,
            recovered: true,
            queue_wait: Duration::ZERO,
            device_time: Duration::ZERO,
        };
        let resolution = Resolution {
            device: "00008110-000978540290401E".parse().unwrap(),
            receipt,
            reason: None,
            message: None,
            reply: None,
            failure: None,
            why: "the runner's journal has it".to_owned(),
            settled_for_good: true,
        };
        let (chronicle, _task) = Chronicle::new(Feed::default(), ledger.clone(), counters());
        let recorder = Recorder::new(ledger.clone(), Pending::default(), chronicle);
        let resolved = Record::Resolved(Box::new(resolution));
        let refused = recorder.oneshot(resolved).await.unwrap_err();
        assert_eq!(refused.kind, RecordErrorKind::Duplicate);
        ledger.close().await;
    }
}
