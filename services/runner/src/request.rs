//! One request in its wire form, both directions.
//!
//! A runner tells two kinds of bad request apart, and so does this module: a
//! payload that cannot be decoded at all (HTTP 400), and a well-typed one that
//! lacks what its command needs (HTTP 500, an ordinary error envelope).

use serde_json::{Map, Value};

use crate::code::{RunnerCode, RunnerError};
use crate::command::Command;
use crate::ids::CommandId;
use crate::json;
use crate::kind::CommandKind;

mod wire;

use wire::Wire;

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
    /// Well-typed, but without what its command needs: HTTP 500, and queued,
    /// journaled and answered like a command that fails.
    #[error("unusable {kind} request: {verdict}")]
    Unusable {
        /// The id that it is journaled under.
        command_id: Option<CommandId>,
        /// The command; both kinds of status are [`CommandKind::Status`].
        kind: CommandKind,
        /// What is wrong with it.
        #[source]
        verdict: RunnerError,
    },
}

impl InvalidRequest {
    /// The HTTP status that goes with it.
    pub fn status(&self) -> u16 {
        match self {
            Self::Undecodable(_) => 400,
            Self::Unusable { .. } => 500,
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
            Self::Unusable { verdict, .. } => verdict,
        }
    }
}

impl Request {
    /// The request as the body of its HTTP POST.
    ///
    /// ```
    /// use fleetgate_runner::{Command, DeviceCommand, Request};
    ///
    /// let command = Command::Device(DeviceCommand::Screenshot);
    /// let request = Request { command_id: "c-1".parse().ok(), command };
    /// assert_eq!(request.encode(), br#"{"command":"screenshot","commandId":"c-1"}"#);
    /// ```
    pub fn encode(&self) -> Vec<u8> {
        let mut wire = Wire::from(&self.command);
        if !self.command.kind().bypasses_queue() {
            wire.command_id = self.command_id.as_ref().map(CommandId::to_string);
        }
        json::to_vec(&wire)
    }

    /// Reads the body of an HTTP POST, and finds what is wrong with it in the
    /// order in which a runner looks.
    ///
    /// ```
    /// use fleetgate_runner::{InvalidRequest, Request, RunnerCode};
    ///
    /// let refused = Request::decode(br#"{"command":"tap"}"#);
    /// let Err(InvalidRequest::Unusable { verdict, .. }) = refused else {
    ///     panic!("a tap needs an app");
    /// };
    /// assert_eq!(verdict.code, RunnerCode::AppBundleIdRequired);
    /// ```
    pub fn decode(body: &[u8]) -> Result<Self, InvalidRequest> {
        let mut wire: Wire = serde_json::from_slice(body)
            .map_err(|error| InvalidRequest::Undecodable(json::complaint(&error)))?;
        let kind = wire.kind();
        let id = wire.command_id.take().filter(|_| !kind.bypasses_queue());
        let unusable = |command_id, verdict| InvalidRequest::Unusable {
            command_id,
            kind,
            verdict,
        };
        match (wire::optional_id(id, "commandId"), wire.into_command()) {
            (Ok(command_id), Ok(command)) => Ok(Self {
                command_id,
                command,
            }),
            (Ok(command_id), Err(verdict)) => Err(unusable(command_id, verdict)),
            (Err(_), Err(verdict)) | (Err(verdict), Ok(_)) => Err(unusable(None, verdict)),
        }
    }
}

impl Command {
    /// What may be recorded of the command's parameters: its wire fields
    /// without `command` and `appBundleId`, which records hold by themselves,
    /// and with `textLength` in the place of `text`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use fleetgate_runner::{AppAction, AppCommand, Command, TypedText};
    ///
    /// let text = TypedText::new("hunter2".to_owned()).ok_or("no text")?;
    /// let command = Command::App(AppCommand {
    ///     bundle_id: "com.example.bank".parse()?,
    ///     action: AppAction::Type { text },
    /// });
    /// assert_eq!(serde_json::to_string(&command.recorded())?, r#"{"textLength":7}"#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn recorded(&self) -> Map<String, Value> {
        let mut wire = Wire::from(self);
        wire.app_bundle_id = None;
        let text_length = wire.text.take().map(|text| text.chars().count());
        let mut fields = json::to_object(&wire);
        fields.remove("command");
        fields.extend(text_length.map(|length| ("textLength".to_owned(), length.into())));
        fields
    }
}
