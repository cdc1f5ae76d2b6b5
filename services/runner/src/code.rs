//! The runner's error codes and what each proves.

use serde::Serialize;

use crate::fate::Effect;
use crate::words::open_words;

open_words! {
    /// A code from the runner's error envelope. One that this crate does not know
    /// survives as [`RunnerCode::Other`] and is a generic failure.
    pub enum RunnerCode {
        /// The request could not be used.
        InvalidRequest = "INVALID_REQUEST",
        /// An app-scoped command without an app.
        AppBundleIdRequired = "APP_BUNDLE_ID_REQUIRED",
        /// The app is not running, or cannot be read.
        AppNotAvailable = "APP_NOT_AVAILABLE",
        /// A snapshot of an app that is in the background.
        AppBackgrounded = "APP_BACKGROUNDED",
        /// No input has keyboard focus.
        TextInputNotFocused = "TEXT_INPUT_NOT_FOCUSED",
        /// The phone lacks the button or the API.
        UnsupportedOperation = "UNSUPPORTED_OPERATION",
        /// Abandoned work is draining: the command did not run and may be sent
        /// again.
        RunnerBusy = "RUNNER_BUSY",
        /// Abandoned work is stuck: recycle the session. The command did not run.
        RunnerWedged = "RUNNER_WEDGED",
        /// The command ran and XCTest recorded a failure meanwhile.
        XctestRecordedFailure = "XCTEST_RECORDED_FAILURE",
        /// The accessibility tree could not be captured.
        SnapshotFailed = "SNAPSHOT_FAILED",
        /// The command overran its budget and was abandoned; it may still end.
        CommandTimedOut = "COMMAND_TIMED_OUT",
        /// The command threw.
        CommandFailed = "COMMAND_FAILED",
    }
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

    /// The word, if it is one of the protocol's: another can be any text.
    pub fn known(&self) -> Option<&str> {
        let is_known = !matches!(self, Self::Other(_));
        is_known.then(|| self.as_str())
    }

    /// True for the one code after which the same command may be sent again.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::RunnerBusy)
    }
}

/// The runner's verdict against a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct RunnerError {
    /// What kind of failure.
    pub code: RunnerCode,
    /// In words.
    pub message: String,
    /// What the runner suggests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
