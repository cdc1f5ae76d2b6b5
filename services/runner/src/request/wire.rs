//! The one JSON object that all commands share, and the way between it and a
//! [`Command`].
//!
//! It knows every field of the protocol and ignores others. A `null` is an
//! absent field, and an absent one is not written.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::code::{RunnerCode, RunnerError};
use crate::command::{AppAction, AppCommand, Button, Command, DeviceCommand, TypedText};
use crate::ids::InvalidId;
use crate::json::{Millis, Number};
use crate::kind::CommandKind;
use crate::point::AppPoint;

/// Every field of the protocol.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire {
    command: WireKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) app_bundle_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    y: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number_of_taps: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_x: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_y: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_x: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_y: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hold_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settle: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    button: Option<String>,
}

/// A command's name as it travels: both kinds of status as `status`.
#[derive(Clone, Copy)]
struct WireKind(CommandKind);

impl Serialize for WireKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sent_as = if self.0 == CommandKind::CommandStatus {
            CommandKind::Status
        } else {
            self.0
        };
        sent_as.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for WireKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'_, str>::deserialize(deserializer)?;
        CommandKind::from_word(&name)
            .filter(|&kind| kind != CommandKind::CommandStatus)
            .map(Self)
            .ok_or_else(|| Error::custom("unknown command"))
    }
}

impl From<&Command> for Wire {
    fn from(command: &Command) -> Self {
        let wire = Self::named(command.kind());
        match command {
            Command::App(AppCommand { bundle_id, action }) => Self {
                app_bundle_id: Some(bundle_id.to_string()),
                ..wire
            }
            .with_action(action),
            Command::Device(DeviceCommand::CommandStatus { of }) => Self {
                status_command_id: Some(of.to_string()),
                ..wire
            },
            Command::Device(DeviceCommand::Button { button }) => Self {
                button: Some(button.to_string()),
                ..wire
            },
            Command::Device(
                DeviceCommand::Status | DeviceCommand::Screenshot | DeviceCommand::Shutdown,
            ) => wire,
        }
    }
}

impl Wire {
    /// The command without a single parameter.
    fn named(kind: CommandKind) -> Self {
        Self {
            command: WireKind(kind),
            command_id: None,
            status_command_id: None,
            app_bundle_id: None,
            x: None,
            y: None,
            number_of_taps: None,
            from_x: None,
            from_y: None,
            to_x: None,
            to_y: None,
            duration_ms: None,
            hold_ms: None,
            settle: None,
            text: None,
            button: None,
        }
    }

    fn with_action(self, action: &AppAction) -> Self {
        match action {
            AppAction::Tap { at, taps } => Self {
                x: Some(Number(at.x)),
                y: Some(Number(at.y)),
                number_of_taps: Some(taps.get().into()),
                ..self
            },
            AppAction::LongPress { at, duration } => Self {
                x: Some(Number(at.x)),
                y: Some(Number(at.y)),
                duration_ms: duration.map(Millis),
                ..self
            },
            AppAction::Drag {
                from,
                to,
                duration,
                hold,
                settle,
            } => Self {
                from_x: Some(Number(from.x)),
                from_y: Some(Number(from.y)),
                to_x: Some(Number(to.x)),
                to_y: Some(Number(to.y)),
                duration_ms: duration.map(Millis),
                hold_ms: hold.map(Millis),
                settle: settle.then_some(true),
                ..self
            },
            AppAction::Type { text } => Self {
                text: Some(text.expose().to_owned()),
                ..self
            },
            AppAction::Viewport
            | AppAction::KeyboardReturn
            | AppAction::KeyboardDelete
            | AppAction::Snapshot => self,
        }
    }

    /// The command that is named: both kinds of status are
    /// [`CommandKind::Status`].
    pub(super) fn kind(&self) -> CommandKind {
        self.command.0
    }

    /// The command that the object stands for, or the verdict against it.
    pub(super) fn into_command(mut self) -> Result<Command, RunnerError> {
        let app = self.app_bundle_id.take();
        match self.command.0 {
            CommandKind::Viewport => in_app(app, Ok(AppAction::Viewport)),
            CommandKind::Tap => in_app(app, self.into_tap()),
            CommandKind::LongPress => in_app(app, self.into_long_press()),
            CommandKind::Drag => in_app(app, self.into_drag()),
            CommandKind::Type => in_app(app, self.into_type()),
            CommandKind::KeyboardReturn => in_app(app, Ok(AppAction::KeyboardReturn)),
            CommandKind::KeyboardDelete => in_app(app, Ok(AppAction::KeyboardDelete)),
            CommandKind::Snapshot => in_app(app, Ok(AppAction::Snapshot)),
            CommandKind::Button => self.into_button().map(Command::Device),
            CommandKind::Screenshot => Ok(Command::Device(DeviceCommand::Screenshot)),
            CommandKind::Shutdown => Ok(Command::Device(DeviceCommand::Shutdown)),
            CommandKind::Status | CommandKind::CommandStatus => {
                let of = optional_id(self.status_command_id, "statusCommandId")?;
                Ok(Command::Device(match of {
                    Some(of) => DeviceCommand::CommandStatus { of },
                    None => DeviceCommand::Status,
                }))
            }
        }
    }

    fn into_tap(self) -> Result<AppAction, RunnerError> {
        let at = point((self.x, "x"), (self.y, "y"))?;
        let asked = self.number_of_taps.unwrap_or(1);
        let taps = u32::try_from(asked).ok().and_then(NonZeroU32::new);
        let taps =
            taps.ok_or_else(|| invalid(format!("numberOfTaps is {asked}, not 1 or more")))?;
        Ok(AppAction::Tap { at, taps })
    }

    fn into_long_press(self) -> Result<AppAction, RunnerError> {
        let at = point((self.x, "x"), (self.y, "y"))?;
        Ok(AppAction::LongPress {
            at,
            duration: duration(self.duration_ms),
        })
    }

    fn into_drag(self) -> Result<AppAction, RunnerError> {
        Ok(AppAction::Drag {
            from: point((self.from_x, "fromX"), (self.from_y, "fromY"))?,
            to: point((self.to_x, "toX"), (self.to_y, "toY"))?,
            duration: duration(self.duration_ms),
            hold: duration(self.hold_ms),
            settle: self.settle.unwrap_or(false),
        })
    }

    fn into_type(self) -> Result<AppAction, RunnerError> {
        let text = TypedText::new(required(self.text, "text")?);
        Ok(AppAction::Type {
            text: text.ok_or_else(|| invalid("text is empty".to_owned()))?,
        })
    }

    fn into_button(self) -> Result<DeviceCommand, RunnerError> {
        let name = required(self.button, "button")?;
        let button = Button::from_word(&name);
        let button = button.ok_or_else(|| invalid(format!("unknown button {name:?}")))?;
        Ok(DeviceCommand::Button { button })
    }
}

/// A command to an app. That the app is missing comes before whatever else is
/// wrong.
fn in_app(
    bundle_id: Option<String>,
    action: Result<AppAction, RunnerError>,
) -> Result<Command, RunnerError> {
    let bundle_id = optional_id(bundle_id, "appBundleId")?.ok_or_else(|| RunnerError {
        code: RunnerCode::AppBundleIdRequired,
        message: "appBundleId is required".to_owned(),
        hint: None,
    })?;
    Ok(Command::App(AppCommand {
        bundle_id,
        action: action?,
    }))
}

/// An id as the runner reads it: trimmed, and a blank one counts as absent.
pub(super) fn optional_id<T>(text: Option<String>, name: &str) -> Result<Option<T>, RunnerError>
where
    T: FromStr<Err = InvalidId>,
{
    text.filter(|text| !text.trim().is_empty())
        .map(|text| {
            text.parse()
                .map_err(|error| invalid(format!("{name}: {error}")))
        })
        .transpose()
}

fn point(
    (x, x_name): (Option<Number>, &str),
    (y, y_name): (Option<Number>, &str),
) -> Result<AppPoint, RunnerError> {
    let (Number(x), Number(y)) = (required(x, x_name)?, required(y, y_name)?);
    AppPoint::new(x, y).ok_or_else(|| invalid(format!("{x_name} and {y_name} must be finite")))
}

fn duration(millis: Option<Millis>) -> Option<Duration> {
    millis.map(|Millis(duration)| duration)
}

fn required<T>(field: Option<T>, name: &str) -> Result<T, RunnerError> {
    field.ok_or_else(|| invalid(format!("{name} is required")))
}

fn invalid(message: String) -> RunnerError {
    RunnerError {
        code: RunnerCode::InvalidRequest,
        message,
        hint: None,
    }
}
