//! Leases: every way to be kept out, and every way in which nothing is done to
//! one.

use std::time::SystemTime;

use fleetgate_lease::{EndReason, LeaseState};

use super::*;
use crate::leases::Refused as KeptOut;
use crate::leases::{LeaseError, UnreadableLease};

fn id() -> fleetgate_lease::LeaseId {
    "a-lease".parse().unwrap()
}

fn ended(how: EndReason) -> KeptOut {
    KeptOut::Ended {
        lease: id(),
        how,
        message: "the lease has ended".to_owned(),
    }
}

fn meta(status: &Status, key: &str) -> String {
    let details = status.get_error_details();
    let metadata = &details.error_info().unwrap().metadata;
    metadata.get(key).cloned().unwrap_or_default()
}

fn reason(status: &Status) -> String {
    status
        .get_error_details()
        .error_info()
        .unwrap()
        .reason
        .clone()
}

#[test]
fn whoever_is_kept_out_is_told_by_what_and_that_nothing_was_sent() {
    let denied = Code::PermissionDenied;
    let failed = Code::FailedPrecondition;
    let other = KeptOut::HeldByOther {
        owner: Some("token:ci".to_owned()),
        until: Some(SystemTime::UNIX_EPOCH),
    };
    let stale = KeptOut::EpochStale {
        lease: id(),
        granted: 7.try_into().ok(),
    };
    let unnamed = KeptOut::Unnamed {
        lease: id(),
        granted: 7.try_into().ok(),
    };
    let waits = KeptOut::NotActive(id(), LeaseState::Queued);
    for (kept_out, code, reason_told) in [
        (KeptOut::Required, failed, "LEASE_REQUIRED"),
        (unnamed, failed, "LEASE_REQUIRED"),
        (other, denied, "LEASE_HELD_BY_OTHER"),
        (KeptOut::Unknown(id()), Code::NotFound, "LEASE_NOT_FOUND"),
        (KeptOut::NotOwner(id()), denied, "LEASE_NOT_OWNER"),
        (waits, failed, "LEASE_NOT_ACTIVE"),
        (stale, denied, "LEASE_EPOCH_STALE"),
        (KeptOut::OtherDevice(id()), denied, "LEASE_OTHER_DEVICE"),
        (ended(EndReason::Released), denied, "LEASE_RELEASED"),
        (ended(EndReason::Cancelled), denied, "LEASE_RELEASED"),
        (ended(EndReason::TtlExpired), denied, "LEASE_EXPIRED"),
        (ended(EndReason::MaxDuration), denied, "LEASE_EXPIRED"),
        (ended(EndReason::QueueTimeout), denied, "LEASE_EXPIRED"),
        (ended(EndReason::Revoked), denied, "LEASE_REVOKED"),
        (ended(EndReason::Unsatisfiable), failed, "LEASE_NOT_ACTIVE"),
    ] {
        let status = not_admitted(&device(), &"c-1".parse().unwrap(), &kept_out);
        assert_eq!((status.code(), &*reason(&status)), (code, reason_told));
        let told = ["command_id", "device", "fate", "effect"].map(|key| meta(&status, key));
        assert_eq!(told, ["c-1", DEVICE, "NOT_SENT", "NONE"]);
        let lease = kept_out.lease().map(ToString::to_string);
        assert_eq!(meta(&status, "lease"), lease.unwrap_or_default());
        assert!(status.get_error_details().retry_info().is_none());
        // What waits is told the same when its leave is withdrawn.
        let withdrawn = kept_out.withdrawn();
        assert_eq!(withdrawn.reason, reason_told);
        assert_eq!(withdrawn.message, status.message());
    }
}

#[test]
fn whoever_has_the_phone_and_until_when_is_told_in_facts_and_in_words() {
    let other = KeptOut::HeldByOther {
        owner: Some("token:ci".to_owned()),
        until: Some(SystemTime::UNIX_EPOCH),
    };
    let status = not_admitted(&device(), &"c-1".parse().unwrap(), &other);
    assert_eq!(meta(&status, "lease_owner"), "token:ci");
    assert_eq!(meta(&status, "until"), "1970-01-01T00:00:00Z");
    let words = "token:ci has leased the device (until 1970-01-01T00:00:00Z)";
    assert_eq!(status.message(), words);
    let stale = KeptOut::EpochStale {
        lease: id(),
        granted: 7.try_into().ok(),
    };
    let status = not_leased(&LeaseError::Refused(stale), Some(&id()));
    assert_eq!(meta(&status, "lease_epoch"), "7");
}

#[test]
fn what_is_not_done_to_a_lease_may_be_asked_for_again_only_where_that_may_help() {
    let full = LedgerError::Closed;
    let differs = LeaseError::Differs {
        fields: vec!["ttl", "labels"],
    };
    let unreadable = UnreadableLease {
        id: "l".to_owned(),
        source: serde_json::from_str::<bool>("").unwrap_err(),
    };
    let unreadable = LeaseError::Unreadable(unreadable.into());
    for (error, code, reason_told, retry) in [
        (
            LeaseError::NotOpen,
            Code::NotFound,
            "LEASE_NOT_FOUND",
            false,
        ),
        (
            LeaseError::NotWaiting,
            Code::FailedPrecondition,
            "LEASE_NOT_WAITING",
            false,
        ),
        (
            LeaseError::TooManyLabels,
            Code::InvalidArgument,
            "INVALID_ARGUMENT",
            false,
        ),
        (
            LeaseError::Unusable("it makes no sense"),
            Code::InvalidArgument,
            "INVALID_ARGUMENT",
            false,
        ),
        (
            LeaseError::Quota { limit: 3 },
            Code::ResourceExhausted,
            "QUOTA_EXCEEDED",
            true,
        ),
        (differs, Code::AlreadyExists, "REQUEST_ID_CONFLICT", false),
        (
            LeaseError::LookAgain,
            Code::Unavailable,
            "LEASE_ENDING",
            true,
        ),
        (
            LeaseError::Ledger(full),
            Code::Unavailable,
            "GATEWAY_DRAINING",
            true,
        ),
        (unreadable, Code::Internal, "LEDGER_FAILED", false),
        (
            LeaseError::Closed,
            Code::Unavailable,
            "GATEWAY_DRAINING",
            true,
        ),
    ] {
        let status = not_leased(&error, Some(&id()));
        assert_eq!(status.code(), code, "{error}");
        assert_eq!(reason(&status), reason_told, "{error}");
        let details = status.get_error_details();
        assert_eq!(details.retry_info().is_some(), retry, "{error}");
    }
}

#[test]
fn what_is_told_of_a_ledger_that_takes_nothing_says_what_has_come_of_it() {
    let hint = |error: LeaseError| {
        let status = not_leased(&error, Some(&id()));
        assert_eq!(reason(&status), "LEDGER_UNAVAILABLE", "{error}");
        meta(&status, "hint")
    };
    let error = || LedgerError::Interrupted;
    let unwritten = |ended| LeaseError::Unwritten {
        error: error(),
        ended,
    };
    assert!(hint(LeaseError::Ledger(error())).contains("nothing was done"));
    assert!(hint(unwritten(true)).contains("the lease has ended all the same"));
    assert!(hint(unwritten(false)).contains("it may be done yet"));
}
