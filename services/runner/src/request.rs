//! One request in its wire form, both directions.
//!
//! A runner tells two kinds of bad request apart, and so does this module: a
//! payload that cannot be decoded at all (HTTP 400), and a well-typed one that
//! lacks what its command needs (HTTP 500, an ordinary error envelope).

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::code::{RunnerCode, RunnerError};
use crate::command::{
    AppAction, AppCommand, AppPoint, Button, Command, CommandKind, DeviceCommand, TypedText,
};
use crate::ids::{BundleId, CommandId};

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

/// A number that is written as an integer when it is one.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(transparent)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Integers of this size are exact in both types.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "integral and in range, as just checked")]
            serializer.serialize_i64(self.0 as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Every field of the protocol, as it stands on the wire.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    command: Option<WireCommand>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status_command_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    app_bundle_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    x: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    y: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number_of_taps: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_x: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_y: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to_x: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to_y: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    duration_ms: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold_ms: Option<Number>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settle: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    button: Option<String>,
}

/// The command names on the wire: `commandStatus` is not among them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
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
    Status,
    Button,
    Screenshot,
    Shutdown,
}
