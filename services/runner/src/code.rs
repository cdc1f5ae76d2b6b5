//! The runner's error codes and what each proves.

use serde::{Deserialize, Serialize};

use crate::fate::Effect;

/// A code from the runner's error envelope. One that this crate does not know
/// survives as [`RunnerCode::Other`] and is a generic failure.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum RunnerCode {
    /// The request could not be used.
    InvalidRequest,
    /// An app-scoped command without an app.
    AppBundleIdRequired,
    /// The app is not running, or cannot be read.
    AppNotAvailable,
    /// A snapshot of an app that is in the background.
    AppBackgrounded,
    /// No input has keyboard focus.
    TextInputNotFocused,
    /// The phone lacks the button or the API.
    UnsupportedOperation,
    /// Abandoned work is draining: the command did not run and may be sent
    /// again.
    RunnerBusy,
    /// Abandoned work is stuck: recycle the session. The command did not run.
    RunnerWedged,
    /// The command ran and XCTest recorded a failure meanwhile.
    #[serde(rename = "XCTEST_RECORDED_FAILURE")]
    XctestRecordedFailure,
    /// The accessibility tree could not be captured.
    SnapshotFailed,
    /// The command overran its budget and was abandoned; it may still end.
    CommandTimedOut,
    /// The command threw.
    CommandFailed,
    /// A code from a newer runner.
    #[serde(untagged)]
    Other(String),
}

impl RunnerCode {
    /// What a verdict with this code proves about the device.
    pub fn effect(&self) -> Effect {
        match self {
            Self::InvalidRequest
            | Self::AppBundleIdRequired
            | Self::AppNotAvailable
            | Self::AppBackgrounded
            | Self::TextInputNotFocused
            | Self::UnsupportedOperation
            | Self::RunnerBusy
            | Self::RunnerWedged
            | Self::SnapshotFailed => Effect::None,
            Self::XctestRecordedFailure
            | Self::CommandTimedOut
            | Self::CommandFailed
            | Self::Other(_) => Effect::Unknown,
        }
    }

    /// True for the one code after which the same command may be sent again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::RunnerBusy)
    }

    /// The code as it stands on the wire.
    pub fn as_wire(&self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(code)) => code,
            Ok(_) | Err(_) => String::new(),
        }
    }
}

/// The runner's verdict against a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {message}", code.as_wire())]
pub struct RunnerError {
    /// What kind of failure.
    pub code: RunnerCode,
    /// In words.
    #[serde(default)]
    pub message: String,
    /// What the runner suggests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
