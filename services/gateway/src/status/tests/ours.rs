//! The rows of what a session itself refuses or gives up.

use fleetgate_runner::{CommandKind, InvalidReply};
use fleetgate_session::{RecordErrorKind, Withdrawn};
use tonic_types::StatusExt;

use super::{assert_row, device, lost, receipt, record, runner, unknown, unsent};
use crate::status::*;

fn paused(failure: Failure) -> Failure {
    let failure = Box::new(failure);
    Failure::Paused { failure }
}

fn withdrawn() -> Failure {
    Failure::Withdrawn(Withdrawn {
        reason: "LEASE_EXPIRED",
        message: "the lease has expired".to_owned(),
        hint: Some("ask for another".to_owned()),
    })
}

#[test]
fn a_command_whose_leave_was_withdrawn_says_why_in_the_words_of_whoever_did() {
    let (receipt, failure) = unsent(withdrawn());
    let status = failed(&device(), &Failed { receipt, failure });
    assert_eq!(status.message(), "the lease has expired");
    let metadata = status.get_details_error_info().unwrap().metadata;
    assert_eq!(metadata["hint"], "ask for another");
    assert_eq!(metadata["fate"], "NOT_SENT");
}

#[test]
fn our_own_refusals_have_their_rows() {
    for (failure, code, reason, retry) in [
        (
            Failure::LaneFull { limit: 1 },
            Code::ResourceExhausted,
            "LANE_FULL",
            true,
        ),
        (
            Failure::DeadlineInQueue,
            Code::DeadlineExceeded,
            "DEADLINE_IN_QUEUE",
            true,
        ),
        (
            record(RecordErrorKind::Unavailable),
            Code::Unavailable,
            "LEDGER_UNAVAILABLE",
            true,
        ),
        (
            paused(Failure::LaneFull { limit: 1 }),
            Code::ResourceExhausted,
            "LANE_FULL",
            true,
        ),
        (
            paused(Failure::DeadlineInQueue),
            Code::DeadlineExceeded,
            "DEADLINE_IN_QUEUE",
            true,
        ),
        (Failure::Closed, Code::Unavailable, "GATEWAY_DRAINING", true),
        (
            Failure::Duplicate,
            Code::AlreadyExists,
            "DUPLICATE_COMMAND_ID",
            false,
        ),
        (withdrawn(), Code::PermissionDenied, "LEASE_EXPIRED", false),
        (Failure::Crashed, Code::Internal, "INTERNAL", false),
    ] {
        assert_row(unsent(failure), code, reason, retry);
    }
    assert_row(
        unknown(Failure::DeadlineExceeded),
        Code::DeadlineExceeded,
        "DEADLINE_EXCEEDED",
        false,
    );
    let unusable = Failure::Reply(InvalidReply::NotAnEnvelope {
        detail: String::new(),
    });
    let read = receipt(
        CommandKind::Viewport,
        Fate::CompletedResultLost,
        Effect::Applied,
    );
    assert_row((read, unusable), Code::Unknown, "REPLY_UNUSABLE", false);
}

#[test]
fn a_viewport_that_could_not_be_read_stands_for_the_command_that_was_not_sent() {
    let viewport = |failure| unsent(Failure::Viewport(Box::new(failure)));
    assert_row(
        viewport(lost()),
        Code::Unavailable,
        "VIEWPORT_UNREADABLE",
        true,
    );
    let (_, gone) = runner(RunnerCode::AppNotAvailable);
    assert_row(
        viewport(gone),
        Code::FailedPrecondition,
        "APP_NOT_AVAILABLE",
        false,
    );
    let detached = Failure::NotSent(SendError::NotAttached);
    assert_row(
        viewport(detached),
        Code::Unavailable,
        "DEVICE_UNATTACHED",
        true,
    );
}
