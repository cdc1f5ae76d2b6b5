//! What a client makes of replies that are odd, incomplete or wrong.

use std::time::Duration;

use fleetgate_runner::{
    CommandKind, Disposition, Effect, Envelope, InvalidReply, QualityState, Reply, RunnerCode,
    RunnerState, SendError,
};

use crate::build::{done, failed};

fn ok(reply: Reply) -> Envelope {
    Envelope::from(Ok(reply))
}

fn decode(kind: CommandKind, body: &str) -> Result<Envelope, InvalidReply> {
    Envelope::decode(kind, body.as_bytes())
}

#[test]
fn every_code_is_known_by_its_word_and_by_what_it_proves() {
    use Effect::{None, Unknown};
    for (word, code, effect) in [
        ("INVALID_REQUEST", RunnerCode::InvalidRequest, None),
        (
            "APP_BUNDLE_ID_REQUIRED",
            RunnerCode::AppBundleIdRequired,
            None,
        ),
        ("APP_NOT_AVAILABLE", RunnerCode::AppNotAvailable, None),
        ("APP_BACKGROUNDED", RunnerCode::AppBackgrounded, None),
        (
            "TEXT_INPUT_NOT_FOCUSED",
            RunnerCode::TextInputNotFocused,
            None,
        ),
        (
            "UNSUPPORTED_OPERATION",
            RunnerCode::UnsupportedOperation,
            None,
        ),
        ("RUNNER_BUSY", RunnerCode::RunnerBusy, None),
        ("RUNNER_WEDGED", RunnerCode::RunnerWedged, None),
        (
            "XCTEST_RECORDED_FAILURE",
            RunnerCode::XctestRecordedFailure,
            Unknown,
        ),
        ("SNAPSHOT_FAILED", RunnerCode::SnapshotFailed, None),
        ("COMMAND_TIMED_OUT", RunnerCode::CommandTimedOut, Unknown),
        ("COMMAND_FAILED", RunnerCode::CommandFailed, Unknown),
        (
            "FROM_THE_FUTURE",
            RunnerCode::Other("FROM_THE_FUTURE".to_owned()),
            Unknown,
        ),
    ] {
        let body = format!(r#"{{"ok":false,"error":{{"code":"{word}","message":"m"}}}}"#);
        let error = decode(CommandKind::Tap, &body).unwrap().result.unwrap_err();
        assert_eq!(error, failed(code.clone(), "m", Option::None));
        assert_eq!(code.as_str(), word);
        assert_eq!(code.effect(), effect, "{word}");
        assert_eq!(code.is_retryable(), word == "RUNNER_BUSY");
    }
}

#[test]
fn without_a_boolean_ok_nothing_is_an_envelope() {
    for body in [
        "",
        "<html>502</html>",
        "null",
        "[true]",
        "{}",
        r#"{"ok":null}"#,
        r#"{"ok":1,"data":{"message":"tapped"}}"#,
        r#"{"ok":"true","data":{"message":"tapped"}}"#,
        r#"{"data":{"message":"tapped"}}"#,
        r#"{"error":{"code":"RUNNER_BUSY","message":"busy"}}"#,
        r#"{"ok":true,"data":{"message":"tapp"#,
        r#"{"ok":true}{"ok":true}"#,
    ] {
        let error = decode(CommandKind::Tap, body).unwrap_err();
        assert!(
            matches!(error, InvalidReply::NotAnEnvelope { .. }),
            "{body}: {error:?}"
        );
        assert_eq!(SendError::from(error).disposition(), Disposition::Unknown);
    }
}

#[test]
fn a_mutation_that_says_nothing_of_itself_is_done_all_the_same() {
    for body in [
        r#"{"ok":true}"#,
        r#"{"ok":true,"data":null}"#,
        r#"{"ok":true,"data":{}}"#,
        r#"{"ok":true,"data":{"message":null}}"#,
        r#"{"ok":true,"data":{"message":7}}"#,
        r#"{"ok":true,"data":"tapped"}"#,
    ] {
        assert_eq!(decode(CommandKind::Tap, body), Ok(ok(done(""))), "{body}");
    }
}

#[test]
fn nulls_are_absent_parts_and_unknown_parts_are_ignored() {
    let body = r#"{"warning":null,"error":null,"reactivated":null,"v":2,
        "data":{"extra":[{}],"message":"tapped"},"ok":true}"#;
    assert_eq!(decode(CommandKind::Tap, body), Ok(ok(done("tapped"))));

    let body = r#"{"ok":true,"data":{"quality":{"state":"healthy","backend":"xctest","reason":null,"reasonCode":null},
        "nodes":[{"index":0,"type":"Other","label":null,"identifier":null,"value":null,"enabled":null,
        "focused":null,"selected":null,"depth":0,"parentIndex":null,"rect":{"x":0,"y":0,"width":0,"height":0}}]}}"#;
    let Ok(Reply::Snapshot(snapshot)) = decode(CommandKind::Snapshot, body).unwrap().result else {
        panic!("not a snapshot");
    };
    assert_eq!(snapshot.nodes[0].label, None);
    assert_eq!(snapshot.nodes[0].parent_index, None);
    assert_eq!(snapshot.quality.state, QualityState::Healthy);
}

#[test]
fn what_accompanies_a_verdict_cannot_spoil_it() {
    let body = r#"{"ok":true,"data":{"message":"tapped"},"reactivated":"yes","warning":{}}"#;
    assert_eq!(decode(CommandKind::Tap, body), Ok(ok(done("tapped"))));

    for (body, expected) in [
        (
            r#"{"ok":false}"#,
            failed(RunnerCode::CommandFailed, "", None),
        ),
        (
            r#"{"ok":false,"error":"thrown"}"#,
            failed(RunnerCode::CommandFailed, "", None),
        ),
        (
            r#"{"ok":false,"error":{"code":null,"message":"thrown","hint":4}}"#,
            failed(RunnerCode::CommandFailed, "thrown", None),
        ),
        (
            r#"{"ok":false,"error":{"code":"RUNNER_BUSY","message":null}}"#,
            failed(RunnerCode::RunnerBusy, "", None),
        ),
    ] {
        assert_eq!(
            decode(CommandKind::Screenshot, body).unwrap().result,
            Err(expected),
            "{body}"
        );
    }
}

#[test]
fn a_viewport_without_an_extent_is_unusable_data_of_a_command_that_ran() {
    for frame in [
        r#"{"x":0,"y":0,"width":0,"height":852}"#,
        r#"{"x":0,"y":0,"width":393,"height":0}"#,
        r#"{"x":0,"y":0,"width":-393,"height":852}"#,
        r#"{"x":0,"y":0,"width":1e308,"height":1e999}"#,
        r#"{"x":1e308,"y":0,"width":1e308,"height":852}"#,
        r#"{"x":0,"y":0,"width":null,"height":852}"#,
        r#"{"x":0,"y":0,"width":393}"#,
        "null",
    ] {
        let body = format!(r#"{{"ok":true,"data":{frame}}}"#);
        let error = decode(CommandKind::Viewport, &body).unwrap_err();
        assert!(
            matches!(
                error,
                InvalidReply::Data {
                    kind: CommandKind::Viewport,
                    ..
                }
            ),
            "{frame}: {error:?}"
        );
        assert_eq!(SendError::from(error).disposition(), Disposition::Executed);
    }
}

#[test]
fn data_of_the_wrong_shape_is_unusable() {
    for (kind, body) in [
        (CommandKind::Screenshot, r#"{"ok":true,"data":{}}"#),
        (
            CommandKind::Screenshot,
            r#"{"ok":true,"data":{"imageBase64":"not base64!"}}"#,
        ),
        (
            CommandKind::Screenshot,
            r#"{"ok":true,"data":{"imageBase64":"iVBORw0KGgo"}}"#,
        ),
        (CommandKind::Snapshot, r#"{"ok":true,"data":{"nodes":[]}}"#),
        (
            CommandKind::Snapshot,
            r#"{"ok":true,"data":{"nodes":[{}],"quality":{"state":"healthy"}}}"#,
        ),
        (
            CommandKind::Status,
            r#"{"ok":true,"data":{"state":"idle"}}"#,
        ),
        (
            CommandKind::CommandStatus,
            r#"{"ok":true,"data":{"state":"completed"}}"#,
        ),
        (CommandKind::Status, r#"{"ok":true}"#),
    ] {
        match decode(kind, body) {
            Err(InvalidReply::Data { kind: of, .. }) => assert_eq!(of, kind),
            other => panic!("{body} gave {other:?}"),
        }
    }
}

#[test]
fn a_complaint_does_not_repeat_what_was_answered() {
    let body = r#"{"ok":true,"data":{"nodes":"hunter2","quality":{"state":"healthy"}}}"#;
    let complaint = decode(CommandKind::Snapshot, body).unwrap_err().to_string();
    assert!(complaint.contains("expected a sequence"), "{complaint}");
    assert!(!complaint.contains("hunter2"), "{complaint}");
}

#[test]
fn no_value_of_a_reply_is_in_the_complaint_about_it() {
    const SECRET: &str = "7735199";
    let quoted = format!("\"{SECRET}\"");
    let odd = format!("\"`{SECRET}`, expected {SECRET} at\"");
    for value in [SECRET, &format!("-{SECRET}.5"), &quoted, &odd] {
        for (kind, body) in [
            (CommandKind::Type, format!(r#"{{"ok":{value}}}"#)),
            (CommandKind::Type, value.to_owned()),
            (CommandKind::Type, format!(r#"{{"ok":true,{value}}}"#)),
            (CommandKind::Type, format!("ok {value}")),
            (
                CommandKind::Snapshot,
                format!(r#"{{"ok":true,"data":{value}}}"#),
            ),
            (
                CommandKind::Snapshot,
                format!(r#"{{"ok":true,"data":{{"nodes":{value}}}}}"#),
            ),
            (
                CommandKind::Snapshot,
                format!(r#"{{"ok":true,"data":{{"nodes":[],"quality":{value}}}}}"#),
            ),
            (
                CommandKind::Status,
                format!(r#"{{"ok":true,"data":{{"uptimeMs":{{"a":{value}}}}}}}"#),
            ),
            (
                CommandKind::CommandStatus,
                format!(r#"{{"ok":true,"data":{{"commandId":[{value}]}}}}"#),
            ),
            (
                CommandKind::CommandStatus,
                format!(r#"{{"ok":true,"data":{{"commandId":"{SECRET} {SECRET}"}}}}"#),
            ),
            (
                CommandKind::Screenshot,
                format!(r#"{{"ok":true,"data":{{"imageBase64":"{SECRET}!"}}}}"#),
            ),
        ] {
            let complaint = decode(kind, &body).unwrap_err();
            let told = format!("{complaint} {complaint:?}");
            assert!(!told.contains(SECRET), "{told}");
        }
    }
    let missing = decode(CommandKind::Status, r#"{"ok":true,"data":{}}"#).unwrap_err();
    assert!(
        missing.to_string().contains("missing field `uptimeMs`"),
        "{missing}"
    );
}

#[test]
fn unknown_states_survive() {
    let body = r#"{"ok":true,"data":{"uptimeMs":1.5,"state":"dreaming","suppressedIssues":0,"recordedFailures":0}}"#;
    let Ok(Reply::Status(status)) = decode(CommandKind::Status, body).unwrap().result else {
        panic!("not a status");
    };
    assert_eq!(status.state, RunnerState::Other("dreaming".to_owned()));
    assert_eq!(status.uptime, Duration::from_micros(1500));

    let body = r#"{"ok":true,"data":{"nodes":[],"quality":{"state":"guessed"}}}"#;
    let Ok(Reply::Snapshot(snapshot)) = decode(CommandKind::Snapshot, body).unwrap().result else {
        panic!("not a snapshot");
    };
    assert_eq!(
        snapshot.quality.state,
        QualityState::Other("guessed".to_owned())
    );
}
