//! What makes a request the same request: its fields in the caller's form.
//!
//! A command id belongs to one request. Whether a second one with that id is
//! the same is told from memory while the first is under way, and from the
//! ledger afterwards, which holds the length of a typed text and not the text.
//!
//! Invariant: fields are named here as in the API, so that a difference can be
//! told to the caller by its name.

use std::time::Duration;

use fleetgate_runner::{
    AppAction, AppCommand, BundleId, Command, CommandKind, DeviceCommand, Point, Udid,
};
use serde_json::{Map, Value, json};

/// Where the length of a text stands for it.
const TEXT_LENGTH: &str = "text_length";

/// A request by what identifies it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Content<'a> {
    /// For which phone.
    pub(crate) device: &'a Udid,
    /// Which command.
    pub(crate) kind: CommandKind,
    /// The app that it names.
    pub(crate) app_bundle_id: Option<&'a BundleId>,
    /// Its other fields, as [`asked`] gives them.
    pub(crate) asked: &'a Map<String, Value>,
}

impl Content<'_> {
    /// The names of the fields in which two requests differ. Between commands
    /// of two kinds nothing else can be compared but the device.
    pub(crate) fn differing(&self, other: &Content<'_>) -> Vec<String> {
        let mut fields = Vec::new();
        if self.device != other.device {
            fields.push("device".to_owned());
        }
        if self.kind != other.kind {
            fields.push("kind".to_owned());
            return fields;
        }
        if self.app_bundle_id != other.app_bundle_id {
            fields.push("app_bundle_id".to_owned());
        }
        let (ours, theirs) = (as_stored(self.asked), as_stored(other.asked));
        let names: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
        let unequal = names
            .into_iter()
            .filter(|name| ours.get(*name) != theirs.get(*name));
        fields.extend(unequal.map(|name| match name.as_str() {
            TEXT_LENGTH => "text".to_owned(),
            name => name.to_owned(),
        }));
        fields
    }
}

/// Numbers may come back from JSON text as their neighbours, and equal ones
/// always as the same neighbour.
fn as_stored(fields: &Map<String, Value>) -> Map<String, Value> {
    serde_json::from_str(&Value::Object(fields.clone()).to_string()).unwrap_or_default()
}

/// The fields of a request besides its head and its app; absent ones are left
/// out, and of a text only the length is there.
pub(crate) fn asked(command: &Command<Point>) -> Map<String, Value> {
    let fields: Vec<(&str, Option<Value>)> = match command {
        Command::App(AppCommand { action, .. }) => match action {
            AppAction::Tap { at, taps } => vec![
                ("point", Some(point(at))),
                ("number_of_taps", Some(taps.get().into())),
            ],
            AppAction::LongPress { at, duration } => vec![
                ("point", Some(point(at))),
                ("duration", duration.map(millis)),
            ],
            AppAction::Drag {
                from,
                to,
                duration,
                hold,
                settle,
            } => vec![
                ("from", Some(point(from))),
                ("to", Some(point(to))),
                ("duration", duration.map(millis)),
                ("hold", hold.map(millis)),
                ("settle", Some((*settle).into())),
            ],
            AppAction::Type { text } => vec![(TEXT_LENGTH, Some(text.chars().into()))],
            AppAction::Viewport
            | AppAction::KeyboardReturn
            | AppAction::KeyboardDelete
            | AppAction::Snapshot => Vec::new(),
        },
        Command::Device(DeviceCommand::Button { button }) => {
            vec![("button", Some(button.as_str().into()))]
        }
        // Has no id of its own, so that it is never asked for twice.
        Command::Device(DeviceCommand::CommandStatus { of }) => {
            vec![("command_id", Some(of.as_str().into()))]
        }
        Command::Device(
            DeviceCommand::Status | DeviceCommand::Screenshot | DeviceCommand::Shutdown,
        ) => Vec::new(),
    };
    fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// True if both type, and not the same.
pub(crate) fn types_other_text(one: &Command<Point>, other: &Command<Point>) -> bool {
    match (text(one), text(other)) {
        (Some(one), Some(other)) => one != other,
        (Some(_) | None, None) | (None, Some(_)) => false,
    }
}

fn text(command: &Command<Point>) -> Option<&fleetgate_runner::TypedText> {
    match command {
        Command::App(AppCommand {
            action: AppAction::Type { text },
            ..
        }) => Some(text),
        Command::App(_) | Command::Device(_) => None,
    }
}

fn point(point: &Point) -> Value {
    match point {
        Point::Absolute(at) => json!({ "absolute": { "x": at.x, "y": at.y } }),
        Point::Normalized(at) => json!({ "normalized": { "x": at.x, "y": at.y } }),
    }
}

/// Requests are in whole milliseconds and shorter than a gesture's budget.
fn millis(duration: Duration) -> Value {
    Value::from(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use fleetgate_runner::{AppPoint, TypedText, UnitPoint};

    use super::*;

    fn app(action: AppAction<Point>) -> Command<Point> {
        Command::App(AppCommand {
            bundle_id: "com.example.app".parse().unwrap(),
            action,
        })
    }

    fn tap(at: Point) -> Command<Point> {
        app(AppAction::Tap {
            at,
            taps: NonZeroU32::MIN,
        })
    }

    #[test]
    fn fields_have_the_apis_names_and_a_text_is_its_length() {
        let text = TypedText::new("hunter2 é".to_owned()).unwrap();
        let fields = Value::Object(asked(&app(AppAction::Type { text })));
        assert_eq!(fields, json!({ "text_length": 9 }));

        let drag = app(AppAction::Drag {
            from: Point::Absolute(AppPoint::new(1.0, 2.0).unwrap()),
            to: Point::Normalized(UnitPoint::new(0.5, 0.25).unwrap()),
            duration: None,
            hold: Some(Duration::from_millis(500)),
            settle: true,
        });
        let expected = json!({
            "from": { "absolute": { "x": 1.0, "y": 2.0 } },
            "to": { "normalized": { "x": 0.5, "y": 0.25 } },
            "hold": 500,
            "settle": true,
        });
        assert_eq!(Value::Object(asked(&drag)), expected);
    }

    #[test]
    fn a_point_is_the_same_after_a_stay_on_record() {
        let device = "00008110-000978540290401E".parse().unwrap();
        // Numbers whose decimal form is long.
        for n in 1..1000_u32 {
            let x = 1.0 / f64::from(n);
            let fields = asked(&tap(Point::Absolute(AppPoint::new(x, 1e300 * x).unwrap())));
            let content = |asked| Content {
                device: &device,
                kind: CommandKind::Tap,
                app_bundle_id: None,
                asked,
            };
            let stored = serde_json::from_str(&Value::Object(fields.clone()).to_string()).unwrap();
            let differing = content(&fields).differing(&content(&stored));
            assert_eq!(differing, [] as [&str; 0], "{x}");
        }
    }
}
