//! Requests: what each field becomes, and which are refused.

use std::num::NonZeroU32;
use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{
    AppAction, AppPoint, Button, Command, CommandKind, DeviceCommand, MAX_REQUEST_BYTES, Point,
    Request, UnitPoint,
};

use super::duration;
use crate::convert::{CommandRequest, ask};

#[expect(clippy::unnecessary_wraps, reason = "a field of a message is optional")]
fn absolute(x: f64, y: f64) -> Option<pb::Point> {
    Some(pb::Point {
        place: Some(pb::point::Place::Absolute(pb::AbsolutePoint { x, y })),
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a field of a message is optional")]
fn normalized(x: f64, y: f64) -> Option<pb::Point> {
    Some(pb::Point {
        place: Some(pb::point::Place::Normalized(pb::NormalizedPoint { x, y })),
    })
}

fn tap() -> pb::TapRequest {
    pb::TapRequest {
        device: " left ".to_owned(),
        command_id: Some("c-1".to_owned()),
        app_bundle_id: "com.example.app".to_owned(),
        point: absolute(1.0, 2.0),
        ..pb::TapRequest::default()
    }
}

fn drag() -> pb::DragRequest {
    pb::DragRequest {
        device: "left".to_owned(),
        app_bundle_id: "com.example.app".to_owned(),
        from: absolute(1.0, 2.0),
        to: normalized(0.0, 1.0),
        ..pb::DragRequest::default()
    }
}

fn type_text(text: String) -> pb::TypeTextRequest {
    pb::TypeTextRequest {
        device: "left".to_owned(),
        app_bundle_id: "com.example.app".to_owned(),
        text,
        ..pb::TypeTextRequest::default()
    }
}

fn action<Q: CommandRequest>(request: Q) -> AppAction<Point> {
    match ask(request).unwrap().command {
        Command::App(command) => {
            assert_eq!(command.bundle_id.as_str(), "com.example.app");
            command.action
        }
        Command::Device(command) => panic!("not an app's: {command:?}"),
    }
}

/// The fields that are refused.
fn refused<Q: CommandRequest>(request: Q) -> Vec<String> {
    let invalid = ask(request).unwrap_err();
    invalid
        .violations
        .into_iter()
        .map(|violation| violation.field)
        .collect()
}

#[test]
fn a_tap_keeps_its_point_and_count() {
    let asked = ask(tap()).unwrap();
    assert_eq!(
        (asked.device.as_str(), asked.command_id.as_str()),
        ("left", "c-1")
    );
    let at = Point::Absolute(AppPoint::new(1.0, 2.0).unwrap());
    assert_eq!(
        action(tap()),
        AppAction::Tap {
            at,
            taps: NonZeroU32::MIN
        }
    );

    let twice = pb::TapRequest {
        point: normalized(0.5, 1.0),
        number_of_taps: Some(2),
        ..tap()
    };
    let at = Point::Normalized(UnitPoint::new(0.5, 1.0).unwrap());
    assert_eq!(
        action(twice),
        AppAction::Tap {
            at,
            taps: NonZeroU32::new(2).unwrap()
        }
    );
}

#[test]
fn a_drag_keeps_both_ends_and_its_times() {
    let request = pb::DragRequest {
        duration: duration(1, 500_000_000),
        hold: duration(0, 0),
        settle: true,
        ..drag()
    };
    assert_eq!(
        action(request),
        AppAction::Drag {
            from: Point::Absolute(AppPoint::new(1.0, 2.0).unwrap()),
            to: Point::Normalized(UnitPoint::new(0.0, 1.0).unwrap()),
            duration: Some(Duration::from_millis(1500)),
            hold: Some(Duration::ZERO),
            settle: true,
        }
    );
}

#[test]
fn every_other_request_becomes_its_command() {
    let app = || "com.example.app".to_owned();
    let device = || "left".to_owned();
    macro_rules! becomes {
        ($request:ident { $($field:ident: $value:expr),* } => $kind:ident) => {
            let request = pb::$request { device: device(), $($field: $value,)* ..pb::$request::default() };
            assert_eq!(ask(request).unwrap().command.kind(), CommandKind::$kind);
        };
    }
    becomes!(GetViewportRequest { app_bundle_id: app() } => Viewport);
    becomes!(LongPressRequest { app_bundle_id: app(), point: absolute(0.0, 0.0) } => LongPress);
    becomes!(TypeTextRequest { app_bundle_id: app(), text: "hi".to_owned() } => Type);
    becomes!(PressKeyboardReturnRequest { app_bundle_id: app() } => KeyboardReturn);
    becomes!(PressKeyboardDeleteRequest { app_bundle_id: app() } => KeyboardDelete);
    becomes!(CaptureSnapshotRequest { app_bundle_id: app() } => Snapshot);
    becomes!(PressButtonRequest { button: pb::Button::Home.into() } => Button);
    becomes!(CaptureScreenshotRequest {} => Screenshot);
    becomes!(ShutdownRunnerRequest {} => Shutdown);

    let status = pb::GetRunnerStatusRequest { device: device() };
    assert_eq!(
        ask(status).unwrap().command,
        Command::Device(DeviceCommand::Status)
    );
    let of = "c-9".parse().unwrap();
    let lookup = pb::GetRunnerCommandStatusRequest {
        device: device(),
        command_id: "c-9".to_owned(),
    };
    let asked = ask(lookup).unwrap();
    assert_eq!(
        asked.command,
        Command::Device(DeviceCommand::CommandStatus { of })
    );
    assert_ne!(
        asked.command_id.as_str(),
        "c-9",
        "the look-up is a command of its own"
    );
}

#[test]
fn every_button_becomes_itself_and_no_other() {
    for (button, expected) in [
        (pb::Button::Home, Button::Home),
        (pb::Button::VolumeUp, Button::VolumeUp),
        (pb::Button::VolumeDown, Button::VolumeDown),
        (pb::Button::ActionButton, Button::ActionButton),
    ] {
        let request = pb::PressButtonRequest {
            device: "left".to_owned(),
            button: button.into(),
            ..Default::default()
        };
        let command = ask(request).unwrap().command;
        assert_eq!(
            command,
            Command::Device(DeviceCommand::Button { button: expected })
        );
    }
    for button in [0, 99] {
        let request = pb::PressButtonRequest {
            device: "left".to_owned(),
            button,
            ..Default::default()
        };
        assert_eq!(refused(request), ["button"]);
    }
}

#[test]
fn an_id_is_minted_where_none_is_given() {
    let one = ask(pb::TapRequest {
        command_id: None,
        ..tap()
    })
    .unwrap()
    .command_id;
    let other = ask(pb::TapRequest {
        command_id: None,
        ..tap()
    })
    .unwrap()
    .command_id;
    assert_ne!(one, other);
    for id in ["", "two words", &"x".repeat(129)] {
        assert_eq!(
            refused(pb::TapRequest {
                command_id: Some(id.to_owned()),
                ..tap()
            }),
            ["command_id"]
        );
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let request = pb::DragRequest {
        device: " ".to_owned(),
        command_id: Some(String::new()),
        lease: Some(pb::LeaseRef::default()),
        app_bundle_id: "no spaces".to_owned(),
        from: absolute(f64::NAN, f64::INFINITY),
        to: None,
        duration: duration(-1, 0),
        hold: duration(0, 1),
        settle: false,
    };
    let invalid = ask(request).unwrap_err();
    assert_eq!(invalid.device.as_deref(), Some(" "));
    let mut fields: Vec<_> = invalid
        .violations
        .into_iter()
        .map(|violation| violation.field)
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        [
            "app_bundle_id",
            "command_id",
            "device",
            "duration",
            "from.absolute.x",
            "from.absolute.y",
            "hold",
            "lease.id",
            "to",
        ]
    );
}

#[test]
fn a_place_must_be_on_the_screen_or_at_least_finite() {
    for (point, fields) in [
        (None, &["point"][..]),
        (Some(pb::Point { place: None }), &["point"]),
        (absolute(f64::NEG_INFINITY, 1.0), &["point.absolute.x"]),
        (normalized(-0.1, 0.5), &["point.normalized.x"]),
        (normalized(0.5, 1.1), &["point.normalized.y"]),
        (
            normalized(f64::NAN, f64::NAN),
            &["point.normalized.x", "point.normalized.y"],
        ),
    ] {
        assert_eq!(refused(pb::TapRequest { point, ..tap() }), fields);
    }
    action(pb::TapRequest {
        point: absolute(-3.0, 99_999.0),
        ..tap()
    });
}

#[test]
fn no_tap_at_all_is_refused() {
    assert_eq!(
        refused(pb::TapRequest {
            number_of_taps: Some(0),
            ..tap()
        }),
        ["number_of_taps"]
    );
}

#[test]
fn a_duration_is_whole_milliseconds_within_the_runners_budget() {
    for wrong in [
        duration(-1, 0),
        duration(0, -1),
        duration(0, 999_999),
        duration(75, 1_000_000),
        duration(i64::MAX, 0),
    ] {
        assert_eq!(
            refused(pb::DragRequest {
                hold: wrong,
                ..drag()
            }),
            ["hold"],
            "{wrong:?}"
        );
    }
    for right in [
        None,
        duration(0, 0),
        duration(0, 1_000_000),
        duration(75, 0),
    ] {
        action(pb::DragRequest {
            hold: right,
            ..drag()
        });
    }
}

#[test]
fn text_must_fit_into_a_request_and_is_never_repeated() {
    assert_eq!(refused(type_text(String::new())), ["text"]);
    let largest = MAX_REQUEST_BYTES - 1024;
    action(type_text("x".repeat(largest)));
    assert_eq!(refused(type_text("x".repeat(largest + 1))), ["text"]);
    assert_eq!(
        refused(type_text("\u{1}".repeat(largest / 6 + 1))),
        ["text"],
        "as JSON escapes it"
    );
    let invalid = ask(type_text("CANARY".repeat(largest))).unwrap_err();
    assert!(!format!("{invalid:?}").contains("CANARY"));
}

#[test]
fn the_largest_text_that_is_taken_is_one_that_the_runner_takes() {
    let text = "\"".repeat((MAX_REQUEST_BYTES - 1024) / 2);
    let request = pb::TypeTextRequest {
        command_id: Some("x".repeat(128)),
        app_bundle_id: "x".repeat(255),
        ..type_text(text)
    };
    let asked = ask(request).unwrap();
    let request = Request {
        command_id: Some(asked.command_id),
        command: asked.command.resolve(None).unwrap(),
    };
    let header = 256;
    assert!(request.encode().len() + header <= MAX_REQUEST_BYTES);
}
