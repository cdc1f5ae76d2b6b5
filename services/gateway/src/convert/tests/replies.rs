//! Replies and receipts: no value is lost.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{
    CommandKind, Effect, Fate, JournalEntry, JournalState, Reply, RunnerCode, RunnerError,
    RunnerState, RunnerStatus,
};
use fleetgate_session::Receipt;

use super::duration;
use crate::convert::{CommandResponse, receipt};

fn facts() -> Receipt {
    Receipt {
        command_id: "c-1".parse().unwrap(),
        kind: CommandKind::Tap,
        fate: Fate::CompletedResultLost,
        effect: Effect::Applied,
        reactivated: true,
        warning: Some("look again".to_owned()),
        attempts: 3,
        recovered: true,
        queue_wait: Duration::from_millis(1500),
        device_time: Duration::from_nanos(7_999),
    }
}

#[test]
fn a_receipt_keeps_every_fact() {
    assert_eq!(
        receipt(facts()),
        pb::CommandReceipt {
            command_id: "c-1".to_owned(),
            fate: pb::Fate::CompletedResultLost.into(),
            effect: pb::Effect::Applied.into(),
            reactivated: true,
            warning: Some("look again".to_owned()),
            attempts: 3,
            recovered: true,
            queue_wait: duration(1, 500_000_000),
            device_time: duration(0, 7_000),
            replayed: false,
        }
    );
}

#[test]
fn a_reply_answers_its_own_command_only() {
    let done = || Reply::Done("tapped".to_owned());
    let message = pb::TapResponse::from_reply(receipt(facts()), done()).unwrap();
    assert_eq!(message.message, "tapped");
    assert_eq!(message.receipt, Some(receipt(facts())));
    assert!(pb::GetViewportResponse::from_reply(receipt(facts()), done()).is_none());
    assert!(pb::CaptureSnapshotResponse::from_reply(receipt(facts()), done()).is_none());
    assert!(pb::GetRunnerStatusResponse::from_reply(receipt(facts()), done()).is_none());
}

#[test]
fn a_snapshot_keeps_every_field_of_every_node() {
    let json = r#"{"nodes":[{"index":0,"type":"Button","label":"General","identifier":"id","value":"v",
        "rect":{"x":16,"y":768.7,"width":361,"height":52},"enabled":true,"focused":false,"selected":true,
        "depth":3,"parentIndex":44}],
        "quality":{"state":"degraded","backend":"xctest","reason":"many","reasonCode":"node_cap"}}"#;
    let snapshot = serde_json::from_str(json).unwrap();
    let message =
        pb::CaptureSnapshotResponse::from_reply(receipt(facts()), Reply::Snapshot(snapshot))
            .unwrap();
    assert_eq!(
        message.nodes,
        [pb::SnapshotNode {
            index: 0,
            r#type: "Button".to_owned(),
            label: Some("General".to_owned()),
            identifier: Some("id".to_owned()),
            value: Some("v".to_owned()),
            rect: Some(pb::Rect {
                x: 16.0,
                y: 768.7,
                width: 361.0,
                height: 52.0
            }),
            enabled: Some(true),
            focused: Some(false),
            selected: Some(true),
            depth: 3,
            parent_index: Some(44),
        }]
    );
    let quality = message.quality.unwrap();
    assert_eq!(quality.state(), pb::SnapshotState::Degraded);
    assert_eq!(quality.reason_code.as_deref(), Some("node_cap"));
}

#[test]
fn a_runners_status_and_its_journal_are_told_in_full() {
    let status = RunnerStatus {
        uptime: Duration::from_secs(5),
        state: RunnerState::Wedged,
        suppressed_issues: 1,
        recorded_failures: 2,
    };
    let message =
        pb::GetRunnerStatusResponse::from_reply(receipt(facts()), Reply::Status(status)).unwrap();
    assert_eq!(message.state(), pb::RunnerState::Wedged);
    assert_eq!(
        (message.suppressed_issues, message.recorded_failures),
        (1, 2)
    );
    assert_eq!(message.uptime, duration(5, 0));

    let entry = JournalEntry {
        command_id: "c-9".parse().unwrap(),
        state: Some(JournalState::Failed),
        command: Some("longPress".to_owned()),
        response_ok: Some(false),
        response_json: Some("{}".to_owned()),
        error: Some(RunnerError {
            code: RunnerCode::CommandFailed,
            message: "words".to_owned(),
            hint: Some("hint".to_owned()),
        }),
    };
    let message = pb::GetRunnerCommandStatusResponse::from_reply(
        receipt(facts()),
        Reply::CommandStatus(entry),
    )
    .unwrap();
    assert_eq!(message.command_id, "c-9");
    assert_eq!(message.state(), pb::JournalState::Failed);
    assert_eq!(message.kind(), pb::CommandKind::LongPress);
    assert_eq!(message.response_ok, Some(false));
    assert!(message.response_retained);
    assert_eq!(message.error_code.as_deref(), Some("COMMAND_FAILED"));
    assert_eq!(message.error_message.as_deref(), Some("words"));
    assert_eq!(message.error_hint.as_deref(), Some("hint"));
}

#[test]
fn the_journals_words_on_a_command_that_may_have_typed_are_withheld() {
    let told = |command: Option<&str>| told_of(command, RunnerCode::CommandFailed);
    for command in [Some("type"), Some("paste"), None] {
        let message = told(command);
        assert!(!format!("{message:?}").contains("hunter2"), "{command:?}");
        assert_eq!(message.error_code.as_deref(), Some("COMMAND_FAILED"));
        assert_eq!(message.state(), pb::JournalState::Failed);
        let message = told_of(command, RunnerCode::Other("hunter2".to_owned()));
        assert_eq!(message.error_code.as_deref(), Some("REDACTED"));
    }
    assert_eq!(told(Some("type")).kind(), pb::CommandKind::Type);
    assert_eq!(told(Some("paste")).kind, None);
    assert!(told(Some("tap")).error_hint.is_some());
    let other = told_of(Some("tap"), RunnerCode::Other("NEW".to_owned()));
    assert_eq!(other.error_code.as_deref(), Some("NEW"));
}

/// An entry about a command of this name that says what was typed, as the API
/// tells it.
fn told_of(command: Option<&str>, code: RunnerCode) -> pb::GetRunnerCommandStatusResponse {
    let entry = JournalEntry {
        command_id: "c-9".parse().unwrap(),
        state: Some(JournalState::Failed),
        command: command.map(str::to_owned),
        response_ok: Some(false),
        response_json: Some(r#"{"ok":false,"error":"cannot type hunter2"}"#.to_owned()),
        error: Some(RunnerError {
            code,
            message: "cannot type hunter2".to_owned(),
            hint: Some("do not type hunter2".to_owned()),
        }),
    };
    let reply = Reply::CommandStatus(entry);
    pb::GetRunnerCommandStatusResponse::from_reply(receipt(facts()), reply).unwrap()
}
