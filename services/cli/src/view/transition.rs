//! What a phone went through.

use fleetgate_proto::v1::DeviceTransition;
use serde::Serialize;

use crate::output::sparse_columns;
use crate::{when, words};

/// One transition as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TransitionView {
    /// Its place in the ledger; absent where it has none yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    time: Option<String>,
    from: String,
    to: String,
    reason: String,
    detail: Option<String>,
}

impl From<DeviceTransition> for TransitionView {
    fn from(transition: DeviceTransition) -> Self {
        Self {
            seq: Some(transition.seq).filter(|seq| *seq != 0),
            time: transition.time.and_then(when::stamp),
            from: words::device_state(transition.from),
            to: words::device_state(transition.to),
            reason: transition.reason,
            detail: transition.detail,
        }
    }
}

/// Transitions, one a line.
pub(crate) fn lines(transitions: &[TransitionView]) -> String {
    let rows = transitions.iter().map(|transition| {
        let cell = |text: &Option<String>| text.clone().unwrap_or_default();
        [
            cell(&transition.time),
            transition.from.clone(),
            transition.to.clone(),
            transition.reason.clone(),
            cell(&transition.detail),
        ]
    });
    sparse_columns(["WHEN", "FROM", "TO", "REASON", "DETAIL"], rows)
}
