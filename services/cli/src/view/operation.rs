//! What was done besides commands, and by whom.

use fleetgate_proto::v1::{Operation, OperationRecord};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::sparse_columns;
use crate::view::record::object;
use crate::when;

/// An operation as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct OperationView {
    seq: u64,
    time: Option<String>,
    who: String,
    what: String,
    target: Option<String>,
    detail: Map<String, Value>,
}

impl From<OperationRecord> for OperationView {
    fn from(record: OperationRecord) -> Self {
        let OperationRecord {
            seq,
            time,
            operation,
        } = record;
        let Operation {
            who,
            what,
            target,
            detail,
        } = operation.unwrap_or_default();
        Self {
            seq,
            time: time.and_then(when::stamp),
            who,
            what,
            target,
            detail: detail.map(object).unwrap_or_default(),
        }
    }
}

impl OperationView {
    /// The detail in a few words.
    fn details(&self) -> String {
        let details = self.detail.iter().map(|(name, value)| match value {
            Value::String(text) => format!("{name}={text}"),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => format!("{name}={value}"),
        });
        details.collect::<Vec<_>>().join(" ")
    }
}

/// Operations, one a line.
pub(crate) fn lines(operations: &[OperationView]) -> String {
    let rows = operations.iter().map(|operation| {
        [
            operation.time.clone().unwrap_or_default(),
            operation.who.clone(),
            operation.what.clone(),
            operation.target.clone().unwrap_or_default(),
            operation.details(),
        ]
    });
    sparse_columns(["RECORDED", "WHO", "WHAT", "TARGET", "DETAIL"], rows)
}

#[cfg(test)]
mod tests {
    use prost_types::value::Kind;

    use super::*;

    fn denied(target: Option<&str>) -> OperationView {
        let value = |kind| prost_types::Value { kind: Some(kind) };
        let detail = [
            (
                "reason".to_owned(),
                value(Kind::StringValue("ROLE_TOO_LOW".to_owned())),
            ),
            ("repeated".to_owned(), value(Kind::NumberValue(3.0))),
        ];
        OperationView::from(OperationRecord {
            seq: 7,
            time: Some(prost_types::Timestamp {
                seconds: 1_796_040_000,
                nanos: 0,
            }),
            operation: Some(Operation {
                who: "token:ci".to_owned(),
                what: "deny-call".to_owned(),
                target: target.map(str::to_owned),
                detail: Some(prost_types::Struct {
                    fields: detail.into(),
                }),
            }),
        })
    }

    #[test]
    fn an_operation_is_one_line_that_says_who_did_what() {
        let text = lines(&[denied(Some("/fleetgate.v1.AutomationService/Tap"))]);
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "2026-11-30T12:00:00.000Z  token:ci  deny-call  \
             /fleetgate.v1.AutomationService/Tap  reason=ROLE_TOO_LOW repeated=3"
        );
        let without = lines(&[denied(None)]);
        assert!(!without.contains("TARGET"), "{without}");
    }

    #[test]
    fn its_detail_is_an_object_of_its_own_in_json() {
        let json = serde_json::to_value(denied(None)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({
                "seq": 7,
                "time": "2026-11-30T12:00:00.000Z",
                "who": "token:ci",
                "what": "deny-call",
                "target": null,
                "detail": { "reason": "ROLE_TOO_LOW", "repeated": 3 },
            })
        );
    }
}
