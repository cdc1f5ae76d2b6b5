//! Envelopes against bytes written down from the specification.

use std::time::Duration;

use bytes::Bytes;
use fleetgate_runner::{
    CommandKind, Envelope, Node, Quality, QualityState, Rect, Reply, RunnerCode, RunnerState,
    RunnerStatus, Screenshot, Snapshot, Viewport,
};
use serde_json::Value;

use crate::build::{done, failed, json};

fn ok(reply: Reply) -> Envelope {
    Envelope::from(Ok(reply))
}

fn snapshot() -> Snapshot {
    Snapshot {
        nodes: vec![
            Node {
                index: 0,
                kind: "Application".to_owned(),
                label: None,
                identifier: None,
                value: None,
                rect: Rect {
                    x: 0.0,
                    y: 0.0,
                    width: 393.0,
                    height: 852.0,
                },
                enabled: None,
                focused: None,
                selected: None,
                depth: 0,
                parent_index: None,
            },
            Node {
                index: 1,
                kind: "Button".to_owned(),
                label: Some("General".to_owned()),
                identifier: Some("com.apple.settings.general".to_owned()),
                value: Some("1/2".to_owned()),
                rect: Rect {
                    x: 16.0,
                    y: 768.7,
                    width: 361.0,
                    height: 52.0,
                },
                enabled: Some(true),
                focused: Some(false),
                selected: Some(true),
                depth: 3,
                parent_index: Some(0),
            },
        ],
        quality: Quality {
            state: QualityState::Degraded,
            backend: "xctest".to_owned(),
            reason: Some("too many nodes".to_owned()),
            reason_code: Some("node_cap".to_owned()),
        },
    }
}

/// Every shape that an envelope takes on the wire.
fn goldens() -> Vec<(CommandKind, Envelope, &'static str)> {
    vec![
        (
            CommandKind::Viewport,
            ok(Reply::Viewport(Viewport {
                x: 0.0,
                y: 0.0,
                width: 393.0,
                height: 852.5,
            })),
            r#"{"ok":true,"data":{"x":0,"y":0,"width":393,"height":852.5}}"#,
        ),
        (
            CommandKind::Tap,
            ok(done("tapped")),
            r#"{"ok":true,"data":{"message":"tapped"}}"#,
        ),
        (
            CommandKind::Drag,
            Envelope {
                reactivated: true,
                warning: Some("look/again".to_owned()),
                result: Ok(done("dragged")),
            },
            r#"{"ok":true,"data":{"message":"dragged"},"reactivated":true,"warning":"look\/again"}"#,
        ),
        (
            CommandKind::Shutdown,
            ok(done("shutting down")),
            r#"{"ok":true,"data":{"message":"shutting down"}}"#,
        ),
        (
            CommandKind::Snapshot,
            ok(Reply::Snapshot(snapshot())),
            r#"{"ok":true,"data":{"nodes":[
                {"index":0,"type":"Application","rect":{"x":0,"y":0,"width":393,"height":852},"depth":0},
                {"index":1,"type":"Button","label":"General","identifier":"com.apple.settings.general",
                 "value":"1\/2","rect":{"x":16,"y":768.7,"width":361,"height":52},"enabled":true,
                 "focused":false,"selected":true,"depth":3,"parentIndex":0}],
                "quality":{"state":"degraded","backend":"xctest","reason":"too many nodes","reasonCode":"node_cap"}}}"#,
        ),
        (
            CommandKind::Screenshot,
            ok(Reply::Screenshot(Screenshot {
                png: Bytes::from_static(b"\x89PNG\r\n\x1a\n\xff\xff\xff"),
            })),
            r#"{"ok":true,"data":{"imageBase64":"iVBORw0KGgr\/\/\/8="}}"#,
        ),
        (
            CommandKind::Status,
            ok(Reply::Status(RunnerStatus {
                uptime: Duration::from_secs(86_399),
                state: RunnerState::Wedged,
                suppressed_issues: 3,
                recorded_failures: 0,
            })),
            r#"{"ok":true,"data":{"uptimeMs":86399000,"state":"wedged","suppressedIssues":3,"recordedFailures":0}}"#,
        ),
        (
            CommandKind::Button,
            Envelope::from(Err(failed(
                RunnerCode::UnsupportedOperation,
                "no Action button",
                Some("press another"),
            ))),
            r#"{"ok":false,"error":{"code":"UNSUPPORTED_OPERATION","message":"no Action button","hint":"press another"}}"#,
        ),
        (
            CommandKind::Tap,
            Envelope {
                reactivated: true,
                ..Envelope::from(Err(failed(RunnerCode::CommandFailed, "thrown", None)))
            },
            r#"{"ok":false,"error":{"code":"COMMAND_FAILED","message":"thrown"},"reactivated":true}"#,
        ),
    ]
}

#[test]
fn every_shape_is_written_as_the_specification_says() {
    for (_, envelope, golden) in goldens() {
        // Numbers are compared by value: 393 and 393.0 are one number in JSON.
        let (written, golden) = (json(&envelope.encode()), json(golden.as_bytes()));
        assert_eq!(floats(written), floats(golden), "{envelope:?}");
    }
}

fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(values) => values.into_iter().map(floats).collect(),
        Value::Object(object) => object
            .into_iter()
            .map(|(key, value)| (key, floats(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Null | Value::Bool(_) | Value::String(_) => value,
    }
}

#[test]
fn every_shape_is_read_as_the_specification_says() {
    for (kind, envelope, golden) in goldens() {
        assert_eq!(Envelope::decode(kind, golden.as_bytes()), Ok(envelope));
    }
}

#[test]
fn the_http_status_follows_the_verdict() {
    assert_eq!(ok(done("")).status(), 200);
    assert_eq!(
        Envelope::from(Err(failed(RunnerCode::RunnerBusy, "", None))).status(),
        500
    );
}

#[test]
fn an_element_without_geometry_is_written_with_zeroes() {
    let mut snapshot = snapshot();
    snapshot.nodes[1].rect = Rect {
        x: f64::INFINITY,
        y: f64::NAN,
        width: 0.0,
        height: -0.5,
    };
    let written = json(&ok(Reply::Snapshot(snapshot)).encode());
    assert_eq!(
        written["data"]["nodes"][1]["rect"],
        json(br#"{"x":0,"y":0,"width":0,"height":-0.5}"#)
    );
}

#[test]
fn a_picture_is_formatted_as_its_size() {
    let (_, envelope, _) = goldens()
        .into_iter()
        .find(|(kind, ..)| *kind == CommandKind::Screenshot)
        .unwrap();
    assert!(format!("{envelope:?}").contains("Screenshot(11 bytes)"));
}
