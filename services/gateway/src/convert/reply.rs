//! Replies and receipts as messages.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::reply::{Node, Quality, Rect};
use fleetgate_runner::{
    CommandKind, JournalEntry, Reply, RunnerError, RunnerStatus, Snapshot, Viewport,
};
use fleetgate_session::Receipt;

use super::enums::{effect, fate, journal_state, kind, quality_state, runner_state};
use super::time::duration;

/// The message that answers a command.
pub(crate) trait CommandResponse: Sized {
    /// The message; `None` if this reply belongs to another command.
    fn from_reply(receipt: pb::CommandReceipt, reply: Reply) -> Option<Self>;
}

/// A receipt as the API tells it. Durations are in whole microseconds, as on
/// record, so that a receipt that is told again from there is the same.
pub(crate) fn receipt(receipt: Receipt) -> pb::CommandReceipt {
    pb::CommandReceipt {
        command_id: receipt.command_id.into(),
        fate: fate(receipt.fate).into(),
        effect: effect(receipt.effect).into(),
        reactivated: receipt.reactivated,
        warning: receipt.warning,
        attempts: receipt.attempts,
        recovered: receipt.recovered,
        queue_wait: Some(duration(whole_micros(receipt.queue_wait))),
        device_time: Some(duration(whole_micros(receipt.device_time))),
        replayed: false,
    }
}

fn whole_micros(duration: Duration) -> Duration {
    Duration::new(duration.as_secs(), duration.subsec_micros() * 1000)
}

/// Messages that hold a receipt and the runner's own word.
macro_rules! done {
    ($($message:ident),+ $(,)?) => {$(
        impl CommandResponse for pb::$message {
            fn from_reply(receipt: pb::CommandReceipt, reply: Reply) -> Option<Self> {
                let Reply::Done(message) = reply else { return None };
                Some(Self { receipt: Some(receipt), message })
            }
        }
    )+};
}

done!(
    TapResponse,
    LongPressResponse,
    DragResponse,
    TypeTextResponse,
    PressKeyboardReturnResponse,
    PressKeyboardDeleteResponse,
    PressButtonResponse,
    ShutdownRunnerResponse,
);

impl CommandResponse for pb::GetViewportResponse {
    fn from_reply(receipt: pb::CommandReceipt, reply: Reply) -> Option<Self> {
        let Reply::Viewport(Viewport {
            x,
            y,
            width,
            height,
        }) = reply
        else {
            return None;
        };
        let viewport = pb::Rect {
            x,
            y,
            width,
            height,
        };
        Some(Self {
            receipt: Some(receipt),
            viewport: Some(viewport),
        })
    }
}

impl CommandResponse for pb::CaptureSnapshotResponse {
    fn from_reply(receipt: pb::CommandReceipt, reply: Reply) -> Option<Self> {
        let Reply::Snapshot(Snapshot {
            nodes,
            quality: trust,
        }) = reply
        else {
            return None;
        };
        Some(Self {
            receipt: Some(receipt),
            nodes: nodes.into_iter().map(node).collect(),
            quality: Some(quality(trust)),
        })
    }
}

impl CommandResponse for pb::GetRunnerStatusResponse {
    fn from_reply(receipt: pb::CommandReceipt, reply: Reply) -> Option<Self> {
        let Reply::Status(RunnerStatus {
            uptime,
            state,
            suppressed_issues,
            recorded_failures,
        }) = reply
        else {
            return None;
        };
        Some(Self {
            receipt: Some(receipt),
            uptime: Some(duration(uptime)),
            state: runner_state(&state).into(),
            suppressed_issues,
            recorded_failures,
        })
    }
}

impl CommandResponse for pb::GetRunnerCommandStatusResponse {
    fn from_reply(receipt: pb::CommandReceipt, reply: Reply) -> Option<Self> {
        let Reply::CommandStatus(entry) = reply else {
            return None;
        };
        let JournalEntry {
            command_id,
            state,
            command,
            response_ok,
            response_json,
            error,
        } = entry;
        let command = command.as_deref().and_then(CommandKind::from_word);
        let (error_code, error_message, error_hint) = match error {
            Some(RunnerError { code, .. }) if may_type(command) => {
                // A code that is not the protocol's can be any text.
                let code = code.known().unwrap_or("REDACTED");
                (Some(code.to_owned()), None, None)
            }
            Some(RunnerError {
                code,
                message,
                hint,
            }) => (Some(code.as_str().to_owned()), Some(message), hint),
            None => (None, None, None),
        };
        Some(Self {
            receipt: Some(receipt),
            command_id: command_id.into(),
            state: journal_state(state).into(),
            kind: command.map(|command| kind(command).into()),
            response_ok,
            response_retained: response_json.is_some(),
            error_code,
            error_message,
            error_hint,
        })
    }
}

/// Whether what a runner says of a command may quote typed text, which cannot be
/// cut out here: the journal does not hold it.
fn may_type(command: Option<CommandKind>) -> bool {
    command.is_none_or(|command| command == CommandKind::Type)
}

fn node(node: Node) -> pb::SnapshotNode {
    let Node {
        index,
        kind,
        label,
        identifier,
        value,
        rect: Rect {
            x,
            y,
            width,
            height,
        },
        enabled,
        focused,
        selected,
        depth,
        parent_index,
    } = node;
    pb::SnapshotNode {
        index,
        r#type: kind,
        label,
        identifier,
        value,
        rect: Some(pb::Rect {
            x,
            y,
            width,
            height,
        }),
        enabled,
        focused,
        selected,
        depth,
        parent_index,
    }
}

fn quality(quality: Quality) -> pb::SnapshotQuality {
    pb::SnapshotQuality {
        state: quality_state(&quality.state).into(),
        backend: quality.backend,
        reason: quality.reason,
        reason_code: quality.reason_code,
    }
}
