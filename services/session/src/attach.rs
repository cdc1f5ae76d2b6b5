//! Whether two requests with one command id are the same request. Pure.
//!
//! They are if they differ in nothing that their callers gave; points are
//! compared as given, before anything is resolved, and texts by themselves.

use fleetgate_runner::{AppAction, AppCommand, Command, DeviceCommand, Point};

/// What two commands differ in, by the names of the API's fields; of commands
/// of two kinds only that. Empty if they are equal.
pub(crate) fn differing(one: &Command<Point>, other: &Command<Point>) -> Vec<&'static str> {
    if one.kind() != other.kind() {
        return vec!["kind"];
    }
    let app = ("app_bundle_id", one.bundle_id() == other.bundle_id());
    let rest = match (one, other) {
        (
            Command::App(AppCommand { action: one, .. }),
            Command::App(AppCommand { action: other, .. }),
        ) => in_action(one, other),
        (Command::Device(one), Command::Device(other)) => in_device_command(one, other),
        // Never of one kind.
        (Command::App(_), Command::Device(_)) | (Command::Device(_), Command::App(_)) => Vec::new(),
    };
    let fields = std::iter::once(app).chain(rest);
    fields
        .filter_map(|(name, equal)| (!equal).then_some(name))
        .collect()
}

/// Each field by its name, and whether it is the same.
type Fields = Vec<(&'static str, bool)>;

fn in_action(one: &AppAction<Point>, other: &AppAction<Point>) -> Fields {
    use AppAction::{
        Drag, KeyboardDelete, KeyboardReturn, LongPress, Snapshot, Tap, Type, Viewport,
    };
    match (one, other) {
        (
            Tap { at, taps },
            Tap {
                at: at2,
                taps: taps2,
            },
        ) => {
            vec![("point", at == at2), ("number_of_taps", taps == taps2)]
        }
        (
            LongPress { at, duration },
            LongPress {
                at: at2,
                duration: duration2,
            },
        ) => vec![("point", at == at2), ("duration", duration == duration2)],
        (
            Drag {
                from,
                to,
                duration,
                hold,
                settle,
            },
            Drag {
                from: from2,
                to: to2,
                duration: duration2,
                hold: hold2,
                settle: settle2,
            },
        ) => vec![
            ("from", from == from2),
            ("to", to == to2),
            ("duration", duration == duration2),
            ("hold", hold == hold2),
            ("settle", settle == settle2),
        ],
        (Type { text }, Type { text: text2 }) => vec![("text", text == text2)],
        // The others have no fields, and two kinds are not compared.
        (
            Viewport
            | Tap { .. }
            | LongPress { .. }
            | Drag { .. }
            | Type { .. }
            | KeyboardReturn
            | KeyboardDelete
            | Snapshot,
            Viewport
            | Tap { .. }
            | LongPress { .. }
            | Drag { .. }
            | Type { .. }
            | KeyboardReturn
            | KeyboardDelete
            | Snapshot,
        ) => Vec::new(),
    }
}

fn in_device_command(one: &DeviceCommand, other: &DeviceCommand) -> Fields {
    use DeviceCommand::{Button, CommandStatus, Screenshot, Shutdown, Status};
    match (one, other) {
        (Button { button }, Button { button: button2 }) => vec![("button", button == button2)],
        (CommandStatus { of }, CommandStatus { of: of2 }) => vec![("command_id", of == of2)],
        (
            Status | CommandStatus { .. } | Button { .. } | Screenshot | Shutdown,
            Status | CommandStatus { .. } | Button { .. } | Screenshot | Shutdown,
        ) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use fleetgate_runner::{AppPoint, Button, TypedText, UnitPoint};

    use super::*;
    use crate::testing::{bundle_id, screenshot, tap, tap_in_the_middle};

    fn app(action: AppAction<Point>) -> Command<Point> {
        Command::App(AppCommand {
            bundle_id: bundle_id("com.example"),
            action,
        })
    }

    fn at(x: f64) -> Point {
        Point::Absolute(AppPoint::new(x, 20.0).unwrap())
    }

    fn drag(by: f64, millis: u64, settle: bool) -> Command<Point> {
        let time = Some(Duration::from_millis(millis));
        app(AppAction::Drag {
            from: at(by),
            to: at(2.0 * by),
            duration: time,
            hold: time,
            settle,
        })
    }

    fn typed(text: &str) -> Command<Point> {
        let text = TypedText::new(text.to_owned()).unwrap();
        app(AppAction::Type { text })
    }

    #[test]
    fn equal_requests_differ_in_nothing() {
        for command in [
            tap(),
            tap_in_the_middle(),
            screenshot(),
            typed("a"),
            drag(1.0, 1, true),
        ] {
            assert_eq!(differing(&command, &command.clone()), [""; 0]);
        }
    }

    #[test]
    fn every_field_that_differs_is_named_as_in_the_api() {
        let other_tap = Command::App(AppCommand {
            bundle_id: bundle_id("com.other"),
            action: AppAction::Tap {
                at: at(11.0),
                taps: NonZeroU32::new(2).unwrap(),
            },
        });
        assert_eq!(
            differing(&tap(), &other_tap),
            ["app_bundle_id", "point", "number_of_taps"]
        );
        let press = |x, duration| {
            app(AppAction::LongPress {
                at: at(x),
                duration,
            })
        };
        assert_eq!(
            differing(&press(1.0, None), &press(2.0, Some(Duration::ZERO))),
            ["point", "duration"]
        );
        assert_eq!(
            differing(&drag(1.0, 1, true), &drag(2.0, 2, false)),
            ["from", "to", "duration", "hold", "settle"]
        );
        assert_eq!(differing(&typed("a"), &typed("b")), ["text"]);
        let button = |button| Command::Device(DeviceCommand::Button { button });
        assert_eq!(
            differing(&button(Button::Home), &button(Button::VolumeUp)),
            ["button"]
        );
    }

    #[test]
    fn a_place_given_in_another_way_is_another_place() {
        let unit = Point::Normalized(UnitPoint::new(10.0, 20.0).unwrap());
        let taps = NonZeroU32::MIN;
        let relative = app(AppAction::Tap { at: unit, taps });
        assert_eq!(differing(&tap(), &relative), ["point"]);
    }

    #[test]
    fn of_two_kinds_only_that_is_told() {
        assert_eq!(differing(&tap(), &typed("a")), ["kind"]);
        assert_eq!(differing(&tap(), &screenshot()), ["kind"]);
    }
}
