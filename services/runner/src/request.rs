//! One request in its wire form, both directions.
//!
//! A runner tells two kinds of bad request apart, and so does this module: a
//! payload that cannot be decoded at all (HTTP 400), and a well-typed one that
//! lacks what its command needs (HTTP 500, an ordinary error envelope).

use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::code::{RunnerCode, RunnerError};
use crate::command::{AppAction, AppCommand, Button, Command, DeviceCommand, TypedText};
use crate::ids::{CommandId, InvalidId};
use crate::json::{self, Millis, Number};
use crate::point::AppPoint;

/// A command and the id it is journaled under.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The id; a runner takes commands without one and does not journal them.
    /// Never on the wire for `status`.
    pub command_id: Option<CommandId>,
    /// What to do.
    pub command: Command,
}

/// Why a runner cannot use a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum InvalidRequest {
    /// Not JSON, an unknown command, or a field of the wrong type: HTTP 400.
    #[error("undecodable request: {0}")]
    Undecodable(String),
    /// Well-typed but unusable: an ordinary error envelope.
    #[error(transparent)]
    Unusable(#[from] RunnerError),
}

impl InvalidRequest {
    /// The HTTP status that goes with it.
    pub fn status(&self) -> u16 {
        match self {
            Self::Undecodable(_) => 400,
            Self::Unusable(_) => 500,
        }
    }

    /// What the runner's error envelope says about it.
    pub fn into_verdict(self) -> RunnerError {
        match self {
            Self::Undecodable(_) => RunnerError {
                code: RunnerCode::InvalidRequest,
                message: self.to_string(),
                hint: None,
            },
            Self::Unusable(verdict) => verdict,
        }
    }
}

impl Request {
    /// The request as the body of its HTTP POST.
    pub fn encode(&self) -> Vec<u8> {
        let mut wire = Wire::from(&self.command);
        if !self.command.kind().bypasses_queue() {
            wire.command_id = self.command_id.as_ref().map(CommandId::to_string);
        }
        json::to_vec(&wire)
    }

    /// Reads the body of an HTTP POST, and what is wrong with it in the order
    /// in which a runner looks.
    pub fn decode(body: &[u8]) -> Result<Self, InvalidRequest> {
        let wire: Wire = serde_json::from_slice(body)
            .map_err(|error| InvalidRequest::Undecodable(json::complaint(&error)))?;
        let command_id = match wire.command {
            WireCommand::Status => None,
            WireCommand::Viewport
            | WireCommand::Tap
            | WireCommand::LongPress
            | WireCommand::Drag
            | WireCommand::Type
            | WireCommand::KeyboardReturn
            | WireCommand::KeyboardDelete
            | WireCommand::Snapshot
            | WireCommand::Button
            | WireCommand::Screenshot
            | WireCommand::Shutdown => wire.command_id.clone(),
        };
        let command = wire.into_command()?;
        Ok(Self {
            command_id: optional_id(command_id, "commandId")?,
            command,
        })
    }
}

impl Command {
    /// What may be recorded of the command's parameters: its wire fields
    /// without `command`, `commandId` and `appBundleId`, which records hold by
    /// themselves, and with `textLength` in the place of `text`.
    pub fn recorded(&self) -> Map<String, Value> {
        let mut wire = Wire::from(self);
        wire.app_bundle_id = None;
        wire.text_length = wire.text.take().map(|text| text.chars().count());
        let mut fields = json::to_object(&wire);
        fields.remove("command");
        fields
    }
}

/// Every field of the protocol, as it stands on the wire.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    command: WireCommand,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_command_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_bundle_id: Option<String>,
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
    text: Option<String>,
    /// Only in records.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    text_length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    button: Option<String>,
}

/// The command names on the wire: `commandStatus` is not among them.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum WireCommand {
    Viewport,
    Tap,
    LongPress,
    Drag,
    Type,
    KeyboardReturn,
    KeyboardDelete,
    Snapshot,
    #[default]
    Status,
    Button,
    Screenshot,
    Shutdown,
}

impl From<&Command> for Wire {
    fn from(command: &Command) -> Self {
        match command {
            Command::App(AppCommand { bundle_id, action }) => Self {
                app_bundle_id: Some(bundle_id.to_string()),
                ..Self::from(action)
            },
            Command::Device(command) => Self::from(command),
        }
    }
}

impl From<&AppAction> for Wire {
    fn from(action: &AppAction) -> Self {
        match action {
            AppAction::Viewport => Self::named(WireCommand::Viewport),
            AppAction::Tap { at, taps } => Self {
                x: Some(Number(at.x)),
                y: Some(Number(at.y)),
                number_of_taps: Some(taps.get().into()),
                ..Self::named(WireCommand::Tap)
            },
            AppAction::LongPress { at, duration } => Self {
                x: Some(Number(at.x)),
                y: Some(Number(at.y)),
                duration_ms: duration.map(Millis),
                ..Self::named(WireCommand::LongPress)
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
                ..Self::named(WireCommand::Drag)
            },
            AppAction::Type { text } => Self {
                text: Some(text.expose().to_owned()),
                ..Self::named(WireCommand::Type)
            },
            AppAction::KeyboardReturn => Self::named(WireCommand::KeyboardReturn),
            AppAction::KeyboardDelete => Self::named(WireCommand::KeyboardDelete),
            AppAction::Snapshot => Self::named(WireCommand::Snapshot),
        }
    }
}

impl From<&DeviceCommand> for Wire {
    fn from(command: &DeviceCommand) -> Self {
        match command {
            DeviceCommand::Status => Self::named(WireCommand::Status),
            DeviceCommand::CommandStatus { of } => Self {
                status_command_id: Some(of.to_string()),
                ..Self::named(WireCommand::Status)
            },
            DeviceCommand::Button { button } => Self {
                button: Some(button.as_str().to_owned()),
                ..Self::named(WireCommand::Button)
            },
            DeviceCommand::Screenshot => Self::named(WireCommand::Screenshot),
            DeviceCommand::Shutdown => Self::named(WireCommand::Shutdown),
        }
    }
}

impl Wire {
    fn named(command: WireCommand) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    fn into_command(self) -> Result<Command, RunnerError> {
        match self.command {
            WireCommand::Viewport
            | WireCommand::Tap
            | WireCommand::LongPress
            | WireCommand::Drag
            | WireCommand::Type
            | WireCommand::KeyboardReturn
            | WireCommand::KeyboardDelete
            | WireCommand::Snapshot => self.into_app_command().map(Command::App),
            WireCommand::Status => Ok(Command::Device(
                match optional_id(self.status_command_id, "statusCommandId")? {
                    Some(of) => DeviceCommand::CommandStatus { of },
                    None => DeviceCommand::Status,
                },
            )),
            WireCommand::Button => {
                let name = required(self.button, "button")?;
                let button = Button::from_word(&name)
                    .ok_or_else(|| invalid(format!("unknown button {name:?}")))?;
                Ok(Command::Device(DeviceCommand::Button { button }))
            }
            WireCommand::Screenshot => Ok(Command::Device(DeviceCommand::Screenshot)),
            WireCommand::Shutdown => Ok(Command::Device(DeviceCommand::Shutdown)),
        }
    }

    fn into_app_command(self) -> Result<AppCommand, RunnerError> {
        // Before anything else: what the command lacks besides does not matter.
        let bundle_id =
            optional_id(self.app_bundle_id.clone(), "appBundleId")?.ok_or_else(|| RunnerError {
                code: RunnerCode::AppBundleIdRequired,
                message: "this command needs appBundleId".to_owned(),
                hint: None,
            })?;
        Ok(AppCommand {
            bundle_id,
            action: self.into_action()?,
        })
    }

    fn into_action(self) -> Result<AppAction, RunnerError> {
        match self.command {
            WireCommand::Viewport => Ok(AppAction::Viewport),
            WireCommand::Tap => {
                let taps = self.number_of_taps.unwrap_or(1);
                Ok(AppAction::Tap {
                    at: point((self.x, "x"), (self.y, "y"))?,
                    taps: u32::try_from(taps)
                        .ok()
                        .and_then(NonZeroU32::new)
                        .ok_or_else(|| {
                            invalid(format!("numberOfTaps is {taps}; at least 1 is needed"))
                        })?,
                })
            }
            WireCommand::LongPress => Ok(AppAction::LongPress {
                at: point((self.x, "x"), (self.y, "y"))?,
                duration: self.duration_ms.map(|Millis(duration)| duration),
            }),
            WireCommand::Drag => Ok(AppAction::Drag {
                from: point((self.from_x, "fromX"), (self.from_y, "fromY"))?,
                to: point((self.to_x, "toX"), (self.to_y, "toY"))?,
                duration: self.duration_ms.map(|Millis(duration)| duration),
                hold: self.hold_ms.map(|Millis(hold)| hold),
                settle: self.settle.unwrap_or(false),
            }),
            WireCommand::Type => Ok(AppAction::Type {
                text: TypedText::new(required(self.text, "text")?)
                    .ok_or_else(|| invalid("text is empty".to_owned()))?,
            }),
            WireCommand::KeyboardReturn => Ok(AppAction::KeyboardReturn),
            WireCommand::KeyboardDelete => Ok(AppAction::KeyboardDelete),
            WireCommand::Snapshot => Ok(AppAction::Snapshot),
            WireCommand::Status
            | WireCommand::Button
            | WireCommand::Screenshot
            | WireCommand::Shutdown => Err(invalid("not a command to an app".to_owned())),
        }
    }
}

fn invalid(message: String) -> RunnerError {
    RunnerError {
        code: RunnerCode::InvalidRequest,
        message,
        hint: None,
    }
}

fn required<T>(field: Option<T>, name: &str) -> Result<T, RunnerError> {
    field.ok_or_else(|| invalid(format!("{name} is required")))
}

fn point(
    (x, x_name): (Option<Number>, &str),
    (y, y_name): (Option<Number>, &str),
) -> Result<AppPoint, RunnerError> {
    let (Number(x), Number(y)) = (required(x, x_name)?, required(y, y_name)?);
    AppPoint::new(x, y).ok_or_else(|| invalid(format!("{x_name} and {y_name} must be finite")))
}

/// An id as the runner reads it: a blank one counts as absent.
fn optional_id<T>(text: Option<String>, name: &str) -> Result<Option<T>, RunnerError>
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
