//! Typed text never reaches a file of the ledger.

use fleetgate_ledger::{LedgerError, NewFate, NewIntent, Outcome};
use fleetgate_runner::{AppAction, AppCommand, Command, CommandKind, TypedText};
use serde_json::json;

use crate::support::{Place, completed, id, tap};

const CANARY: &str = "hunter2-canary-7f3a91";

fn holds(place: &Place, needle: &str) -> bool {
    let needle = needle.as_bytes();
    place
        .files()
        .values()
        .any(|bytes| bytes.windows(needle.len()).any(|window| window == needle))
}

#[tokio::test]
async fn of_a_typed_text_the_files_hold_the_length_only() {
    let place = Place::new();
    let ledger = place.open().await;
    let command = Command::App(AppCommand {
        bundle_id: "com.apple.Preferences".parse().unwrap(),
        action: AppAction::Type {
            text: TypedText::new(CANARY.to_owned()).unwrap(),
        },
    });
    let intent = NewIntent {
        kind: command.kind(),
        parameters: command.recorded(),
        ..tap("typed-command")
    };
    ledger.intend(intent).await.unwrap();
    let message = Some(command.redact(format!("could not type {CANARY}")));
    ledger
        .conclude(NewFate {
            command_id: id("typed-command"),
            outcome: Outcome {
                message,
                ..completed()
            },
        })
        .await
        .unwrap();

    let row = ledger.command(&id("typed-command")).await.unwrap().unwrap();
    assert_eq!(row.parameters["textLength"], json!(CANARY.len()));
    for when in ["open", "closed"] {
        assert!(
            holds(&place, "typed-command"),
            "{when}: the search should find what is there"
        );
        assert!(holds(&place, "could not type"), "{when}");
        assert!(!holds(&place, CANARY), "{when}");
        ledger.close().await;
    }
}

#[tokio::test]
async fn an_entry_that_holds_typed_text_is_refused_before_it_reaches_a_file() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut intent = NewIntent {
        kind: CommandKind::Type,
        ..tap("typed-command")
    };
    intent.parameters.insert("text".to_owned(), json!(CANARY));
    let error = ledger.intend(intent).await.unwrap_err();
    assert!(matches!(error, LedgerError::Unredacted { .. }), "{error:?}");
    assert!(!format!("{error} {error:?}").contains(CANARY));
    ledger.close().await;
    assert!(!holds(&place, CANARY));
}
