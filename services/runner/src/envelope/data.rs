//! The `data` of a success envelope, command by command.
//!
//! It refuses data that would mislead: a viewport without an extent, a picture
//! that is not base64. What a mutation says of itself is only a word to the
//! caller, so that it cannot spoil the reply.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::lenient;
use crate::journal::JournalEntry;
use crate::json::{self, Millis};
use crate::kind::CommandKind;
use crate::reply::{Reply, RunnerState, RunnerStatus, Screenshot, Snapshot, Viewport};

/// Reads the data of a reply to a command of this kind; the error says what is
/// wrong with it.
pub(super) fn decode(kind: CommandKind, data: Option<&RawValue>) -> Result<Reply, String> {
    match kind {
        CommandKind::Tap
        | CommandKind::LongPress
        | CommandKind::Drag
        | CommandKind::Type
        | CommandKind::KeyboardReturn
        | CommandKind::KeyboardDelete
        | CommandKind::Button
        | CommandKind::Shutdown => {
            let done: Option<Done<'_>> = lenient(data);
            Ok(Reply::Done(
                done.and_then(|done| done.message)
                    .unwrap_or_default()
                    .into_owned(),
            ))
        }
        CommandKind::Viewport => {
            let viewport: Viewport = required(data)?;
            if !viewport.is_usable() {
                return Err(format!("not a frame: {viewport:?}"));
            }
            Ok(Reply::Viewport(viewport))
        }
        CommandKind::Snapshot => required::<Snapshot>(data).map(Reply::Snapshot),
        CommandKind::Screenshot => {
            let Picture { image_base64 } = required(data)?;
            let png = base64_simd::STANDARD
                .decode_to_vec(image_base64.as_bytes())
                .map_err(|_| "imageBase64 is not base64".to_owned())?;
            Ok(Reply::Screenshot(Screenshot {
                png: Bytes::from(png),
            }))
        }
        CommandKind::Status => required::<Health>(data).map(|health| Reply::Status(health.into())),
        CommandKind::CommandStatus => required::<JournalEntry>(data).map(Reply::CommandStatus),
    }
}

fn required<'a, T: Deserialize<'a>>(data: Option<&'a RawValue>) -> Result<T, String> {
    let data = data.ok_or("it is missing")?;
    serde_json::from_str(data.get()).map_err(|error| json::complaint(&error))
}

/// The data of a reply on its way out.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Encoded<'a> {
    Viewport(&'a Viewport),
    Done(Done<'a>),
    Snapshot(&'a Snapshot),
    Screenshot(Picture<'a>),
    Status(Health),
    CommandStatus(&'a JournalEntry),
}

impl<'a> From<&'a Reply> for Encoded<'a> {
    fn from(reply: &'a Reply) -> Self {
        match reply {
            Reply::Viewport(viewport) => Self::Viewport(viewport),
            Reply::Done(message) => Self::Done(Done {
                message: Some(Cow::Borrowed(message)),
            }),
            Reply::Snapshot(snapshot) => Self::Snapshot(snapshot),
            Reply::Screenshot(Screenshot { png }) => Self::Screenshot(Picture {
                image_base64: Cow::Owned(base64_simd::STANDARD.encode_to_string(png)),
            }),
            Reply::Status(status) => Self::Status(Health::from(status)),
            Reply::CommandStatus(entry) => Self::CommandStatus(entry),
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Done<'a> {
    #[serde(borrow)]
    message: Option<Cow<'a, str>>,
}

/// Borrows the picture from the reply: it is megabytes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Picture<'a> {
    #[serde(borrow)]
    image_base64: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Health {
    uptime_ms: Millis,
    state: RunnerState,
    suppressed_issues: u64,
    recorded_failures: u64,
}

impl From<&RunnerStatus> for Health {
    fn from(status: &RunnerStatus) -> Self {
        Self {
            uptime_ms: Millis(status.uptime),
            state: status.state.clone(),
            suppressed_issues: status.suppressed_issues,
            recorded_failures: status.recorded_failures,
        }
    }
}

impl From<Health> for RunnerStatus {
    fn from(health: Health) -> Self {
        Self {
            uptime: health.uptime_ms.0,
            state: health.state,
            suppressed_issues: health.suppressed_issues,
            recorded_failures: health.recorded_failures,
        }
    }
}
