//! Refusals that come before a session, and how much a status may say.

use fleetgate_runner::RunnerError;
use tonic_types::StatusExt;

use super::{cause, device, tap};
use crate::status::refusal::{MAX_MESSAGE, MAX_VIOLATIONS, cut};
use crate::status::*;

#[test]
fn every_violation_of_a_request_is_told() {
    let violation = |field: &str| Violation {
        field: field.to_owned(),
        description: "is bad".to_owned(),
    };
    let status = invalid(Invalid {
        violations: vec![violation("point.absolute.x"), violation("lease")],
        device: Some("left".to_owned()),
        command_id: None,
    });
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(status.message(), "point.absolute.x is bad; lease is bad");
    let details = status.get_error_details();
    let told = &details.bad_request().unwrap().field_violations;
    assert_eq!(
        told.iter()
            .map(|told| told.field.as_str())
            .collect::<Vec<_>>(),
        ["point.absolute.x", "lease"]
    );
    let metadata = &details.error_info().unwrap().metadata;
    assert_eq!(metadata["device"], "left");
    assert_eq!(metadata["fate"], "NOT_SENT");
    assert_eq!(metadata["effect"], "NONE");
    assert!(!metadata.contains_key("command_id"));
    assert!(details.retry_info().is_none());
}

#[test]
fn what_is_not_found_says_what() {
    let id: CommandId = "c-1".parse().unwrap();
    for (status, code, reason) in [
        (
            device_unknown("left", Some(&id)),
            Code::NotFound,
            "DEVICE_UNKNOWN",
        ),
        (never_sent(&id), Code::NotFound, "NEVER_SENT"),
        (no_record(&id), Code::NotFound, "NO_RECORD"),
        (
            runner_port_unknown(&device(), &id),
            Code::FailedPrecondition,
            "RUNNER_PORT_UNKNOWN",
        ),
        (
            draining(&device(), &id),
            Code::Unavailable,
            "GATEWAY_DRAINING",
        ),
    ] {
        assert_eq!(status.code(), code);
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!(info.reason, reason);
        assert_eq!(info.metadata["command_id"], "c-1");
        assert_eq!(details.retry_info().is_some(), code == Code::Unavailable);
    }
}

#[test]
fn a_late_success_tells_its_fate() {
    let status = late(&device(), &tap(Fate::Completed, Effect::Applied));
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["fate"], "COMPLETED");
    assert!(details.retry_info().is_none());
}

#[test]
fn the_ledgers_failures_are_told_apart() {
    let path = || "/l.db".into();
    for (error, code, retry) in [
        (LedgerError::InvalidPageToken, Code::InvalidArgument, false),
        (LedgerError::PageTokenMismatch, Code::InvalidArgument, false),
        (
            LedgerError::Unavailable {
                path: path(),
                patience: SOON,
                source: cause(),
            },
            Code::Unavailable,
            true,
        ),
        (LedgerError::Closed, Code::Unavailable, true),
        (
            LedgerError::Storage {
                path: path(),
                source: cause(),
            },
            Code::Internal,
            false,
        ),
        (
            LedgerError::UnreadableRow {
                seq: 1,
                source: cause(),
            },
            Code::Internal,
            false,
        ),
    ] {
        let status = ledger(&error);
        assert_eq!(status.code(), code, "{error}");
        assert_eq!(
            status.get_error_details().retry_info().is_some(),
            retry,
            "{error}"
        );
    }
}

/// The bytes that a status takes in a response's headers.
fn travelling(status: Status) -> usize {
    let response = status.into_http::<()>();
    response
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum()
}

#[test]
fn a_status_fits_into_the_headers_that_clients_take() {
    const CLIENTS_TAKE: usize = 8 * 1024;
    for words in ["x", "ж", "🙂", "\"", " ", "\n"] {
        let words = words.repeat(100_000);
        let error = RunnerError {
            code: RunnerCode::Other(words.clone()),
            message: words.clone(),
            hint: Some(words.clone()),
        };
        let status = failed(
            &device(),
            &Failed {
                receipt: tap(Fate::Failed, Effect::Unknown),
                failure: Failure::Runner(error),
            },
        );
        assert!(status.message().len() <= MAX_MESSAGE);
        assert!(!status.message().is_empty());
        assert!(travelling(status) < CLIENTS_TAKE);

        let violation = Violation {
            field: words.clone(),
            description: words.clone(),
        };
        let status = invalid(Invalid {
            violations: vec![violation; 2 * MAX_VIOLATIONS],
            device: Some(words.clone()),
            command_id: Some(words),
        });
        assert!(
            travelling(status) < 2 * CLIENTS_TAKE,
            "our own words, and still bounded"
        );
    }
}

#[test]
fn a_message_is_cut_between_characters() {
    assert_eq!(cut("abc", 2), "ab");
    assert_eq!(cut("aж", 6), "a");
    assert_eq!(cut("aж", 7), "aж");
    assert_eq!(cut("a b", 4), "a ");
}

#[test]
fn a_used_id_names_the_fields_that_differ_whoever_found_out() {
    let failed_in_session = failed(
        &device(),
        &Failed {
            receipt: tap(Fate::NotSent, Effect::None),
            failure: Failure::IdConflict {
                fields: vec!["point", "text"],
            },
        },
    );
    let fields = vec!["point".to_owned(), "text".to_owned()];
    let found_here = id_conflict(&device(), &"c-1".parse().unwrap(), fields);
    for status in [failed_in_session, found_here] {
        assert_eq!(status.code(), Code::AlreadyExists);
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!(info.reason, "COMMAND_ID_CONFLICT");
        assert_eq!(info.metadata["differing"], "point,text");
        assert_eq!(info.metadata["fate"], "NOT_SENT");
        let named = &details.bad_request().unwrap().field_violations;
        let named: Vec<_> = named.iter().map(|field| field.field.as_str()).collect();
        assert_eq!(named, ["point", "text"]);
        assert!(details.retry_info().is_none());
    }
}

#[test]
fn what_cannot_be_looked_up_is_never_called_not_sent() {
    let id = "c-1".parse().unwrap();
    let late = unclaimed(&LedgerError::Closed, &device(), &id);
    for (status, code) in [
        (late, Code::Unavailable),
        (overdue(&device(), &id), Code::DeadlineExceeded),
        (unsettled(&device(), &id), Code::Unknown),
    ] {
        assert_eq!(status.code(), code);
        let details = status.get_error_details();
        let facts = &details.error_info().unwrap().metadata;
        assert_eq!(
            (facts["fate"].as_str(), facts["effect"].as_str()),
            ("UNKNOWN", "UNKNOWN")
        );
        assert!(facts.contains_key("hint"));
    }
}
