//! Commands as they are shown.

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
fn a_record_says_who_asked_and_under_which_lease() {
    let record = CommandRecord {
        principal: Some("token:ci".to_owned()),
        lease: Some(LeaseRef {
            id: "l-1".to_owned(),
            epoch: 7,
        }),
        ..record()
    };
    let view = RecordView::from(record);
    let text = view.text();
    assert!(text.contains("asked by:   token:ci"), "{text}");
    assert!(text.contains("lease:      l-1, epoch 7"), "{text}");
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(json["principal"], "token:ci");
    assert_eq!(
        json["lease"],
        serde_json::json!({ "id": "l-1", "epoch": 7 })
    );
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
