//! Requests against bytes written down from the specification, so that client
//! and simulator cannot share a mistake.

use std::time::Duration;

use fleetgate_runner::{
    AppAction, Button, Command, CommandKind, DeviceCommand, Request, TypedText,
};

use crate::build::{app, at, json, request, taps};

/// The twelve commands, the journal lookup, and every optional field.
fn goldens() -> Vec<(Request, &'static str)> {
    [gestures(), keys_and_reads(), device_commands()].concat()
}

fn gestures() -> Vec<(Request, &'static str)> {
    vec![
        (
            request(
                Some("c-2"),
                app(AppAction::Tap {
                    at: at(196.5, 420.0),
                    taps: taps(2),
                }),
            ),
            r#"{"command":"tap","commandId":"c-2","appBundleId":"com.apple.Preferences",
                "x":196.5,"y":420,"numberOfTaps":2}"#,
        ),
        (
            request(
                Some("c-3"),
                app(AppAction::LongPress {
                    at: at(-1.0, 0.25),
                    duration: None,
                }),
            ),
            r#"{"command":"longPress","commandId":"c-3","appBundleId":"com.apple.Preferences",
                "x":-1,"y":0.25}"#,
        ),
        (
            request(
                Some("c-4"),
                app(AppAction::LongPress {
                    at: at(1.0, 2.0),
                    duration: Some(Duration::from_millis(1200)),
                }),
            ),
            r#"{"command":"longPress","commandId":"c-4","appBundleId":"com.apple.Preferences",
                "x":1,"y":2,"durationMs":1200}"#,
        ),
        (
            request(
                Some("c-5"),
                app(AppAction::Drag {
                    from: at(10.0, 700.0),
                    to: at(10.0, 100.5),
                    duration: Some(Duration::from_millis(400)),
                    hold: Some(Duration::from_millis(500)),
                    settle: true,
                }),
            ),
            r#"{"command":"drag","commandId":"c-5","appBundleId":"com.apple.Preferences",
                "fromX":10,"fromY":700,"toX":10,"toY":100.5,"durationMs":400,"holdMs":500,"settle":true}"#,
        ),
        (
            request(
                Some("c-6"),
                app(AppAction::Drag {
                    from: at(0.0, 0.0),
                    to: at(1.0, 1.0),
                    duration: None,
                    hold: None,
                    settle: false,
                }),
            ),
            r#"{"command":"drag","commandId":"c-6","appBundleId":"com.apple.Preferences",
                "fromX":0,"fromY":0,"toX":1,"toY":1}"#,
        ),
    ]
}

fn keys_and_reads() -> Vec<(Request, &'static str)> {
    vec![
        (
            request(Some("c-1"), app(AppAction::Viewport)),
            r#"{"command":"viewport","commandId":"c-1","appBundleId":"com.apple.Preferences"}"#,
        ),
        (
            request(
                Some("c-7"),
                app(AppAction::Type {
                    text: TypedText::new("a/b \"ü\" \u{1f600}\n".to_owned()).unwrap(),
                }),
            ),
            r#"{"command":"type","commandId":"c-7","appBundleId":"com.apple.Preferences",
                "text":"a\/b \"\u00fc\" \ud83d\ude00\n"}"#,
        ),
        (
            request(Some("c-8"), app(AppAction::KeyboardReturn)),
            r#"{"command":"keyboardReturn","commandId":"c-8","appBundleId":"com.apple.Preferences"}"#,
        ),
        (
            request(Some("c-9"), app(AppAction::KeyboardDelete)),
            r#"{"command":"keyboardDelete","commandId":"c-9","appBundleId":"com.apple.Preferences"}"#,
        ),
        (
            request(Some("c-10"), app(AppAction::Snapshot)),
            r#"{"command":"snapshot","commandId":"c-10","appBundleId":"com.apple.Preferences"}"#,
        ),
    ]
}

fn device_commands() -> Vec<(Request, &'static str)> {
    vec![
        (
            request(None, Command::Device(DeviceCommand::Status)),
            r#"{"command":"status"}"#,
        ),
        (
            request(
                None,
                Command::Device(DeviceCommand::CommandStatus {
                    of: "c-7".parse().unwrap(),
                }),
            ),
            r#"{"command":"status","statusCommandId":"c-7"}"#,
        ),
        (
            request(
                Some("c-11"),
                Command::Device(DeviceCommand::Button {
                    button: Button::ActionButton,
                }),
            ),
            r#"{"command":"button","commandId":"c-11","button":"actionButton"}"#,
        ),
        (
            request(Some("c-12"), Command::Device(DeviceCommand::Screenshot)),
            r#"{"command":"screenshot","commandId":"c-12"}"#,
        ),
        (
            request(Some("c-13"), Command::Device(DeviceCommand::Shutdown)),
            r#"{"command":"shutdown","commandId":"c-13"}"#,
        ),
    ]
}

#[test]
fn every_command_is_written_as_the_specification_says() {
    for (request, golden) in goldens() {
        assert_eq!(
            json(&request.encode()),
            json(golden.as_bytes()),
            "{request:?}"
        );
    }
}

#[test]
fn every_command_is_read_as_the_specification_says() {
    for (request, golden) in goldens() {
        assert_eq!(Request::decode(golden.as_bytes()), Ok(request));
    }
}

#[test]
fn the_goldens_leave_no_command_out() {
    let mut kinds: Vec<CommandKind> = goldens()
        .iter()
        .map(|(request, _)| request.command.kind())
        .collect();
    kinds.dedup();
    assert_eq!(kinds.len(), CommandKind::ALL.len());
    assert!(CommandKind::ALL.iter().all(|kind| kinds.contains(kind)));
}

#[test]
fn each_button_has_the_name_that_the_specification_gives_it() {
    for (button, name) in [
        (Button::Home, "home"),
        (Button::VolumeUp, "volumeUp"),
        (Button::VolumeDown, "volumeDown"),
        (Button::ActionButton, "actionButton"),
    ] {
        let body = format!(r#"{{"command":"button","button":"{name}"}}"#);
        let request = request(None, Command::Device(DeviceCommand::Button { button }));
        assert_eq!(Request::decode(body.as_bytes()), Ok(request));
    }
}
