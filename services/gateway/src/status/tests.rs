//! The table of failures, row by row: code, reason, facts, and whether a retry
//! is offered.

use std::io;
use std::sync::Arc;

use fleetgate_runner::{CommandKind, InvalidReply, Refused, RunnerError};
use fleetgate_session::{RecordError, RecordErrorKind};
use tonic_types::StatusExt;

use super::*;

mod fleet;
mod leases;
mod ours;
mod words;

const DEVICE: &str = "00008110-000978540290401E";

fn device() -> Udid {
    DEVICE.parse().unwrap()
}

fn receipt(kind: CommandKind, fate: Fate, effect: Effect) -> Receipt {
    Receipt {
        command_id: "c-1".parse().unwrap(),
        kind,
        fate,
        effect,
        reactivated: true,
        warning: None,
        attempts: 2,
        recovered: false,
        queue_wait: Duration::ZERO,
        device_time: Duration::ZERO,
    }
}

fn tap(fate: Fate, effect: Effect) -> Receipt {
    receipt(CommandKind::Tap, fate, effect)
}

fn runner(code: RunnerCode) -> (Receipt, Failure) {
    let receipt = tap(Fate::Failed, code.effect());
    (
        receipt,
        Failure::Runner(RunnerError {
            code,
            message: "words".to_owned(),
            hint: None,
        }),
    )
}

fn unsent(failure: Failure) -> (Receipt, Failure) {
    (tap(Fate::NotSent, Effect::None), failure)
}

fn unknown(failure: Failure) -> (Receipt, Failure) {
    (tap(Fate::Unknown, Effect::Unknown), failure)
}

fn cause() -> Arc<io::Error> {
    Arc::new(io::Error::other("cause"))
}

fn lost() -> Failure {
    Failure::Unknown {
        cause: SendError::Broken(cause()),
        journal: None,
    }
}

fn record(kind: RecordErrorKind) -> Failure {
    Failure::Record(RecordError {
        kind,
        source: cause(),
    })
}

/// Asserts code and reason, the facts, and whether a retry is offered.
fn assert_row((receipt, failure): (Receipt, Failure), code: Code, reason: &str, retry: bool) {
    let status = failed(
        &device(),
        &Failed {
            receipt: receipt.clone(),
            failure: failure.clone(),
        },
    );
    assert_eq!(status.code(), code, "{failure:?}");
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(info.reason, reason, "{failure:?}");
    assert_eq!(info.domain, "fleetgate");
    let fact = |key: &str| info.metadata.get(key).map(String::as_str);
    assert_eq!(fact("command_id"), Some("c-1"));
    assert_eq!(fact("device"), Some(DEVICE));
    assert_eq!(fact("reactivated"), Some("true"));
    assert_eq!(fact("attempts"), Some("2"));
    assert_eq!(
        fact("hint").is_some(),
        failure.hint().is_some(),
        "{failure:?}"
    );
    let fate = match receipt.fate {
        Fate::NotSent => "NOT_SENT",
        Fate::Completed => "COMPLETED",
        Fate::CompletedResultLost => "COMPLETED_RESULT_LOST",
        Fate::Failed => "FAILED",
        Fate::Unknown => "UNKNOWN",
    };
    assert_eq!(fact("fate"), Some(fate), "{failure:?}");
    let effect = match receipt.effect {
        Effect::None => "NONE",
        Effect::Applied => "APPLIED",
        Effect::Unknown => "UNKNOWN",
    };
    assert_eq!(fact("effect"), Some(effect), "{failure:?}");
    assert_eq!(details.retry_info().is_some(), retry, "{failure:?}");
}

#[test]
fn every_code_of_the_runner_has_its_row() {
    for (code, expected, reason, retry) in [
        (
            RunnerCode::InvalidRequest,
            Code::Internal,
            "INVALID_REQUEST",
            false,
        ),
        (
            RunnerCode::AppBundleIdRequired,
            Code::Internal,
            "APP_BUNDLE_ID_REQUIRED",
            false,
        ),
        (
            RunnerCode::AppNotAvailable,
            Code::FailedPrecondition,
            "APP_NOT_AVAILABLE",
            false,
        ),
        (
            RunnerCode::AppBackgrounded,
            Code::FailedPrecondition,
            "APP_BACKGROUNDED",
            false,
        ),
        (
            RunnerCode::TextInputNotFocused,
            Code::FailedPrecondition,
            "TEXT_INPUT_NOT_FOCUSED",
            false,
        ),
        (
            RunnerCode::UnsupportedOperation,
            Code::FailedPrecondition,
            "UNSUPPORTED_OPERATION",
            false,
        ),
        (
            RunnerCode::RunnerBusy,
            Code::Unavailable,
            "RUNNER_BUSY",
            true,
        ),
        (
            RunnerCode::RunnerWedged,
            Code::Unavailable,
            "RUNNER_WEDGED",
            true,
        ),
        (
            RunnerCode::XctestRecordedFailure,
            Code::Unknown,
            "XCTEST_RECORDED_FAILURE",
            false,
        ),
        (
            RunnerCode::SnapshotFailed,
            Code::Unknown,
            "SNAPSHOT_FAILED",
            false,
        ),
        (
            RunnerCode::CommandTimedOut,
            Code::DeadlineExceeded,
            "COMMAND_TIMED_OUT",
            false,
        ),
        (
            RunnerCode::CommandFailed,
            Code::Unknown,
            "COMMAND_FAILED",
            false,
        ),
        (
            RunnerCode::Other("FROM_THE_FUTURE".to_owned()),
            Code::Unknown,
            "FROM_THE_FUTURE",
            false,
        ),
    ] {
        assert_row(runner(code), expected, reason, retry);
    }
}

#[test]
fn what_was_not_sent_is_unavailable_and_may_be_sent_again() {
    for (error, reason) in [
        (SendError::NotAttached, "DEVICE_UNATTACHED"),
        (
            SendError::NotListening { port: Some(8100) },
            "RUNNER_NOT_LISTENING",
        ),
        (
            SendError::NotListening { port: None },
            "RUNNER_NOT_LISTENING",
        ),
        (SendError::Connect(cause()), "MUX_UNAVAILABLE"),
        (
            SendError::WindowClosed {
                window: SOON,
                sent: false,
            },
            "RUNNER_UNREACHABLE",
        ),
    ] {
        assert_row(
            unsent(Failure::NotSent(error)),
            Code::Unavailable,
            reason,
            true,
        );
    }
    let refused = Failure::NotSent(SendError::Refused(Refused(cause())));
    assert_row(
        unsent(refused),
        Code::Unavailable,
        "LEDGER_UNAVAILABLE",
        false,
    );
    let misunderstood = Failure::NotSent(SendError::Misunderstood(cause()));
    assert_row(unsent(misunderstood), Code::Internal, "MUX_REFUSED", false);
    let large = Failure::NotSent(SendError::RequestTooLarge { bytes: 2, limit: 1 });
    assert_row(
        unsent(large),
        Code::InvalidArgument,
        "REQUEST_TOO_LARGE",
        false,
    );
}

#[test]
fn what_cannot_happen_to_the_unsent_is_our_own_fault() {
    for error in [
        SendError::Broken(cause()),
        SendError::ReplyTooLarge { limit: 1 },
        SendError::InvalidReply(InvalidReply::NotAnEnvelope {
            detail: String::new(),
        }),
    ] {
        let status = failed(
            &device(),
            &Failed {
                receipt: tap(Fate::NotSent, Effect::None),
                failure: Failure::NotSent(error),
            },
        );
        assert_eq!(status.code(), Code::Internal);
    }
}

#[test]
fn an_unknown_fate_is_never_unavailable() {
    assert_row(unknown(lost()), Code::Unknown, "FATE_UNKNOWN", false);
    assert_row(
        unknown(record(RecordErrorKind::Unavailable)),
        Code::Unknown,
        "LEDGER_UNAVAILABLE",
        false,
    );
    assert_row(
        unknown(Failure::Closed),
        Code::Unknown,
        "GATEWAY_DRAINING",
        false,
    );
}

#[test]
fn a_read_may_be_done_again_whatever_became_of_it() {
    let read = |failure| {
        (
            receipt(CommandKind::Viewport, Fate::Unknown, Effect::Unknown),
            failure,
        )
    };
    assert_row(read(lost()), Code::Unknown, "FATE_UNKNOWN", true);
    assert_row(
        read(Failure::Closed),
        Code::Unavailable,
        "GATEWAY_DRAINING",
        true,
    );
}

#[test]
fn a_fate_that_did_not_get_on_record_is_no_invitation_to_retry() {
    let receipt = tap(Fate::Completed, Effect::Applied);
    let failure = record(RecordErrorKind::Unavailable);
    assert_row(
        (receipt, failure),
        Code::Unknown,
        "LEDGER_UNAVAILABLE",
        false,
    );
}
