//! What a runner makes of requests that are odd, incomplete or wrong.

use std::time::Duration;

use fleetgate_runner::{
    AppAction, Command, CommandId, CommandKind, DeviceCommand, InvalidRequest, Request, RunnerCode,
};

use crate::build::{app, at, json, request, taps};

fn verdict(body: &str) -> (RunnerCode, String) {
    match Request::decode(body.as_bytes()) {
        Err(InvalidRequest::Unusable { verdict, .. }) => (verdict.code, verdict.message),
        other => panic!("{body} gave {other:?}"),
    }
}

fn assert_undecodable(body: &str) {
    match Request::decode(body.as_bytes()) {
        Err(error @ InvalidRequest::Undecodable(_)) => {
            assert_eq!(error.status(), 400);
            assert_eq!(error.into_verdict().code, RunnerCode::InvalidRequest);
        }
        other => panic!("{body} gave {other:?}"),
    }
}

#[test]
fn nulls_are_absent_fields_and_unknown_fields_are_ignored() {
    let body = br#"{"text":null,"x":1,"y":2,"numberOfTaps":null,"commandId":null,"settle":null,
        "appBundleId":"com.apple.Preferences","command":"tap","future":{"deep":[[[]]]}}"#;
    let tap = app(AppAction::Tap {
        at: at(1.0, 2.0),
        taps: taps(1),
    });
    assert_eq!(Request::decode(body), Ok(request(None, tap)));
}

#[test]
fn ids_are_trimmed_and_a_blank_one_counts_as_absent() {
    let body = br#"{"command":"snapshot","commandId":" \t c-1\n","appBundleId":"  com.apple.Preferences "}"#;
    assert_eq!(
        Request::decode(body),
        Ok(request(Some("c-1"), app(AppAction::Snapshot)))
    );

    let body = br#"{"command":"screenshot","commandId":"  "}"#;
    let screenshot = Command::Device(DeviceCommand::Screenshot);
    assert_eq!(Request::decode(body), Ok(request(None, screenshot)));

    let body = br#"{"command":"status","statusCommandId":""}"#;
    assert_eq!(
        Request::decode(body),
        Ok(request(None, Command::Device(DeviceCommand::Status)))
    );
}

#[test]
fn a_command_id_never_travels_with_status() {
    for command in [
        DeviceCommand::Status,
        DeviceCommand::CommandStatus {
            of: "c-1".parse().unwrap(),
        },
    ] {
        let sent = request(Some("c-2"), Command::Device(command.clone())).encode();
        assert_eq!(json(&sent).get("commandId"), None);
        let received = request(None, Command::Device(command));
        assert_eq!(Request::decode(&sent), Ok(received));
    }
    let body = br#"{"command":"status","commandId":"c-2"}"#;
    assert_eq!(
        Request::decode(body),
        Ok(request(None, Command::Device(DeviceCommand::Status)))
    );
}

#[test]
fn a_missing_app_comes_before_whatever_else_is_wrong() {
    for command in [
        "viewport",
        "tap",
        "longPress",
        "drag",
        "type",
        "keyboardReturn",
        "keyboardDelete",
        "snapshot",
    ] {
        for app in ["", r#","appBundleId":null"#, r#","appBundleId":" ""#] {
            let (code, _) = verdict(&format!(
                r#"{{"command":"{command}","numberOfTaps":0{app}}}"#
            ));
            assert_eq!(code, RunnerCode::AppBundleIdRequired, "{command}");
        }
    }
}

#[test]
fn a_well_typed_request_that_lacks_something_is_an_ordinary_verdict() {
    for (body, named) in [
        (r#""command":"tap","y":1"#, "x"),
        (r#""command":"tap","x":1"#, "y"),
        (
            r#""command":"tap","x":1,"y":1,"numberOfTaps":0"#,
            "numberOfTaps",
        ),
        (
            r#""command":"tap","x":1,"y":1,"numberOfTaps":-2"#,
            "numberOfTaps",
        ),
        (
            r#""command":"tap","x":1,"y":1,"numberOfTaps":4294967296"#,
            "numberOfTaps",
        ),
        (r#""command":"longPress","y":1"#, "x"),
        (r#""command":"longPress","x":1"#, "y"),
        (r#""command":"drag","fromY":1,"toX":1,"toY":1"#, "fromX"),
        (r#""command":"drag","fromX":1,"toX":1,"toY":1"#, "fromY"),
        (r#""command":"drag","fromX":1,"fromY":1,"toY":1"#, "toX"),
        (r#""command":"drag","fromX":1,"fromY":1,"toX":1"#, "toY"),
        (r#""command":"type""#, "text"),
        (r#""command":"type","text":"""#, "text"),
        (r#""command":"button""#, "button"),
        (r#""command":"button","button":"power""#, "button"),
        (
            r#""command":"snapshot","commandId":"two words""#,
            "commandId",
        ),
    ] {
        let body = format!(r#"{{{body},"appBundleId":"com.apple.Preferences"}}"#);
        let (code, message) = verdict(&body);
        assert_eq!(code, RunnerCode::InvalidRequest, "{body}");
        assert!(message.contains(named), "{body}: {message}");
        assert_eq!(Request::decode(body.as_bytes()).unwrap_err().status(), 500);
    }
}

#[test]
fn an_unusable_request_keeps_what_it_is_journaled_under() {
    for (body, id, kind) in [
        (
            r#"{"command":"tap","commandId":" c-1 "}"#,
            Some("c-1"),
            CommandKind::Tap,
        ),
        (
            r#"{"command":"button","commandId":"c-1"}"#,
            Some("c-1"),
            CommandKind::Button,
        ),
        (
            r#"{"command":"button","commandId":"two words"}"#,
            None,
            CommandKind::Button,
        ),
        (
            r#"{"command":"shutdown","commandId":"two words"}"#,
            None,
            CommandKind::Shutdown,
        ),
        (
            r#"{"command":"status","commandId":"c-1","statusCommandId":"two words"}"#,
            None,
            CommandKind::Status,
        ),
    ] {
        let Err(InvalidRequest::Unusable {
            command_id,
            kind: of,
            ..
        }) = Request::decode(body.as_bytes())
        else {
            panic!("{body} is usable");
        };
        assert_eq!(command_id.as_ref().map(CommandId::as_str), id, "{body}");
        assert_eq!(of, kind, "{body}");
    }
}

#[test]
fn a_wrong_type_in_any_known_field_makes_the_whole_payload_undecodable() {
    for field in [
        "commandId",
        "statusCommandId",
        "appBundleId",
        "text",
        "button",
    ] {
        assert_undecodable(&format!(r#"{{"command":"shutdown","{field}":1}}"#));
    }
    for field in [
        "x",
        "y",
        "numberOfTaps",
        "fromX",
        "fromY",
        "toX",
        "toY",
        "durationMs",
        "holdMs",
    ] {
        assert_undecodable(&format!(r#"{{"command":"shutdown","{field}":"1"}}"#));
    }
    assert_undecodable(r#"{"command":"shutdown","settle":1}"#);
    assert_undecodable(r#"{"command":"shutdown","numberOfTaps":1.5}"#);
    assert_undecodable(r#"{"command":"shutdown","x":1e999}"#);
}

#[test]
fn what_is_not_a_request_is_undecodable() {
    for body in [
        "",
        "null",
        "[]",
        "{}",
        "{\"command\":",
        r#"{"command":null}"#,
        r#"{"command":7}"#,
        r#"{"command":"fly"}"#,
        r#"{"command":"commandStatus"}"#,
        r#"{"command":"Tap"}"#,
        r#"{"command":"status"} trailing"#,
    ] {
        assert_undecodable(body);
    }
    assert!(Request::decode(b"{\"command\":\"type\",\"text\":\"\xff\"}").is_err());
}

#[test]
fn a_complaint_does_not_repeat_what_was_sent() {
    let body = r#"{"command":"shutdown","settle":"correct \"horse\" battery"}"#;
    let complaint = Request::decode(body.as_bytes()).unwrap_err().to_string();
    assert!(complaint.contains("expected a boolean"), "{complaint}");
    assert!(
        !complaint.contains("horse") && !complaint.contains("battery"),
        "{complaint}"
    );
}

#[test]
fn durations_are_read_from_any_number_and_none_is_negative() {
    for (millis, duration) in [
        ("800", Duration::from_millis(800)),
        ("800.0", Duration::from_millis(800)),
        ("0.5", Duration::from_micros(500)),
        ("-1", Duration::ZERO),
        ("-1.5", Duration::ZERO),
        ("18446744073709551615", Duration::from_millis(u64::MAX)),
        ("1e300", Duration::from_millis(u64::MAX)),
    ] {
        let body = format!(
            r#"{{"command":"longPress","x":0,"y":0,"durationMs":{millis},"appBundleId":"com.apple.Preferences"}}"#
        );
        let press = app(AppAction::LongPress {
            at: at(0.0, 0.0),
            duration: Some(duration),
        });
        assert_eq!(
            Request::decode(body.as_bytes()),
            Ok(request(None, press)),
            "{millis}"
        );
    }
}
