//! What the ledger's stream tells, one line each.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::tail_commands_response::Item;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::clean;
use crate::view::record::{ChangeView, RecordView, object};
use crate::{when, words};

/// One line of an export.
#[derive(Debug, Serialize)]
pub(crate) struct EventView {
    /// Where to go on after this line.
    cursor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// It was told before, by a line that retention has removed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    carried: bool,
    #[serde(flatten)]
    what: What,
}

/// What was recorded.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum What {
    Intended {
        command: Box<RecordView>,
    },
    Concluded {
        command: Box<RecordView>,
    },
    Resolved {
        command: Option<Box<RecordView>>,
        change: Option<ChangeView>,
    },
    Operation {
        who: String,
        what: String,
        target: Option<String>,
        detail: Map<String, Value>,
    },
    Transition {
        device: String,
        from: String,
        to: String,
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    Gap {
        pruned_through: Option<String>,
    },
    /// Of a newer gateway.
    Unknown,
}

impl EventView {
    /// The message's line; `None` if it tells of nothing that happened.
    pub(crate) fn of(message: pb::TailCommandsResponse) -> Option<Self> {
        let pb::TailCommandsResponse { cursor, item } = message;
        let view = match item? {
            Item::Heartbeat(_) => return None,
            Item::Gap(pb::Gap { pruned_through }) => Self {
                cursor,
                seq: None,
                time: None,
                carried: false,
                what: What::Gap {
                    pruned_through: pruned_through.and_then(when::stamp),
                },
            },
            Item::Event(pb::LedgerEvent {
                seq,
                time,
                entry,
                carried,
            }) => Self {
                cursor,
                carried,
                seq: Some(seq),
                time: time.and_then(when::stamp),
                what: entry.map_or(What::Unknown, What::from),
            },
        };
        Some(view)
    }

    /// Where to go on after this line.
    pub(crate) fn cursor(&self) -> &str {
        &self.cursor
    }

    /// What is missing before this line, if anything is.
    pub(crate) fn gap(&self) -> Option<String> {
        match &self.what {
            What::Gap { pruned_through } => Some(format!(
                "retention has removed what was recorded up to {}",
                pruned_through.as_deref().unwrap_or("some time")
            )),
            What::Intended { .. }
            | What::Concluded { .. }
            | What::Resolved { .. }
            | What::Operation { .. }
            | What::Transition { .. }
            | What::Unknown => None,
        }
    }

    /// The line for people.
    pub(crate) fn text(&self) -> String {
        let time = self.time.as_deref().unwrap_or_default();
        let words = match &self.what {
            What::Intended { command } => format!("intended   {}", command.line()),
            What::Concluded { command } => format!("concluded  {}", command.line()),
            What::Resolved { command, change } => {
                let command = command.as_ref().map(|command| command.line());
                let change = change.as_ref().map(ChangeView::line);
                format!(
                    "resolved   {}  {}",
                    command.unwrap_or_default(),
                    change.unwrap_or_default()
                )
            }
            What::Operation {
                who, what, target, ..
            } => format!(
                "operation  {what} {} by {who}",
                target.as_deref().unwrap_or_default()
            ),
            What::Transition {
                device,
                from,
                to,
                reason,
                detail,
            } => format!(
                "device     {device}  {from} -> {to}  {reason}  {}",
                detail.as_deref().unwrap_or_default()
            ),
            What::Gap { .. } => format!("gap        {}", self.gap().unwrap_or_default()),
            What::Unknown => "an event that this version does not know".to_owned(),
        };
        clean(format!("{time}  {words}").trim())
    }
}

impl From<Entry> for What {
    fn from(entry: Entry) -> Self {
        let record = |command: pb::CommandRecord| Box::new(RecordView::from(command));
        match entry {
            Entry::Intended(command) => Self::Intended {
                command: record(command),
            },
            Entry::Concluded(command) => Self::Concluded {
                command: record(command),
            },
            Entry::Resolved(pb::CommandResolved { command, change }) => Self::Resolved {
                command: command.map(record),
                change: change.map(ChangeView::from),
            },
            Entry::Operation(pb::Operation {
                who,
                what,
                target,
                detail,
            }) => Self::Operation {
                who,
                what,
                target,
                detail: detail.map(object).unwrap_or_default(),
            },
            Entry::Transition(transition) => Self::Transition {
                device: transition.device,
                from: words::device_state(transition.from),
                to: words::device_state(transition.to),
                reason: transition.reason,
                detail: transition.detail,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(entry: Entry) -> EventView {
        let event = pb::LedgerEvent {
            seq: 7,
            time: Some(prost_types::Timestamp {
                seconds: 1_796_040_000,
                nanos: 0,
            }),
            entry: Some(entry),
            carried: false,
        };
        EventView::of(message(Some(Item::Event(event)))).unwrap()
    }

    fn message(item: Option<Item>) -> pb::TailCommandsResponse {
        pb::TailCommandsResponse {
            cursor: "c7".to_owned(),
            item,
        }
    }

    #[test]
    fn an_event_is_one_object_with_its_kind_and_its_cursor() {
        let change = pb::FateChange {
            revision: 1,
            fate: pb::Fate::Completed.into(),
            why: Some("the journal said so".to_owned()),
            ..pb::FateChange::default()
        };
        let command = pb::CommandRecord {
            command_id: "c-1".to_owned(),
            ..pb::CommandRecord::default()
        };
        let view = event(Entry::Resolved(pb::CommandResolved {
            command: Some(command),
            change: Some(change),
        }));
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(json["cursor"], "c7");
        assert_eq!(json["seq"], 7);
        assert_eq!(json["event"], "resolved");
        assert_eq!(json["command"]["command_id"], "c-1");
        assert_eq!(json["change"]["fate"], "completed");
        let text = view.text();
        assert!(
            text.starts_with("2026-11-30T12:00:00.000Z  resolved"),
            "{text}"
        );
        assert!(text.contains("the journal said so"), "{text}");
    }

    #[test]
    fn a_gap_is_told_and_a_heartbeat_is_not() {
        assert!(EventView::of(message(Some(Item::Heartbeat(pb::Heartbeat::default())))).is_none());
        let gap = EventView::of(message(Some(Item::Gap(pb::Gap::default())))).unwrap();
        assert_eq!(serde_json::to_value(&gap).unwrap()["event"], "gap");
        assert!(gap.gap().is_some() && gap.text().contains("retention"));
    }

    #[test]
    fn an_operation_keeps_its_detail() {
        let view = event(Entry::Operation(pb::Operation {
            who: "retention".to_owned(),
            what: "prune".to_owned(),
            target: None,
            detail: None,
        }));
        let json = serde_json::to_value(&view).unwrap();
        assert_eq!(
            (&json["who"], &json["what"]),
            (&"retention".into(), &"prune".into())
        );
        assert_eq!(json["detail"], serde_json::json!({}));
    }
}
