//! What the ledger tells of a command.

use fleetgate_proto::v1::{CommandRecord, FateChange, GetCommandResponse};
use prost_types::value::Kind;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::output::{self, clean, columns, pairs};
use crate::{when, words};

/// A command and every word on its fate, as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ShownView {
    #[serde(flatten)]
    record: RecordView,
    history: Vec<ChangeView>,
}

impl ShownView {
    /// What a gateway tells of a command; `None` if that is nothing.
    pub(crate) fn of(reply: GetCommandResponse) -> Option<Self> {
        Some(Self {
            record: reply.command?.into(),
            history: reply.history.into_iter().map(ChangeView::from).collect(),
        })
    }

    /// All of it over several lines; a single word on the fate is in the record
    /// already.
    pub(crate) fn text(&self) -> String {
        let record = self.record.text();
        if self.history.len() < 2 {
            return record;
        }
        let history = self.history.iter().map(|change| {
            let time = change.time.as_deref().unwrap_or_default();
            clean(&format!("  {time}  {}", change.line()))
        });
        format!("{record}history:\n{}", output::lines(history))
    }
}

/// One word on a command's fate as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeView {
    revision: u32,
    time: Option<String>,
    fate: String,
    effect: String,
    reason: Option<String>,
    why: Option<String>,
    unknown_for_good: bool,
}

impl From<FateChange> for ChangeView {
    fn from(change: FateChange) -> Self {
        Self {
            revision: change.revision,
            time: change.time.and_then(when::stamp),
            fate: words::fate(change.fate),
            effect: words::effect(change.effect),
            reason: change.reason,
            why: change.why,
            unknown_for_good: change.unknown_for_good,
        }
    }
}

impl ChangeView {
    /// The word in a few words.
    pub(crate) fn line(&self) -> String {
        let reason = self.reason.as_deref().map(|reason| format!(" ({reason})"));
        let why = self.why.as_deref().map(|why| format!(": {why}"));
        let for_good = if self.unknown_for_good {
            " for good"
        } else {
            ""
        };
        format!(
            "{}{for_good}, effect {}{}{}",
            self.fate,
            self.effect,
            reason.unwrap_or_default(),
            why.unwrap_or_default()
        )
    }
}

/// A record as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct RecordView {
    command_id: String,
    device: String,
    kind: String,
    app_bundle_id: Option<String>,
    parameters: Map<String, Value>,
    fate: String,
    effect: String,
    reason: Option<String>,
    message: Option<String>,
    warning: Option<String>,
    reactivated: bool,
    attempts: u32,
    recovered: bool,
    create_time: Option<String>,
    conclude_time: Option<String>,
    queue_wait_ms: Option<f64>,
    device_time_ms: Option<f64>,
}

impl From<CommandRecord> for RecordView {
    fn from(record: CommandRecord) -> Self {
        Self {
            kind: words::kind(record.kind),
            fate: words::fate(record.fate),
            effect: words::effect(record.effect),
            command_id: record.command_id,
            device: record.device,
            app_bundle_id: record.app_bundle_id,
            parameters: record.parameters.map(object).unwrap_or_default(),
            reason: record.reason,
            message: record.message,
            warning: record.warning,
            reactivated: record.reactivated,
            attempts: record.attempts,
            recovered: record.recovered,
            create_time: record.create_time.and_then(when::stamp),
            conclude_time: record.conclude_time.and_then(when::stamp),
            queue_wait_ms: record.queue_wait.and_then(when::millis),
            device_time_ms: record.device_time.and_then(when::millis),
        }
    }
}

impl RecordView {
    /// The record over several lines.
    pub(crate) fn text(&self) -> String {
        pairs(
            0,
            [
                ("command", Some(self.command_id.clone())),
                ("device", Some(self.device.clone())),
                ("kind", Some(self.kind.clone())),
                ("app", self.app_bundle_id.clone()),
                ("parameters", self.parameters()),
                ("fate", Some(self.fate.clone())),
                ("effect", Some(self.effect.clone())),
                ("reason", self.reason.clone()),
                ("message", self.message.clone()),
                ("warning", self.warning.clone()),
                ("reactivated", self.reactivated.then(|| "yes".to_owned())),
                ("recovered", self.recovered.then(|| "yes".to_owned())),
                ("attempts", Some(self.attempts.to_string())),
                ("recorded", self.create_time.clone()),
                ("concluded", self.conclude_time.clone()),
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

    /// The record in a few words.
    pub(crate) fn line(&self) -> String {
        let remarks = self.remarks();
        let words = [
            &self.command_id,
            &self.device,
            &self.kind,
            &self.fate,
            &self.effect,
            &remarks,
        ];
        words.map(String::as_str).join("  ").trim_end().to_owned()
    }

    /// What the ledger keeps of the request; `None` if that is nothing.
    pub(crate) fn parameters(&self) -> Option<String> {
        (!self.parameters.is_empty()).then(|| Value::Object(self.parameters.clone()).to_string())
    }

    /// Whatever is out of the ordinary, in a few words.
    fn remarks(&self) -> String {
        let mut remarks: Vec<&str> = self.reason.as_deref().into_iter().collect();
        if self.recovered {
            remarks.push("recovered");
        }
        if self.reactivated {
            remarks.push("reactivated");
        }
        if self.warning.is_some() {
            remarks.push("warning");
        }
        remarks.join(", ")
    }
}

/// Records, one a line.
pub(crate) fn lines(records: &[RecordView]) -> String {
    let rows = records.iter().map(|record| {
        [
            record.create_time.clone().unwrap_or_default(),
            record.command_id.clone(),
            record.device.clone(),
            record.kind.clone(),
            record.fate.clone(),
            record.effect.clone(),
            record
                .device_time_ms
                .map(|millis| format!("{millis} ms"))
                .unwrap_or_default(),
            record.remarks(),
        ]
    });
    columns(
        [
            "RECORDED", "COMMAND", "DEVICE", "KIND", "FATE", "EFFECT", "TOOK", "REMARKS",
        ],
        rows,
    )
}

/// A message's object as JSON's.
pub(crate) fn object(object: prost_types::Struct) -> Map<String, Value> {
    object
        .fields
        .into_iter()
        .map(|(key, value)| (key, json(value)))
        .collect()
}

fn json(value: prost_types::Value) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => Value::Bool(value),
        Some(Kind::StringValue(value)) => Value::String(value),
        Some(Kind::NumberValue(value)) => number(value),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(json).collect(),
        Some(Kind::StructValue(value)) => Value::Object(object(value)),
    }
}

/// A whole number without its `.0`; what JSON cannot say is null.
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "integral and in range, as just checked"
        )]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fleetgate_proto::v1::{CommandKind, Effect, Fate};

    use super::*;

    fn number_value(value: f64) -> prost_types::Value {
        prost_types::Value {
            kind: Some(Kind::NumberValue(value)),
        }
    }

    fn record() -> CommandRecord {
        CommandRecord {
            command_id: "c-1".to_owned(),
            device: "00008110-000978540290401E".to_owned(),
            kind: CommandKind::Tap.into(),
            app_bundle_id: Some("com.example".to_owned()),
            parameters: Some(prost_types::Struct {
                fields: BTreeMap::from([
                    ("x".to_owned(), number_value(195.0)),
                    ("y".to_owned(), number_value(0.5)),
                ]),
            }),
            fate: Fate::Completed.into(),
            effect: Effect::Applied.into(),
            attempts: 1,
            recovered: true,
            create_time: Some(prost_types::Timestamp {
                seconds: 1_796_040_000,
                nanos: 0,
            }),
            ..CommandRecord::default()
        }
    }

    #[test]
    fn a_record_is_one_line_of_a_history() {
        let text = lines(&[record().into()]);
        let line = text.lines().nth(1).unwrap();
        for cell in [
            "2026-11-30T12:00:00.000Z",
            "c-1",
            "tap",
            "completed",
            "applied",
            "recovered",
        ] {
            assert!(line.contains(cell), "{cell} is missing in {line}");
        }
    }

    #[test]
    fn a_record_without_a_fate_is_pending() {
        let open = CommandRecord {
            fate: 0,
            effect: 0,
            recovered: false,
            ..record()
        };
        let text = RecordView::from(open).text();
        assert!(text.contains("fate:       pending"), "{text}");
        assert!(!text.contains("concluded"), "{text}");
    }

    #[test]
    fn a_fate_that_was_corrected_shows_its_history() {
        let change = |revision, fate: Fate, why: Option<&str>| FateChange {
            revision,
            fate: fate.into(),
            effect: Effect::Unknown.into(),
            why: why.map(str::to_owned),
            ..FateChange::default()
        };
        let reply = GetCommandResponse {
            command: Some(record()),
            history: vec![
                change(0, Fate::Unknown, None),
                change(1, Fate::Completed, Some("from the journal")),
                FateChange {
                    unknown_for_good: true,
                    ..change(2, Fate::Unknown, Some("the runner restarted"))
                },
            ],
        };
        let shown = ShownView::of(reply).unwrap();
        let text = shown.text();
        assert!(text.contains("unknown, effect unknown\n"), "{text}");
        assert!(
            text.contains("completed, effect unknown: from the journal\n"),
            "{text}"
        );
        assert!(
            text.contains("unknown for good, effect unknown: the runner restarted\n"),
            "{text}"
        );
        let json = serde_json::to_value(shown).unwrap();
        assert_eq!(json["command_id"], "c-1");
        assert_eq!(json["history"][1]["why"], "from the journal");
        assert_eq!(json["history"][1]["unknown_for_good"], false);
        assert_eq!(json["history"][2]["unknown_for_good"], true);
    }

    #[test]
    fn parameters_keep_their_shape_and_whole_numbers_stay_whole() {
        let json = serde_json::to_value(RecordView::from(record())).unwrap();
        assert_eq!(
            json["parameters"],
            serde_json::json!({ "x": 195, "y": 0.5 })
        );
        assert_eq!(json["kind"], "tap");
        assert_eq!(json["reason"], Value::Null);
    }

    #[test]
    fn a_number_that_json_cannot_say_is_null() {
        assert_eq!(number(f64::NAN), Value::Null);
        assert_eq!(number(1e300), serde_json::json!(1e300));
    }
}
