//! What a receipt tells.

use fleetgate_proto::v1::CommandReceipt;
use serde::Serialize;

use crate::output::pairs;
use crate::{when, words};

/// A receipt as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ReceiptView {
    command_id: String,
    fate: String,
    effect: String,
    reactivated: bool,
    warning: Option<String>,
    attempts: u32,
    recovered: bool,
    queue_wait_ms: Option<f64>,
    device_time_ms: Option<f64>,
}

impl From<CommandReceipt> for ReceiptView {
    fn from(receipt: CommandReceipt) -> Self {
        Self {
            fate: words::fate(receipt.fate),
            effect: words::effect(receipt.effect),
            command_id: receipt.command_id,
            reactivated: receipt.reactivated,
            warning: receipt.warning,
            attempts: receipt.attempts,
            recovered: receipt.recovered,
            queue_wait_ms: receipt.queue_wait.and_then(when::millis),
            device_time_ms: receipt.device_time.and_then(when::millis),
        }
    }
}

impl ReceiptView {
    /// The receipt over several lines.
    pub(crate) fn text(&self) -> String {
        let attempts = (self.attempts > 1).then(|| self.attempts.to_string());
        let recovered = self
            .recovered
            .then(|| "the reply was lost; the fate is from the runner's journal".to_owned());
        let reactivated = self
            .reactivated
            .then(|| "the app was brought to the front first".to_owned());
        pairs(
            2,
            [
                ("command", Some(self.command_id.clone())),
                ("fate", Some(self.fate.clone())),
                ("effect", Some(self.effect.clone())),
                ("attempts", attempts),
                ("recovered", recovered),
                ("note", reactivated),
                ("warning", self.warning.clone()),
                (
                    "waited",
                    self.queue_wait_ms.map(|millis| format!("{millis} ms")),
                ),
                (
                    "took",
                    self.device_time_ms.map(|millis| format!("{millis} ms")),
                ),
            ],
        )
    }
}

/// The reply to a mutation: a receipt, and the runner's own word.
#[derive(Debug, Serialize)]
pub(crate) struct DoneView {
    receipt: Option<ReceiptView>,
    message: String,
}

impl DoneView {
    /// What a reply says.
    pub(crate) fn new(receipt: Option<CommandReceipt>, message: String) -> Self {
        Self {
            receipt: receipt.map(ReceiptView::from),
            message,
        }
    }

    /// The reply over several lines.
    pub(crate) fn text(&self) -> String {
        let headline = if self.message.is_empty() {
            "done"
        } else {
            &self.message
        };
        let receipt = self
            .receipt
            .as_ref()
            .map(ReceiptView::text)
            .unwrap_or_default();
        format!("{}\n{receipt}", crate::output::clean(headline))
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::{Effect, Fate};

    use super::*;

    fn receipt() -> CommandReceipt {
        CommandReceipt {
            command_id: "c-1".to_owned(),
            fate: Fate::Completed.into(),
            effect: Effect::Applied.into(),
            attempts: 1,
            device_time: Some(prost_types::Duration {
                seconds: 0,
                nanos: 12_500_000,
            }),
            ..CommandReceipt::default()
        }
    }

    #[test]
    fn a_plain_success_is_told_in_few_lines() {
        let text = DoneView::new(Some(receipt()), "tapped".to_owned()).text();
        assert_eq!(
            text,
            "tapped\n  command: c-1\n  fate:    completed\n  effect:  applied\n  took:    12.5 ms\n"
        );
    }

    #[test]
    fn whatever_was_unusual_is_told_besides() {
        let unusual = CommandReceipt {
            attempts: 3,
            recovered: true,
            reactivated: true,
            warning: Some("no element there".to_owned()),
            ..receipt()
        };
        let text = DoneView::new(Some(unusual), String::new()).text();
        for told in [
            "done\n",
            "attempts:  3",
            "journal",
            "to the front",
            "no element there",
        ] {
            assert!(text.contains(told), "{told} is missing in {text}");
        }
    }

    #[test]
    fn json_keys_are_stable() {
        let json = serde_json::to_value(DoneView::new(Some(receipt()), String::new())).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "receipt": {
                    "command_id": "c-1",
                    "fate": "completed",
                    "effect": "applied",
                    "reactivated": false,
                    "warning": null,
                    "attempts": 1,
                    "recovered": false,
                    "queue_wait_ms": null,
                    "device_time_ms": 12.5,
                },
                "message": "",
            })
        );
    }
}
