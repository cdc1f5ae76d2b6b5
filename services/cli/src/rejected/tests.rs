//! What an error tells, and what the process ends with.

use std::collections::HashMap;

use tonic_types::ErrorDetails;

use super::*;

fn context() -> Context {
    Context::known(Server::DEFAULT.parse().unwrap(), None)
}

fn facts(facts: &[(&str, &str)]) -> HashMap<String, String> {
    facts
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn from_gateway(code: Code, reason: &str, metadata: &[(&str, &str)]) -> Status {
    let details = ErrorDetails::with_error_info(reason, DOMAIN, facts(metadata));
    Status::with_error_details(code, "in words", details)
}

#[test]
fn an_error_tells_code_reason_fate_effect_hint_and_command() {
    let mut details = ErrorDetails::with_error_info(
        "RUNNER_BUSY",
        DOMAIN,
        facts(&[
            ("command_id", "c-1"),
            ("device", "00008110-000978540290401E"),
            ("fate", "FAILED"),
            ("effect", "NONE"),
            ("hint", "wait for the runner"),
            ("reactivated", "true"),
        ]),
    );
    details.set_retry_info(Some(Duration::from_millis(250)));
    let status = Status::with_error_details(Code::Unavailable, "the runner is busy", details);
    let rejected = Rejected::of(&status, Asked::mutation("c-1"), &context());
    assert_eq!(
        rejected.text(),
        "error: the runner is busy\n\
         \x20 code:    UNAVAILABLE\n\
         \x20 reason:  RUNNER_BUSY\n\
         \x20 device:  00008110-000978540290401E\n\
         \x20 command: c-1\n\
         \x20 fate:    failed\n\
         \x20 effect:  none\n\
         \x20 note:    the app was brought to the front first\n\
         \x20 retry:   safe after 250ms\n\
         \x20 hint:    wait for the runner\n"
    );
    assert_eq!(rejected.exit(), Exit::Unavailable);
}

#[test]
fn the_json_form_has_the_same_facts_and_the_exit_code() {
    let status = from_gateway(
        Code::FailedPrecondition,
        "TEXT_INPUT_NOT_FOCUSED",
        &[
            ("command_id", "c-2"),
            ("fate", "FAILED"),
            ("effect", "NONE"),
        ],
    );
    let json = Rejected::of(&status, Asked::mutation("c-2"), &context()).json();
    assert_eq!(json["error"]["code"], "FAILED_PRECONDITION");
    assert_eq!(json["error"]["reason"], "TEXT_INPUT_NOT_FOCUSED");
    assert_eq!(json["error"]["fate"], "failed");
    assert_eq!(json["error"]["effect"], "none");
    assert_eq!(json["error"]["exit_code"], 5);
    assert_eq!(json["error"]["look_up"], serde_json::Value::Null);
}

#[test]
fn an_unknown_fate_names_the_command_that_looks_it_up() {
    let status = from_gateway(
        Code::Unknown,
        "FATE_UNKNOWN",
        &[("command_id", "c-3"), ("fate", "UNKNOWN")],
    );
    let rejected = Rejected::of(&status, Asked::mutation("c-3"), &context());
    assert!(
        rejected
            .text()
            .ends_with("look up: fleetgate command show c-3\n"),
        "{}",
        rejected.text()
    );
    assert_eq!(rejected.exit(), Exit::FateUnknown);
}

#[test]
fn the_look_up_names_the_gateway_unless_it_is_the_usual_one() {
    let status = from_gateway(Code::Unknown, "FATE_UNKNOWN", &[("fate", "UNKNOWN")]);
    let elsewhere = Context::known("lab:7701".parse().unwrap(), None);
    let text = Rejected::of(&status, Asked::mutation("c-4"), &elsewhere).text();
    assert!(
        text.ends_with("fleetgate --server http://lab:7701 command show c-4\n"),
        "{text}"
    );
}

#[test]
fn a_deadline_that_passed_here_leaves_a_mutation_open_and_a_read_repeatable() {
    let status = Status::deadline_exceeded("no answer came in time");
    let mutation = Rejected::of(&status, Asked::mutation("c-5"), &context());
    assert!(
        mutation.text().contains("DEADLINE_EXCEEDED"),
        "{}",
        mutation.text()
    );
    assert!(
        mutation.text().contains("command show c-5"),
        "{}",
        mutation.text()
    );
    assert_eq!(mutation.exit(), Exit::FateUnknown);

    let read = Rejected::of(&status, Asked::read("c-6"), &context());
    assert!(read.text().contains("command show c-6"), "{}", read.text());
    assert_eq!(read.exit(), Exit::Unavailable);
}

#[test]
fn a_deadline_that_passed_in_the_queue_is_safe_to_ask_again() {
    let status = from_gateway(
        Code::DeadlineExceeded,
        "DEADLINE_IN_QUEUE",
        &[
            ("command_id", "c-7"),
            ("fate", "NOT_SENT"),
            ("effect", "NONE"),
        ],
    );
    let rejected = Rejected::of(&status, Asked::mutation("c-7"), &context());
    assert_eq!(rejected.exit(), Exit::Unavailable);
    assert!(
        rejected.text().contains("fate:    not_sent"),
        "{}",
        rejected.text()
    );
}

#[test]
fn a_read_that_was_sent_and_is_late_may_be_asked_again() {
    let status = from_gateway(
        Code::DeadlineExceeded,
        "DEADLINE_EXCEEDED",
        &[
            ("command_id", "c-12"),
            ("fate", "UNKNOWN"),
            ("effect", "UNKNOWN"),
        ],
    );
    let read = Rejected::of(&status, Asked::read("c-12"), &context());
    assert_eq!(read.exit(), Exit::Unavailable);
    let mutation = Rejected::of(&status, Asked::mutation("c-12"), &context());
    assert_eq!(mutation.exit(), Exit::FateUnknown);
}

#[test]
fn what_the_gateway_or_the_way_to_it_is_at_fault_for_may_pass() {
    let passes =
        |code| Rejected::of(&Status::new(code, ""), Asked::nothing(), &context()).may_pass();
    for code in [
        Code::Unavailable,
        Code::Unknown,
        Code::Internal,
        Code::Cancelled,
    ] {
        assert!(passes(code), "{code}");
    }
    for code in [
        Code::Unimplemented,
        Code::InvalidArgument,
        Code::Unauthenticated,
        Code::DeadlineExceeded,
    ] {
        assert!(!passes(code), "{code}");
    }
}

#[test]
fn a_connection_that_broke_during_a_mutation_proves_nothing() {
    for status in [
        Status::unavailable("transport error"),
        Status::unknown("h2"),
        Status::internal("eof"),
    ] {
        let rejected = Rejected::of(&status, Asked::mutation("c-8"), &context());
        assert_eq!(rejected.exit(), Exit::FateUnknown, "{status}");
        assert_eq!(rejected.effect, Some(Effect::Unknown));
        assert!(rejected.look_up.is_some());
    }
}

#[test]
fn what_has_happened_is_never_called_safe_to_ask_again() {
    let status = from_gateway(
        Code::Unavailable,
        "LEDGER_UNAVAILABLE",
        &[("fate", "COMPLETED"), ("effect", "APPLIED")],
    );
    let rejected = Rejected::of(&status, Asked::mutation("c-11"), &context());
    assert_eq!(rejected.exit(), Exit::Other);
}

#[test]
fn a_gateway_that_cannot_be_reached_was_asked_nothing() {
    let error = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    let rejected = Rejected::unreachable(&Server::DEFAULT.parse().unwrap(), &error);
    assert_eq!(rejected.exit(), Exit::Unavailable);
    assert!(
        rejected
            .text()
            .contains("http://127.0.0.1:7700: connection refused"),
        "{}",
        rejected.text()
    );
    assert!(
        rejected.text().contains("fleetgate demo"),
        "{}",
        rejected.text()
    );
}

#[test]
fn every_refused_field_is_named() {
    let mut details = ErrorDetails::with_error_info("INVALID_ARGUMENT", DOMAIN, facts(&[]));
    details.add_bad_request_violation("app_bundle_id", "must not be empty");
    details.add_bad_request_violation("point", "is required");
    let status = Status::with_error_details(Code::InvalidArgument, "two fields are wrong", details);
    let rejected = Rejected::of(&status, Asked::mutation("c-9"), &context());
    assert!(
        rejected.text().contains("app_bundle_id: must not be empty"),
        "{}",
        rejected.text()
    );
    assert!(
        rejected.text().contains("point: is required"),
        "{}",
        rejected.text()
    );
    assert_eq!(rejected.json()["error"]["violations"][1]["field"], "point");
    assert_eq!(rejected.exit(), Exit::Usage);
}

#[test]
fn errors_of_another_domain_are_not_taken_for_the_gateways() {
    let details =
        ErrorDetails::with_error_info("FATE", "elsewhere.example", facts(&[("fate", "NOT_SENT")]));
    let status = Status::with_error_details(Code::Unavailable, "a proxy", details);
    let rejected = Rejected::of(&status, Asked::mutation("c-10"), &context());
    assert_eq!(rejected.reason(), None);
    assert_eq!(rejected.exit(), Exit::FateUnknown);
}

#[test]
fn words_of_a_phone_cannot_steer_the_terminal() {
    let status = Status::unknown("bad \u{1b}[2J words");
    assert!(
        !Rejected::of(&status, Asked::nothing(), &context())
            .text()
            .contains('\u{1b}')
    );
}

#[test]
fn a_caller_who_is_not_let_in_is_told_how_to_be() {
    for (code, reason, exit, words) in [
        (
            Code::Unauthenticated,
            "CREDENTIALS_MISSING",
            Exit::Denied,
            "--token-file",
        ),
        (
            Code::Unauthenticated,
            "CREDENTIALS_INVALID",
            Exit::Denied,
            "token list",
        ),
        (
            Code::Unauthenticated,
            "CREDENTIALS_EXPIRED",
            Exit::Denied,
            "token create",
        ),
        (Code::PermissionDenied, "ROLE_TOO_LOW", Exit::Denied, "role"),
        (
            Code::PermissionDenied,
            "DEVICE_OUT_OF_SCOPE",
            Exit::Denied,
            "labels",
        ),
        (
            Code::PermissionDenied,
            "LEASE_HELD_BY_OTHER",
            Exit::NoLease,
            "lease run",
        ),
        (
            Code::FailedPrecondition,
            "LEASE_REQUIRED",
            Exit::NoLease,
            "lease run",
        ),
        (
            Code::PermissionDenied,
            "LEASE_EXPIRED",
            Exit::NoLease,
            "another",
        ),
        (
            Code::FailedPrecondition,
            "LEASE_NOT_ACTIVE",
            Exit::NoLease,
            "",
        ),
        (Code::NotFound, "LEASE_NOT_FOUND", Exit::NotFound, ""),
    ] {
        let status = from_gateway(code, reason, &[]);
        let rejected = Rejected::of(&status, Asked::mutation("c-12"), &context());
        assert_eq!(rejected.exit(), exit, "{reason}");
        assert!(rejected.text().contains(words), "{}", rejected.text());
    }
    let told = from_gateway(
        Code::PermissionDenied,
        "ROLE_TOO_LOW",
        &[("hint", "ask ada")],
    );
    let text = Rejected::of(&told, Asked::nothing(), &context()).text();
    assert!(text.contains("hint:   ask ada"), "{text}");
}

#[test]
fn only_the_gateways_own_last_word_is_a_verdict() {
    let of = |status: &Status| Rejected::of(status, Asked::nothing(), &context());
    assert!(of(&from_gateway(Code::NotFound, "LEASE_NOT_FOUND", &[])).is_verdict());
    assert!(of(&from_gateway(Code::PermissionDenied, "LEASE_EXPIRED", &[])).is_verdict());
    for passing in [
        from_gateway(Code::Unavailable, "DRAINING", &[]),
        from_gateway(Code::Unauthenticated, "CREDENTIALS_MISSING", &[]),
        Status::not_found("a proxy knows no such path"),
        Status::deadline_exceeded("no answer came in time"),
    ] {
        assert!(!of(&passing).is_verdict(), "{passing}");
    }
}

#[test]
fn options_that_cannot_be_used_are_misuse_and_nothing_was_sent() {
    let error = anyhow::anyhow!("others may read it").context("the token cannot be used");
    let rejected = Rejected::unprepared(&error);
    assert_eq!(rejected.exit(), Exit::Usage);
    assert!(
        rejected
            .text()
            .starts_with("error: the token cannot be used: others may read it\n"),
        "{}",
        rejected.text()
    );
}
