//! Every failure as a `tonic::Status`: the one file that decides codes.
//!
//! A status says which command it is about and what became of it, in
//! `google.rpc.ErrorInfo`; `RetryInfo` is there where, and only where, doing
//! the same again is safe. UNAVAILABLE, which clients repeat by themselves, is
//! given for nothing that may have had an effect.
//!
//! | what happened | code |
//! |---|---|
//! | a request that cannot be used | INVALID_ARGUMENT + BadRequest |
//! | unknown device or command | NOT_FOUND |
//! | the app, the focus or the phone is not fit for it; no runner port known; a phone out of service | FAILED_PRECONDITION |
//! | the runner or usbmuxd refuses our request as such; a crash | INTERNAL |
//! | provably not sent, or declined as busy or wedged; a phone in quarantine | UNAVAILABLE + RetryInfo |
//! | the device's queue is full | RESOURCE_EXHAUSTED + RetryInfo |
//! | a reply larger than is sent, more metadata than is taken | RESOURCE_EXHAUSTED |
//! | the runner's time or the caller's is over | DEADLINE_EXCEEDED |
//! | any other verdict; a fate that is unknown | UNKNOWN |
//! | a caller that is not known; one that may not, or may no more while its command waits | UNAUTHENTICATED; PERMISSION_DENIED |
//! | a caller that takes more than its share | RESOURCE_EXHAUSTED + RetryInfo |
//! | a command id that belongs to another request, an alias that is another phone's | ALREADY_EXISTS + BadRequest |

use std::time::Duration;

use fleetgate_ledger::LedgerError;
use fleetgate_runner::{CommandId, Effect, Fate, RunnerCode, SendError, Udid};
use fleetgate_session::{Failed, Failure, Receipt};
use tonic::{Code, Status};

use crate::convert::{Invalid, Violation};
use crate::deadline::MalformedTimeout;
use crate::screenshot::NotPng;

mod access;
mod acts;
mod fleet;
mod lease;
mod refusal;
#[cfg(test)]
mod tests;
mod used;

pub(crate) use access::{
    CREDENTIALS_CHANGED, DEVICE_OUT_OF_SCOPE, QUOTA_EXCEEDED, RATE_LIMITED, ROLE_TOO_LOW,
    credentials_changed, credentials_missing, device_out_of_scope, fleet_out_of_scope,
    method_unknown, no_caller, rate_limited, role_too_low, too_many_commands, unauthenticated,
};
pub(crate) use acts::{not_set, unrecorded};
pub(crate) use fleet::{cordoned, not_recycled, quarantined};
pub(crate) use lease::{
    lease_unknown, leases_draining, leases_unread, named_twice, not_admitted, not_leased,
    watch_draining,
};
pub(crate) use used::{
    id_conflict, never_sent, no_record, overdue, replayed, unclaimed, unsettled,
};

use refusal::{Facts, Refusal};

/// When to ask again after something that passes by itself.
const SOON: Duration = Duration::from_secs(1);
/// When to ask again after a gateway has gone.
const LATER: Duration = Duration::from_secs(5);

/// A command that failed.
pub(crate) fn failed(device: &Udid, failed: &Failed) -> Status {
    let Failed { receipt, failure } = failed;
    if let Failure::IdConflict { fields } = failure {
        let fields = fields.iter().map(ToString::to_string).collect();
        return id_conflict(device, &receipt.command_id, fields);
    }
    Refusal::new(
        code(failure, receipt),
        failure.reason().to_string(),
        failure.to_string(),
    )
    .facts(Facts::of(device, receipt).hint(failure.hint().as_deref()))
    .retry(failed.retry_after())
    .into()
}

/// The code of a failure.
pub(crate) fn code(failure: &Failure, receipt: &Receipt) -> Code {
    match failure {
        Failure::Runner(error) => verdict_code(&error.code),
        Failure::NotSent(error) => unsent_code(error),
        Failure::Unknown { .. } | Failure::Reply(_) => Code::Unknown,
        // The read's failure stands for the command's, but for one: that it is
        // not known whether a read ran says nothing about a command that did
        // not.
        Failure::Viewport(read) if matches!(**read, Failure::Unknown { .. }) => Code::Unavailable,
        Failure::Viewport(read) => code(read, receipt),
        Failure::LaneFull { .. } => Code::ResourceExhausted,
        Failure::DeadlineInQueue | Failure::DeadlineExceeded => Code::DeadlineExceeded,
        Failure::Record(_) | Failure::Closed => {
            if may_have_had_effect(receipt) {
                Code::Unknown
            } else {
                Code::Unavailable
            }
        }
        Failure::Duplicate | Failure::NotUnderWay | Failure::IdConflict { .. } => {
            Code::AlreadyExists
        }
        // What it is due to explains the failure and does not change it.
        Failure::Draining { failure, .. } | Failure::Paused { failure } => code(failure, receipt),
        Failure::Withdrawn(_) => Code::PermissionDenied,
        Failure::Crashed => Code::Internal,
    }
}

fn verdict_code(code: &RunnerCode) -> Code {
    match code {
        RunnerCode::AppNotAvailable
        | RunnerCode::AppBackgrounded
        | RunnerCode::TextInputNotFocused
        | RunnerCode::UnsupportedOperation => Code::FailedPrecondition,
        RunnerCode::InvalidRequest | RunnerCode::AppBundleIdRequired => Code::Internal,
        RunnerCode::RunnerBusy | RunnerCode::RunnerWedged => Code::Unavailable,
        RunnerCode::CommandTimedOut => Code::DeadlineExceeded,
        RunnerCode::CommandFailed
        | RunnerCode::SnapshotFailed
        | RunnerCode::XctestRecordedFailure
        | RunnerCode::Other(_) => Code::Unknown,
    }
}

fn unsent_code(error: &SendError) -> Code {
    match error {
        SendError::NotAttached
        | SendError::NotListening { .. }
        | SendError::Connect(_)
        | SendError::Refused(_)
        | SendError::WindowClosed { .. } => Code::Unavailable,
        SendError::RequestTooLarge { .. } => Code::InvalidArgument,
        // Our own fault; the others cannot happen to what was not sent.
        SendError::Misunderstood(_)
        | SendError::Broken(_)
        | SendError::ReplyTooLarge { .. }
        | SendError::InvalidReply(_) => Code::Internal,
    }
}

fn may_have_had_effect(receipt: &Receipt) -> bool {
    receipt.kind.is_mutation() && receipt.effect != Effect::None
}

/// A command whose success came after its caller's deadline.
pub(crate) fn late(device: &Udid, receipt: &Receipt) -> Status {
    Refusal::new(
        Code::DeadlineExceeded,
        "DEADLINE_EXCEEDED",
        "the reply came after the deadline",
    )
    .facts(Facts::of(device, receipt).hint(Some("the command is done; allow more time")))
    .into()
}

/// A call without a command whose deadline has passed.
pub(crate) fn deadline_exceeded() -> Status {
    Refusal::new(
        Code::DeadlineExceeded,
        "DEADLINE_EXCEEDED",
        "the deadline passed",
    )
    .into()
}

/// A reply that belongs to another command: our own fault.
pub(crate) fn wrong_reply(device: &Udid, receipt: &Receipt) -> Status {
    Refusal::new(
        Code::Internal,
        "INTERNAL",
        "the reply does not belong to the command",
    )
    .facts(Facts::of(device, receipt))
    .into()
}

/// A screenshot that is none.
pub(crate) fn not_png(device: &Udid, receipt: &Receipt, error: NotPng) -> Status {
    Refusal::new(Code::Unknown, "REPLY_UNUSABLE", error.to_string())
        .facts(Facts::of(device, receipt))
        .into()
}

/// A command's reply that is larger than is sent.
pub(crate) fn reply_too_large(
    device: &Udid,
    receipt: &Receipt,
    bytes: usize,
    limit: usize,
) -> Status {
    too_large(bytes, limit)
        .facts(Facts::of(device, receipt).hint(Some(
            "raise max_reply_bytes of [server], and the client's own limit",
        )))
        .into()
}

/// A page that is larger than is sent.
pub(crate) fn page_too_large(bytes: usize, limit: usize) -> Status {
    too_large(bytes, limit)
        .facts(Facts::default().hint(Some("ask for smaller pages by page_size")))
        .into()
}

fn too_large(bytes: usize, limit: usize) -> Refusal {
    let message = format!("the reply is {bytes} bytes and the limit is {limit}");
    Refusal::new(Code::ResourceExhausted, "REPLY_TOO_LARGE", message)
}

/// A request that cannot be used.
pub(crate) fn invalid(invalid: Invalid) -> Status {
    unusable(invalid).into()
}

fn unusable(invalid: Invalid) -> Refusal {
    let Invalid {
        violations,
        device,
        command_id,
    } = invalid;
    let words: Vec<_> = violations
        .iter()
        .map(|Violation { field, description }| format!("{field} {description}"))
        .collect();
    Refusal::new(Code::InvalidArgument, "INVALID_ARGUMENT", words.join("; "))
        .facts(Facts::not_sent(device.as_deref(), command_id.as_deref()))
        .violations(violations)
}

/// A `grpc-timeout` that does not follow the specification.
pub(crate) fn malformed_timeout(error: MalformedTimeout) -> Status {
    Refusal::new(Code::InvalidArgument, "INVALID_ARGUMENT", error.to_string()).into()
}

/// More metadata than is taken.
pub(crate) fn metadata_too_large(bytes: usize, limit: usize) -> Status {
    let message = format!("the metadata is {bytes} bytes and the limit is {limit}");
    Refusal::new(Code::ResourceExhausted, "METADATA_TOO_LARGE", message).into()
}

/// A device of which nothing is known.
pub(crate) fn device_unknown(name: &str, command_id: Option<&CommandId>) -> Status {
    let facts = match command_id {
        Some(command_id) => Facts::not_sent(Some(name), Some(command_id.as_str())),
        None => Facts::default().with("device", name),
    };
    Refusal::new(Code::NotFound, "DEVICE_UNKNOWN", "no such device")
        .facts(facts.hint(Some(
            "ListDevices names the devices that have been seen or configured",
        )))
        .into()
}

/// A device whose runner cannot be found.
pub(crate) fn runner_port_unknown(device: &Udid, command_id: &CommandId) -> Status {
    let facts = Facts::not_sent(Some(device.as_str()), Some(command_id.as_str()));
    Refusal::new(
        Code::FailedPrecondition,
        "RUNNER_PORT_UNKNOWN",
        "the port that the device's runner listens on is not known",
    )
    .facts(facts.hint(Some(
        "set runner_port of its [[device]], or port of [runner] for all",
    )))
    .into()
}

/// A command that came when the gateway had been told to stop.
pub(crate) fn draining(device: &Udid, command_id: &CommandId) -> Status {
    Refusal::new(
        Code::Unavailable,
        "GATEWAY_DRAINING",
        "the gateway is draining",
    )
    .facts(Facts::not_sent(
        Some(device.as_str()),
        Some(command_id.as_str()),
    ))
    .retry(Some(LATER))
    .into()
}

/// A stream that ends because the gateway does; it can be resumed.
pub(crate) fn stream_draining() -> Status {
    Refusal::new(
        Code::Unavailable,
        "GATEWAY_DRAINING",
        "the gateway is draining",
    )
    .facts(Facts::default().hint(Some("resume with the last cursor")))
    .retry(Some(LATER))
    .into()
}

/// A ledger that could not be read.
pub(crate) fn ledger(error: &LedgerError) -> Status {
    ledger_refusal(error).into()
}

fn ledger_refusal(error: &LedgerError) -> Refusal {
    let message = error.to_string();
    match error {
        LedgerError::InvalidPageToken | LedgerError::PageTokenMismatch => {
            let violation = Violation {
                field: "page_token".to_owned(),
                description: message,
            };
            unusable(vec![violation].into())
        }
        LedgerError::InvalidCursor | LedgerError::ForeignCursor => {
            let violation = Violation {
                field: "after_cursor".to_owned(),
                description: message,
            };
            unusable(vec![violation].into())
        }
        LedgerError::Unavailable { .. } => {
            Refusal::new(Code::Unavailable, "LEDGER_UNAVAILABLE", message).retry(Some(SOON))
        }
        LedgerError::Closed => {
            Refusal::new(Code::Unavailable, "GATEWAY_DRAINING", message).retry(Some(LATER))
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
        | LedgerError::Duplicate { .. }
        | LedgerError::NotIntended { .. }
        | LedgerError::AlreadyConcluded { .. }
        | LedgerError::Unredacted { .. }
        | LedgerError::UnredactedOperation { .. }
        | LedgerError::AliasTaken { .. }
        | LedgerError::LeaseRequestTaken { .. }
        | LedgerError::LeaseMismatch { .. }
        | LedgerError::EpochTaken { .. }
        | LedgerError::Rejected { .. }
        | LedgerError::Full { .. }
        | LedgerError::Storage { .. }
        | LedgerError::Interrupted
        | LedgerError::CursorGap { .. }
        | LedgerError::UnreadableRow { .. }
        | LedgerError::UnreadableSettings { .. }
        | LedgerError::UnreadableLease { .. } => {
            Refusal::new(Code::Internal, "LEDGER_FAILED", message)
        }
    }
}

impl Facts {
    fn of(device: &Udid, receipt: &Receipt) -> Self {
        Self::default()
            .with("command_id", receipt.command_id.as_str())
            .with("device", device.as_str())
            .with("attempts", &receipt.attempts.to_string())
            .with("recovered", &receipt.recovered.to_string())
            .outcome(receipt.fate, receipt.effect, receipt.reactivated)
    }

    /// Of a command that was refused before it came to a device.
    fn not_sent(device: Option<&str>, command_id: Option<&str>) -> Self {
        Self::default()
            .with_some("device", device)
            .with_some("command_id", command_id)
            .outcome(Fate::NotSent, Effect::None, false)
    }

    fn about(command_id: &CommandId) -> Self {
        Self::default().with("command_id", command_id.as_str())
    }
}
