//! Later words on a command, and what a replay needs.

use fleetgate_ledger::{
    CommandQuery, KeptReply, LedgerError, MAX_KEPT_REPLY, NewFate, NewIntent, NewRecord,
    NewResolution, Outcome,
};
use fleetgate_runner::{CommandKind, Effect, Fate};
use serde_json::json;

use crate::support::{
    PHONE, Place, at_once, completed, conclude, id, read, record, resolve, run, tap, unknown,
};

#[tokio::test]
async fn an_unknown_fate_is_settled_later_and_both_words_stay() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger
        .conclude(NewFate {
            command_id: id("a"),
            outcome: unknown(),
        })
        .await
        .unwrap();
    ledger.resolve(resolve("a", unknown())).await.unwrap();
    ledger.resolve(resolve("a", completed())).await.unwrap();

    let history = ledger.history(&id("a")).await.unwrap();
    let words: Vec<_> = history
        .iter()
        .map(|word| (word.revision, word.outcome.fate, word.why.as_deref()))
        .collect();
    assert_eq!(
        words,
        [
            (0, Fate::Unknown, None),
            (1, Fate::Unknown, Some("the runner's journal")),
            (2, Fate::Completed, Some("the runner's journal")),
        ]
    );
    assert!(history.is_sorted_by_key(|word| word.concluded));
    let row = ledger.command(&id("a")).await.unwrap().unwrap();
    assert_eq!(row.conclusion.as_ref(), history.last());
    ledger.close().await;
}

#[tokio::test]
async fn a_fate_that_is_known_or_unknown_for_good_is_not_resolved() {
    let place = Place::new();
    let ledger = place.open().await;
    for name in ["known", "for-good"] {
        ledger.intend(tap(name)).await.unwrap();
    }
    ledger.conclude(conclude("known")).await.unwrap();
    ledger
        .resolve(NewResolution {
            is_final: true,
            ..resolve("for-good", unknown())
        })
        .await
        .unwrap();
    for name in ["known", "for-good"] {
        let refused = ledger.resolve(resolve(name, completed())).await;
        assert!(
            matches!(&refused, Err(LedgerError::AlreadyConcluded { command_id }) if *command_id == id(name)),
            "{refused:?}"
        );
    }
    let refused = ledger.resolve(resolve("missing", completed())).await;
    assert!(
        matches!(refused, Err(LedgerError::NotIntended { .. })),
        "{refused:?}"
    );
    let row = ledger.command(&id("for-good")).await.unwrap().unwrap();
    assert!(row.conclusion.unwrap().is_final);
    ledger.close().await;
}

#[tokio::test]
async fn in_one_batch_each_word_follows_those_before_it() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    let results = at_once([
        ledger.resolve(resolve("a", unknown())),
        ledger.resolve(resolve("a", completed())),
        ledger.resolve(resolve("a", completed())),
    ])
    .await;
    assert!(
        matches!(
            &results[..],
            [Ok(()), Ok(()), Err(LedgerError::AlreadyConcluded { .. })]
        ),
        "{results:?}"
    );
    assert_eq!(ledger.history(&id("a")).await.unwrap().len(), 2);
    ledger.close().await;
}

#[tokio::test]
async fn a_read_may_run_again_under_its_id_and_only_the_same_read() {
    let place = Place::new();
    let ledger = place.open().await;
    let again = NewRecord {
        outcome: Outcome {
            fate: Fate::Failed,
            effect: Effect::None,
            ..completed()
        },
        ..read("r")
    };
    let results = at_once([
        ledger.record(read("r")),
        ledger.record(again.clone()),
        ledger.record(read("r")),
    ])
    .await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    ledger.record(again).await.unwrap();
    let fates: Vec<Fate> = ledger
        .history(&id("r"))
        .await
        .unwrap()
        .into_iter()
        .map(|word| word.outcome.fate)
        .collect();
    assert_eq!(
        fates,
        [Fate::Completed, Fate::Failed, Fate::Completed, Fate::Failed]
    );

    let base = read("r").command;
    let others = [
        NewIntent {
            kind: CommandKind::Snapshot,
            ..base.clone()
        },
        NewIntent {
            app_bundle_id: None,
            ..base.clone()
        },
        NewIntent {
            device: "00008110-000978540290401F".parse().unwrap(),
            ..base.clone()
        },
        NewIntent {
            asked: [("depth".to_owned(), json!(3))].into_iter().collect(),
            ..base
        },
    ];
    for command in others {
        let refused = ledger
            .record(NewRecord {
                command,
                outcome: completed(),
            })
            .await;
        assert!(
            matches!(refused, Err(LedgerError::Duplicate { .. })),
            "{refused:?}"
        );
    }
    // A mutation that was never sent is not a read.
    ledger.record(record("m")).await.unwrap();
    assert!(matches!(
        ledger.record(record("m")).await,
        Err(LedgerError::Duplicate { .. })
    ));
    ledger.close().await;
}

#[tokio::test]
async fn a_reply_is_kept_up_to_its_limit_and_of_a_longer_one_the_length() {
    let place = Place::new();
    let ledger = place.open().await;
    for (name, length) in [("whole", MAX_KEPT_REPLY), ("long", MAX_KEPT_REPLY + 1)] {
        ledger.intend(tap(name)).await.unwrap();
        let reply = KeptReply::of("x".repeat(length));
        ledger
            .conclude(NewFate {
                command_id: id(name),
                outcome: Outcome {
                    reply: Some(reply.clone()),
                    ..completed()
                },
            })
            .await
            .unwrap();
        let row = ledger.command(&id(name)).await.unwrap().unwrap();
        let kept = row.conclusion.unwrap().outcome.reply.unwrap();
        assert_eq!(kept, reply);
        assert_eq!(kept.bytes(), length as u64);
        assert_eq!(kept.text().is_none(), name == "long");
        assert_eq!(kept.too_long(), name == "long");
    }
    let page = ledger.commands(CommandQuery::default()).await.unwrap();
    for row in page.commands {
        let kept = row.conclusion.unwrap().outcome.reply.unwrap();
        assert!(kept.text().is_none() && kept.bytes() >= MAX_KEPT_REPLY as u64);
    }
    ledger.close().await;
}

#[tokio::test]
async fn what_was_asked_reads_back_and_is_refused_with_typed_text() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    let row = ledger.command(&id("a")).await.unwrap().unwrap();
    assert_eq!(row.asked, Some(tap("a").asked));
    let mut typed = tap("b");
    typed.asked.insert("text".to_owned(), json!("hunter2"));
    assert!(matches!(
        ledger.intend(typed).await,
        Err(LedgerError::Unredacted { .. })
    ));
    ledger.close().await;
}

#[tokio::test]
async fn unsettled_are_open_intents_and_unknowns_that_are_not_for_good() {
    let place = Place::new();
    let ledger = place.open().await;
    for name in ["open", "done", "unknown", "for-good"] {
        ledger.intend(tap(name)).await.unwrap();
    }
    let other: fleetgate_runner::Udid = "00008110-000978540290401F".parse().unwrap();
    ledger
        .intend(NewIntent {
            device: other.clone(),
            ..tap("elsewhere")
        })
        .await
        .unwrap();
    ledger.conclude(conclude("done")).await.unwrap();
    for name in ["unknown", "for-good"] {
        ledger
            .conclude(NewFate {
                command_id: id(name),
                outcome: unknown(),
            })
            .await
            .unwrap();
    }
    ledger
        .resolve(NewResolution {
            is_final: true,
            ..resolve("for-good", unknown())
        })
        .await
        .unwrap();
    // A read is asked again rather than settled.
    ledger
        .record(NewRecord {
            outcome: unknown(),
            ..read("read")
        })
        .await
        .unwrap();

    let names = |rows: Vec<fleetgate_ledger::CommandRow>| -> Vec<String> {
        rows.into_iter().map(|row| row.command_id.into()).collect()
    };
    let all = ledger.unsettled(None, None).await.unwrap();
    assert_eq!(names(all), ["open", "unknown", "elsewhere"]);
    let phone = PHONE.parse().unwrap();
    let of_phone = ledger.unsettled(Some(&phone), None).await.unwrap();
    assert_eq!(names(of_phone), ["open", "unknown"]);
    let of_other = ledger.unsettled(Some(&other), None).await.unwrap();
    assert_eq!(names(of_other), ["elsewhere"]);

    let mut plain = place.plain().await;
    run(&mut plain, "DROP TRIGGER commands_are_never_changed").await;
    run(
        &mut plain,
        "UPDATE commands SET created_us = 1000 WHERE command_id = 'open'",
    )
    .await;
    let since = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
    let recent = ledger.unsettled(None, Some(since)).await.unwrap();
    assert_eq!(names(recent), ["unknown", "elsewhere"]);
    ledger.close().await;
}
