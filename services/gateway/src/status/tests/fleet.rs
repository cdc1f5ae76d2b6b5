//! Phones that are out of service, left alone, or not launched from here.

use std::time::SystemTime;

use fleetgate_ledger::Cordon;

use super::*;
use crate::fleet::NoRecycle;

fn id() -> CommandId {
    "c-1".parse().unwrap()
}

/// The metadata, and whether a retry is offered.
fn told(status: &Status, code: Code, reason: &str) -> (impl Fn(&str) -> String + use<>, bool) {
    assert_eq!(status.code(), code, "{status:?}");
    let details = status.get_error_details();
    let info = details.error_info().unwrap();
    assert_eq!(info.reason, reason);
    let metadata = info.metadata.clone();
    assert_eq!(metadata["device"], DEVICE);
    let retry = details.retry_info().is_some();
    (
        move |key: &str| metadata.get(key).cloned().unwrap_or_default(),
        retry,
    )
}

#[test]
fn a_command_for_a_phone_in_quarantine_may_be_tried_again_much_later() {
    let status = quarantined(&device(), &id(), Some("5 failures in a row"));
    assert!(status.message().contains("5 failures in a row"));
    let (meta, retry) = told(&status, Code::Unavailable, "DEVICE_QUARANTINED");
    assert!(retry);
    assert_eq!(
        (meta("command_id"), meta("fate"), meta("effect")),
        ("c-1".to_owned(), "NOT_SENT".to_owned(), "NONE".to_owned())
    );
    assert!(meta("hint").contains("RecycleRunner"));
}

#[test]
fn a_command_for_a_phone_out_of_service_is_told_who_did_it_why_and_until_when() {
    let cordon = Cordon {
        reason: "a new battery".to_owned(),
        who: "anna".to_owned(),
        since: SystemTime::UNIX_EPOCH,
        until: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(60)),
    };
    let status = cordoned(&device(), &id(), &cordon);
    for word in ["anna", "a new battery", "1970-01-01T00:01:00Z"] {
        assert!(status.message().contains(word), "{status:?}");
    }
    let (meta, retry) = told(&status, Code::FailedPrecondition, "DEVICE_CORDONED");
    assert!(!retry);
    assert_eq!(meta("cordon_who"), "anna");
    assert_eq!(meta("cordon_reason"), "a new battery");
    assert_eq!(meta("cordon_until"), "1970-01-01T00:01:00Z");
    assert_eq!(meta("fate"), "NOT_SENT");

    let status = cordoned(
        &device(),
        &id(),
        &Cordon {
            until: None,
            ..cordon
        },
    );
    let (meta, _) = told(&status, Code::FailedPrecondition, "DEVICE_CORDONED");
    assert_eq!(meta("cordon_until"), "");
}

#[test]
fn a_runner_that_is_not_recycled_is_told_why() {
    for (why, code, reason, again) in [
        (
            NoRecycle::NotLaunched,
            Code::FailedPrecondition,
            "RUNNER_NOT_LAUNCHED",
            false,
        ),
        (
            NoRecycle::Detached,
            Code::FailedPrecondition,
            "DEVICE_UNATTACHED",
            false,
        ),
        (
            NoRecycle::Draining,
            Code::Unavailable,
            "GATEWAY_DRAINING",
            true,
        ),
    ] {
        let status = not_recycled(&device(), why);
        let (_, retry) = told(&status, code, reason);
        assert_eq!(retry, again, "{why:?}");
    }
}
