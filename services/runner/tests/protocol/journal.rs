//! Journal entries against bytes written down from the specification.

use fleetgate_runner::{
    CommandKind, Envelope, InvalidReply, JournalEntry, JournalState, Reply, RunnerCode, RunnerError,
};
use serde_json::{Value, json};

fn entry(state: Option<JournalState>) -> JournalEntry {
    JournalEntry {
        command_id: "c-1".parse().unwrap(),
        state,
        command: None,
        response_ok: None,
        response_json: None,
        error: None,
    }
}

fn read(data: &Value) -> Result<JournalEntry, InvalidReply> {
    let body = json!({ "ok": true, "data": data }).to_string();
    match Envelope::decode(CommandKind::CommandStatus, body.as_bytes())?.result {
        Ok(Reply::CommandStatus(entry)) => Ok(entry),
        other => panic!("{data} gave {other:?}"),
    }
}

fn written(entry: JournalEntry) -> Value {
    let body = Envelope::from(Ok(Reply::CommandStatus(entry))).encode();
    serde_json::from_slice::<Value>(&body).unwrap()["data"].take()
}

/// An entry of each state as a runner tells it.
fn goldens() -> [(JournalEntry, Value); 6] {
    let tap = || Some("tap".to_owned());
    let reply = r#"{"ok":true,"data":{"message":"tapped"}}"#;
    [
        (
            entry(Some(JournalState::NotAccepted)),
            json!({ "commandId": "c-1", "state": "notAccepted" }),
        ),
        (
            JournalEntry {
                command: tap(),
                ..entry(Some(JournalState::Accepted))
            },
            json!({ "commandId": "c-1", "state": "accepted", "command": "tap" }),
        ),
        (
            JournalEntry {
                command: tap(),
                ..entry(Some(JournalState::Started))
            },
            json!({ "commandId": "c-1", "state": "started", "command": "tap" }),
        ),
        (
            JournalEntry {
                command: tap(),
                response_ok: Some(true),
                response_json: Some(reply.to_owned()),
                ..entry(Some(JournalState::Completed))
            },
            json!({ "commandId": "c-1", "state": "completed", "command": "tap",
                    "responseOk": true, "responseJson": reply }),
        ),
        (
            JournalEntry {
                command: Some("snapshot".to_owned()),
                response_ok: Some(true),
                ..entry(Some(JournalState::Completed))
            },
            json!({ "commandId": "c-1", "state": "completed", "command": "snapshot", "responseOk": true }),
        ),
        (
            JournalEntry {
                command: tap(),
                response_ok: Some(false),
                error: Some(RunnerError {
                    code: RunnerCode::RunnerBusy,
                    message: "draining".to_owned(),
                    hint: Some("try again".to_owned()),
                }),
                ..entry(Some(JournalState::Failed))
            },
            json!({ "commandId": "c-1", "state": "failed", "command": "tap", "responseOk": false,
                    "errorCode": "RUNNER_BUSY", "errorMessage": "draining", "errorHint": "try again" }),
        ),
    ]
}

#[test]
fn an_entry_of_each_state_is_written_as_the_specification_says() {
    for (entry, golden) in goldens() {
        assert_eq!(written(entry), golden);
    }
}

#[test]
fn an_entry_of_each_state_is_read_as_the_specification_says() {
    for (entry, golden) in goldens() {
        assert_eq!(read(&golden), Ok(entry));
    }
}

#[test]
fn the_retained_reply_is_an_envelope_again() {
    let (entry, _) = goldens().into_iter().nth(3).unwrap();
    let reply = entry.response_json.unwrap();
    assert_eq!(
        Envelope::decode(CommandKind::Tap, reply.as_bytes()),
        Ok(Envelope::from(Ok(Reply::Done("tapped".to_owned()))))
    );
}

#[test]
fn a_retained_reply_that_is_an_object_means_the_same() {
    let golden = json!({ "commandId": "c-1", "state": "completed",
        "responseJson": { "ok": true, "data": { "message": "tapped" } } });
    let reply = read(&golden).unwrap().response_json.unwrap();
    assert_eq!(
        Envelope::decode(CommandKind::Tap, reply.as_bytes()),
        Ok(Envelope::from(Ok(Reply::Done("tapped".to_owned()))))
    );
}

#[test]
fn nulls_are_absent_fields_and_unknown_fields_are_ignored() {
    let golden = json!({ "commandId": "c-1", "state": "started", "command": null, "responseOk": null,
        "responseJson": null, "errorCode": null, "errorMessage": null, "errorHint": null, "v": 2 });
    assert_eq!(read(&golden), Ok(entry(Some(JournalState::Started))));
}

#[test]
fn an_unknown_state_proves_nothing_and_the_entry_survives() {
    for state in [json!("archived"), json!(null), json!("Completed")] {
        let golden = json!({ "commandId": "c-1", "state": state, "responseOk": true });
        let expected = JournalEntry {
            response_ok: Some(true),
            ..entry(None)
        };
        assert_eq!(read(&golden), Ok(expected), "{state}");
    }
}

#[test]
fn an_unknown_code_survives() {
    let golden = json!({ "commandId": "c-1", "state": "failed", "errorCode": "FROM_THE_FUTURE" });
    let error = read(&golden).unwrap().error.unwrap();
    assert_eq!(error.code, RunnerCode::Other("FROM_THE_FUTURE".to_owned()));
    assert_eq!(error.message, "");
}

#[test]
fn an_entry_without_its_id_or_with_a_wrong_type_is_unusable() {
    for golden in [
        json!({ "state": "completed" }),
        json!({ "commandId": "", "state": "completed" }),
        json!({ "commandId": "c-1", "state": 4 }),
        json!({ "commandId": "c-1", "state": "completed", "responseJson": 4 }),
        json!({ "commandId": "c-1", "state": "completed", "responseOk": "yes" }),
    ] {
        assert!(
            matches!(read(&golden), Err(InvalidReply::Data { .. })),
            "{golden}"
        );
    }
}
