//! What a command is, before it is ever sent.

use fleetgate_runner::{
    AppAction, AppCommand, AppPoint, Button, Command, CommandClass, CommandKind, DeviceCommand,
    Point, TypedText, UnitPoint, Viewport,
};
use serde_json::{Value, json};

use crate::build::{app, at, taps};

const VIEWPORT: Viewport = Viewport {
    x: 10.0,
    y: 20.0,
    width: 400.0,
    height: 800.0,
};

fn unit(x: f64, y: f64) -> Point {
    Point::Normalized(UnitPoint::new(x, y).unwrap())
}

fn in_app(action: AppAction<Point>) -> Command<Point> {
    Command::App(AppCommand {
        bundle_id: "com.apple.Preferences".parse().unwrap(),
        action,
    })
}

fn typed(text: &str) -> Command {
    app(AppAction::Type {
        text: TypedText::new(text.to_owned()).unwrap(),
    })
}

#[test]
fn a_mutation_is_what_may_be_sent_once_only() {
    let mutations = CommandKind::ALL
        .into_iter()
        .filter(|kind| kind.is_mutation());
    assert_eq!(
        mutations.map(CommandKind::as_str).collect::<Vec<_>>(),
        [
            "tap",
            "longPress",
            "drag",
            "type",
            "keyboardReturn",
            "keyboardDelete",
            "button",
            "shutdown"
        ]
    );
}

#[test]
fn only_status_bypasses_the_queue_and_only_pictures_and_trees_are_not_retained() {
    let bypass = CommandKind::ALL
        .into_iter()
        .filter(|kind| kind.bypasses_queue());
    assert_eq!(
        bypass.collect::<Vec<_>>(),
        [CommandKind::Status, CommandKind::CommandStatus]
    );
    let lost = CommandKind::ALL
        .into_iter()
        .filter(|kind| !kind.retains_response());
    assert_eq!(
        lost.collect::<Vec<_>>(),
        [CommandKind::Snapshot, CommandKind::Screenshot]
    );
}

#[test]
fn each_command_runs_under_the_budget_that_the_specification_gives_it() {
    for kind in CommandKind::ALL {
        let class = match kind.as_str() {
            "type" => CommandClass::Type,
            "tap" | "longPress" | "drag" => CommandClass::Gesture,
            "snapshot" => CommandClass::Snapshot,
            _ => CommandClass::Other,
        };
        assert_eq!(kind.class(), class, "{kind}");
    }
}

#[test]
fn a_kind_survives_its_word() {
    for kind in CommandKind::ALL {
        assert_eq!(CommandKind::from_word(kind.as_str()), Some(kind));
        assert_eq!(
            serde_json::from_value::<CommandKind>(json!(kind)).unwrap(),
            kind
        );
    }
    assert_eq!(CommandKind::from_word("fly"), None);
    assert!(serde_json::from_value::<CommandKind>(json!("fly")).is_err());
}

#[test]
fn points_are_finite() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(AppPoint::new(bad, 0.0), None);
        assert_eq!(AppPoint::new(0.0, bad), None);
        assert_eq!(UnitPoint::new(bad, 0.0), None);
        assert_eq!(UnitPoint::new(0.0, bad), None);
    }
}

#[test]
fn fractions_are_clamped_into_the_viewport() {
    for ((x, y), expected) in [
        ((0.0, 0.0), at(10.0, 20.0)),
        ((0.5, 0.25), at(210.0, 220.0)),
        ((1.0, 1.0), at(410.0, 820.0)),
        ((-3.0, 7.0), at(10.0, 820.0)),
    ] {
        assert_eq!(VIEWPORT.at(UnitPoint::new(x, y).unwrap()), Some(expected));
    }
}

#[test]
fn nothing_is_at_an_unusable_viewport() {
    let middle = UnitPoint::new(0.5, 0.5).unwrap();
    for unusable in [
        Viewport {
            width: 0.0,
            ..VIEWPORT
        },
        Viewport {
            height: -1.0,
            ..VIEWPORT
        },
        Viewport {
            width: f64::NAN,
            ..VIEWPORT
        },
        Viewport {
            height: f64::INFINITY,
            ..VIEWPORT
        },
        Viewport {
            x: f64::NAN,
            ..VIEWPORT
        },
        Viewport {
            x: f64::MAX,
            width: f64::MAX,
            ..VIEWPORT
        },
    ] {
        assert!(!unusable.is_usable());
        assert_eq!(unusable.at(middle), None);
    }
}

#[test]
fn a_relative_point_needs_a_viewport_first() {
    let read = Some(app(AppAction::Viewport));
    let absolute = Point::Absolute(at(1.0, 2.0));
    let drag = |from, to| {
        in_app(AppAction::Drag {
            from,
            to,
            duration: None,
            hold: None,
            settle: false,
        })
    };
    for (command, needed) in [
        (
            in_app(AppAction::Tap {
                at: unit(0.5, 0.5),
                taps: taps(1),
            }),
            true,
        ),
        (
            in_app(AppAction::Tap {
                at: absolute,
                taps: taps(1),
            }),
            false,
        ),
        (
            in_app(AppAction::LongPress {
                at: unit(0.5, 0.5),
                duration: None,
            }),
            true,
        ),
        (
            in_app(AppAction::LongPress {
                at: absolute,
                duration: None,
            }),
            false,
        ),
        (drag(unit(0.0, 0.0), absolute), true),
        (drag(absolute, unit(0.0, 0.0)), true),
        (drag(absolute, absolute), false),
        (in_app(AppAction::Snapshot), false),
        (Command::Device(DeviceCommand::Screenshot), false),
    ] {
        assert_eq!(
            command.viewport_first(),
            read.clone().filter(|_| needed),
            "{command:?}"
        );
        assert_eq!(
            command.clone().resolve(None).is_none(),
            needed,
            "{command:?}"
        );
        assert!(command.resolve(Some(&VIEWPORT)).is_some());
    }
}

#[test]
fn resolving_changes_relative_points_and_nothing_else() {
    let drag = in_app(AppAction::Drag {
        from: unit(0.0, 1.0),
        to: Point::Absolute(at(5.0, 6.0)),
        duration: None,
        hold: None,
        settle: true,
    });
    assert_eq!(
        drag.resolve(Some(&VIEWPORT)),
        Some(app(AppAction::Drag {
            from: at(10.0, 820.0),
            to: at(5.0, 6.0),
            duration: None,
            hold: None,
            settle: true,
        }))
    );
}

#[test]
fn typed_text_is_never_empty_and_is_formatted_as_its_length() {
    assert_eq!(TypedText::new(String::new()), None);
    let formatted = format!("{:?}", typed("hunter2 é"));
    assert!(formatted.contains("9 chars"), "{formatted}");
    assert!(!formatted.contains("hunter2"), "{formatted}");
}

#[test]
fn words_about_typed_text_are_redacted() {
    let echo = || "cannot type hunter2: hunter2 is odd".to_owned();
    assert_eq!(
        typed("hunter2").redact(echo()),
        "cannot type [redacted]: [redacted] is odd"
    );
    assert_eq!(typed("other").redact(echo()), echo());
    let words = || "nothing has focus: 'hi' was not typed".to_owned();
    assert_eq!(
        typed("hi").redact(words()),
        "nothing has focus: '[redacted]' was not typed",
        "a short text is no part of a word"
    );
    assert_eq!(
        typed("hing").redact(words()),
        "not[redacted] has focus: 'hi' was not typed"
    );
    assert_eq!(app(AppAction::Snapshot).redact(echo()), echo());
}

#[test]
fn a_record_holds_the_parameters_and_of_text_only_the_length() {
    for (command, recorded) in [
        (app(AppAction::Viewport), json!({})),
        (
            app(AppAction::Tap {
                at: at(1.5, 2.0),
                taps: taps(3),
            }),
            json!({ "x": 1.5, "y": 2, "numberOfTaps": 3 }),
        ),
        (typed("hunter2 é"), json!({ "textLength": 9 })),
        (
            Command::Device(DeviceCommand::Button {
                button: Button::VolumeUp,
            }),
            json!({ "button": "volumeUp" }),
        ),
        (
            Command::Device(DeviceCommand::CommandStatus {
                of: "c-1".parse().unwrap(),
            }),
            json!({ "statusCommandId": "c-1" }),
        ),
    ] {
        assert_eq!(Value::Object(command.recorded()), recorded);
    }
}
