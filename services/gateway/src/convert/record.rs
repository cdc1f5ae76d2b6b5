//! The ledger's rows and queries.

use std::time::UNIX_EPOCH;

use fleetgate_ledger::{
    Checkpoint, CommandQuery, CommandRow, Conclusion, EventKind, LeaseStamp, LedgerEvent,
    Operation, OperationQuery, OperationRow, Outcome, PageToken, Subject,
};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_runner::{CommandId, Fate};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use serde_json::Map;

use super::device::transition;
use super::enums::{effect, fate, fate_from, kind, kind_from};
use super::fields::page_size;
use super::time::{duration, moment, timestamp};
use super::violations::{Violation, Violations};
use crate::pending::Note;

/// A row as the API tells it.
pub(crate) fn record(row: CommandRow) -> pb::CommandRecord {
    let mut record = pb::CommandRecord {
        command_id: row.command_id.into(),
        device: row.device.into(),
        kind: kind(row.kind).into(),
        app_bundle_id: row.app_bundle_id.map(Into::into),
        parameters: Some(structure(row.parameters)),
        create_time: Some(timestamp(row.created)),
        principal: row.principal,
        lease: row
            .lease
            .map(|LeaseStamp { id, epoch }| pb::LeaseRef { id, epoch }),
        ..pb::CommandRecord::default()
    };
    if let Some(Conclusion {
        outcome, concluded, ..
    }) = row.conclusion
    {
        let Outcome {
            fate: became,
            effect: did,
            reason,
            message,
            warning,
            reactivated,
            attempts,
            recovered,
            queue_wait,
            device_time,
            hint: _,
            reply: _,
        } = outcome;
        record.fate = fate(became).into();
        record.effect = effect(did).into();
        record.reason = reason;
        record.message = message;
        record.warning = warning;
        record.reactivated = reactivated;
        record.attempts = attempts;
        record.recovered = recovered;
        record.conclude_time = Some(timestamp(concluded));
        record.queue_wait = Some(duration(queue_wait));
        record.device_time = Some(duration(device_time));
    }
    record
}

/// One word on a command's fate as the API tells it.
pub(crate) fn fate_change(conclusion: Conclusion) -> pb::FateChange {
    let Conclusion {
        revision,
        outcome,
        concluded,
        why,
        is_final,
    } = conclusion;
    pb::FateChange {
        revision,
        time: Some(timestamp(concluded)),
        fate: fate(outcome.fate).into(),
        effect: effect(outcome.effect).into(),
        reason: outcome.reason,
        why,
        unknown_for_good: is_final && outcome.fate == Fate::Unknown,
    }
}

/// An event of the ledger as the API tells it.
pub(crate) fn event(event: LedgerEvent) -> pb::LedgerEvent {
    let LedgerEvent {
        seq,
        cursor: _,
        kind,
        at,
        subject,
    } = event;
    pb::LedgerEvent {
        seq: u64::try_from(seq).unwrap_or_default(),
        time: Some(timestamp(at)),
        carried: matches!(kind, EventKind::Carried | EventKind::CarriedFate),
        entry: Some(match subject {
            Subject::Command(row) => command_entry(kind, *row),
            Subject::Operation(done) => Entry::Operation(operation(done)),
            Subject::Transition(moved) => Entry::Transition(transition(moved)),
            Subject::Ledger { ledger_id } => Entry::Operation(pb::Operation {
                who: "ledger".to_owned(),
                what: kind.to_string(),
                target: Some(ledger_id),
                detail: None,
            }),
            Subject::Checkpoint(checkpoint) => Entry::Operation(pb::Operation {
                who: "retention".to_owned(),
                what: kind.to_string(),
                target: None,
                detail: Some(structure(pruned(&checkpoint))),
            }),
        }),
    }
}

/// An operation and its place on record as the API tells them.
pub(crate) fn operation_record(row: OperationRow) -> pb::OperationRecord {
    pb::OperationRecord {
        seq: u64::try_from(row.seq).unwrap_or_default(),
        time: Some(timestamp(row.at)),
        operation: Some(operation(row.operation)),
    }
}

fn operation(operation: Operation) -> pb::Operation {
    let Operation {
        who,
        what,
        target,
        detail,
    } = operation;
    pb::Operation {
        who,
        what,
        target,
        detail: Some(structure(detail)),
    }
}

fn command_entry(kind: EventKind, row: CommandRow) -> Entry {
    match row.conclusion.clone() {
        None => Entry::Intended(record(row)),
        Some(conclusion) if kind == EventKind::Resolved => Entry::Resolved(pb::CommandResolved {
            command: Some(record(row)),
            change: Some(fate_change(conclusion)),
        }),
        Some(_) => Entry::Concluded(record(row)),
    }
}

fn pruned(checkpoint: &Checkpoint) -> Map<String, serde_json::Value> {
    let through = checkpoint
        .pruned_through
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    [
        ("last_seq", checkpoint.removed.seq.into()),
        ("last_hash", checkpoint.removed.hash.to_string().into()),
        ("commands_pruned", checkpoint.commands_pruned.into()),
        ("pruned_through_seconds", through.as_secs_f64().into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}

/// A command without a row as the API tells it: admitted, and nothing more.
pub(crate) fn pending_record(command_id: &CommandId, note: &Note) -> pb::CommandRecord {
    pb::CommandRecord {
        command_id: command_id.to_string(),
        device: note.device.to_string(),
        kind: kind(note.kind()).into(),
        app_bundle_id: note.app_bundle_id().map(ToString::to_string),
        create_time: Some(timestamp(note.admitted)),
        ..pb::CommandRecord::default()
    }
}

/// A query from its message, but for the device: whom a name means is not known
/// here.
pub(crate) fn command_query(
    request: pb::ListCommandsRequest,
) -> Result<CommandQuery, Vec<Violation>> {
    let mut violations = Violations::default();
    let kinds = each("kinds", request.kinds, kind_from, &mut violations);
    let fates = each("fates", request.fates, fate_from, &mut violations);
    let from = moment("start_time", request.start_time, &mut violations);
    let to = moment("end_time", request.end_time, &mut violations);
    if let (Some(Some(from)), Some(Some(to))) = (from, to)
        && to < from
    {
        violations.add("end_time", "must not be before start_time");
    }
    let size =
        page_size(request.page_size, &mut violations).and_then(|size| u32::try_from(size).ok());
    let token = page_token(&request.page_token, &mut violations);
    let query = || {
        Some(CommandQuery {
            device: None,
            kinds: kinds?,
            fates: fates?,
            from: from?,
            to: to?,
            principal: given(request.principal),
            lease: given(request.lease_id),
            page_size: size?,
            page_token: token?,
        })
    };
    violations.finish(query())
}

/// A query of operations from its message.
pub(crate) fn operation_query(
    request: pb::ListOperationsRequest,
) -> Result<OperationQuery, Vec<Violation>> {
    let pb::ListOperationsRequest {
        who,
        what,
        target,
        start_time,
        page_size: size,
        page_token: token,
    } = request;
    let mut violations = Violations::default();
    let since = moment("start_time", start_time, &mut violations);
    let size = page_size(size, &mut violations).and_then(|size| u32::try_from(size).ok());
    let token = page_token(&token, &mut violations);
    let query = || {
        Some(OperationQuery {
            who: given(who),
            what: given(what),
            target: given(target),
            since: since?,
            page_size: size?,
            page_token: token?,
        })
    };
    violations.finish(query())
}

/// A name that is asked for, unless any is meant.
fn given(name: String) -> Option<String> {
    Some(name).filter(|name| !name.is_empty())
}

/// Where the page before ended. `None` if it is wrong.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
fn page_token(token: &str, violations: &mut Violations) -> Option<Option<PageToken>> {
    match token {
        "" => Some(None),
        token => violations.take("page_token", token.parse()).map(Some),
    }
}

fn each<T>(
    field: &str,
    values: Vec<i32>,
    known: impl Fn(i32) -> Option<T>,
    violations: &mut Violations,
) -> Option<Vec<T>> {
    let known: Option<Vec<T>> = values.into_iter().map(known).collect();
    known.or_else(|| violations.refuse(field, "must be values of this API"))
}

fn structure(fields: Map<String, serde_json::Value>) -> Struct {
    Struct {
        fields: fields
            .into_iter()
            .map(|(name, field)| (name, value(field)))
            .collect(),
    }
}

fn value(value: serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(value),
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(values) => Kind::ListValue(ListValue {
            values: values.into_iter().map(self::value).collect(),
        }),
        serde_json::Value::Object(fields) => Kind::StructValue(structure(fields)),
    };
    Value { kind: Some(kind) }
}
