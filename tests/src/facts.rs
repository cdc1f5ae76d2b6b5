//! The facts about a command, wherever they are told: in a receipt, in an
//! error, in the ledger, on the phone.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandReceipt, CommandRecord, Effect, Fate};
use fleetgate_runner::{CommandId, CommandKind};
use fleetgate_simulator::Phone;
use prost_types::value::Kind;
use prost_types::{Struct, Timestamp};
use serde_json::{Map, Value};

use crate::{APP, PATIENCE, Rig, plain};

/// The receipt of a command that the runner carried out at the first attempt,
/// without anything to say about it.
#[track_caller]
pub fn clean(receipt: Option<CommandReceipt>, command_id: &str) -> CommandReceipt {
    let receipt = receipt.expect("every reply has a receipt");
    let (queue_wait, device_time) = (receipt.queue_wait, receipt.device_time);
    let expected = CommandReceipt {
        command_id: command_id.to_owned(),
        fate: Fate::Completed.into(),
        effect: Effect::Applied.into(),
        reactivated: false,
        warning: None,
        attempts: 1,
        recovered: false,
        queue_wait,
        device_time,
        replayed: false,
    };
    assert_eq!(receipt, expected);
    assert!(wait(queue_wait) < PATIENCE, "{receipt:?}");
    let device_time = wait(device_time);
    assert!(
        device_time > Duration::ZERO && device_time < PATIENCE,
        "{receipt:?}"
    );
    receipt
}

/// A duration that must be there.
#[track_caller]
pub fn wait(duration: Option<prost_types::Duration>) -> Duration {
    duration
        .expect("a duration")
        .try_into()
        .expect("a duration that is not negative")
}

/// A moment that must be there.
#[track_caller]
pub fn moment(timestamp: Option<Timestamp>) -> SystemTime {
    timestamp
        .expect("a time")
        .try_into()
        .expect("a time of this age")
}

/// A row's parameters as JSON; numbers are floating-point numbers.
pub fn parameters(row: &CommandRecord) -> Value {
    object(row.parameters.clone().unwrap_or_default())
}

/// Fields as JSON; numbers are floating-point numbers.
pub fn object(fields: Struct) -> Value {
    Value::Object(
        fields
            .fields
            .into_iter()
            .map(|(name, field)| (name, json(field)))
            .collect::<Map<_, _>>(),
    )
}

fn json(value: prost_types::Value) -> Value {
    match value.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::NumberValue(number)) => number.into(),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::BoolValue(value)) => value.into(),
        Some(Kind::StructValue(fields)) => object(fields),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(json).collect(),
    }
}

/// Asserts that the ledger says of a command what its receipt said, and when
/// it was; `parameters` are the fields of the runner's request.
pub async fn on_record(
    rig: &Rig,
    device: &str,
    kind: CommandKind,
    receipt: &CommandReceipt,
    expected_parameters: Value,
) -> CommandRecord {
    let row = rig
        .find(&receipt.command_id)
        .await
        .expect("a reply comes after its record");
    assert_eq!(parameters(&row), expected_parameters);
    let app = plain::IN_AN_APP.contains(&kind).then(|| APP.to_owned());
    let expected = CommandRecord {
        command_id: receipt.command_id.clone(),
        device: device.to_owned(),
        kind: plain::kind(kind).into(),
        app_bundle_id: app,
        fate: receipt.fate,
        effect: receipt.effect,
        reason: None,
        message: None,
        warning: receipt.warning.clone(),
        reactivated: receipt.reactivated,
        attempts: receipt.attempts,
        recovered: receipt.recovered,
        ..row.clone()
    };
    assert_eq!(row, expected);
    assert_times(&row);
    // Microseconds are what a row holds.
    let micros = |duration| wait(duration).as_micros();
    assert_eq!(micros(row.queue_wait), micros(receipt.queue_wait));
    assert_eq!(micros(row.device_time), micros(receipt.device_time));
    row
}

/// Asserts that a row with a fate was made at times that can be.
#[track_caller]
pub fn assert_times(row: &CommandRecord) {
    let (created, concluded) = (moment(row.create_time), moment(row.conclude_time));
    let now = SystemTime::now();
    assert!(created <= concluded && concluded <= now, "{row:?}");
    let age = now.duration_since(created).expect("the past");
    assert!(age < PATIENCE, "{row:?}");
}

/// What a command did on the phone, in the words of the phone's log.
pub fn effects(phone: &Phone, command_id: &str) -> Vec<String> {
    let id: CommandId = command_id.parse().expect("a command id");
    let of_command = phone
        .effects()
        .into_iter()
        .filter(|effect| effect.command_id.as_ref() == Some(&id));
    of_command.map(|effect| effect.what).collect()
}

/// All rows of the ledger, the newest first.
pub async fn rows(rig: &Rig) -> Vec<CommandRecord> {
    let request = pb::ListCommandsRequest {
        page_size: 1000,
        ..pb::ListCommandsRequest::default()
    };
    let page = rig
        .ledger()
        .list_commands(request)
        .await
        .expect("ListCommands")
        .into_inner();
    assert_eq!(page.next_page_token, "", "one page holds all");
    page.commands
}

/// Asserts that no file in `dir` holds `secret`, and that one holds `known`, so
/// that the right files were looked at.
#[track_caller]
pub fn in_no_file(dir: &Path, secret: &str, known: &str) {
    let mut found = false;
    for entry in fs::read_dir(dir).expect("a directory") {
        let file = entry.expect("a directory's entry").path();
        if !file.is_file() {
            continue;
        }
        let bytes = fs::read(&file).expect("a file");
        let holds = |text: &str| {
            bytes
                .windows(text.len())
                .any(|window| window == text.as_bytes())
        };
        assert!(!holds(secret), "{} holds a secret", file.display());
        found |= holds(known);
    }
    assert!(found, "{} holds nothing of {known}", dir.display());
}
