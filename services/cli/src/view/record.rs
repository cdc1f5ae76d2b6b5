//! What the ledger tells of a command.

use fleetgate_proto::v1::{CommandRecord, FateChange, GetCommandResponse, LeaseRef};
use prost_types::value::Kind;
use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::output::{self, clean, columns, pairs};
use crate::{when, words};

#[cfg(test)]
mod tests;

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
    /// Who asked for it.
    principal: Option<String>,
    /// What it was carried out under.
    lease: Option<UnderView>,
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

/// A lease and its grant as JSON.
#[derive(Debug, Serialize)]
struct UnderView {
    id: String,
    epoch: u64,
}

impl UnderView {
    fn text(&self) -> String {
        format!("{}, epoch {}", self.id, self.epoch)
    }
}

impl From<LeaseRef> for UnderView {
    fn from(LeaseRef { id, epoch }: LeaseRef) -> Self {
        Self { id, epoch }
    }
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
            principal: record.principal,
            lease: record.lease.map(UnderView::from),
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
                ("asked by", self.principal.clone()),
                ("lease", self.lease.as_ref().map(UnderView::text)),
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
