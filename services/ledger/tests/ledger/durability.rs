//! What was acknowledged is there later.

use std::fs;
use std::time::{Duration, SystemTime};

use fleetgate_ledger::{
    CommandQuery, KeptReply, LeaseQuery, LedgerError, NewFate, NewIntent, NewLeaseWrite, NewRecord,
    OperationQuery, Outcome,
};
use fleetgate_runner::{CommandKind, Effect, Fate};
use futures_util::future::{join, join_all};

use crate::support::{
    PHONE, Place, completed, conclude, granted, id, operation, record, rows, run, settings, tap,
    transition, until,
};

#[tokio::test]
async fn what_was_written_reads_back_the_same_after_a_reopening() {
    let place = Place::new();
    let ledger = place.open().await;
    let before = SystemTime::now() - Duration::from_micros(1);
    ledger.intend(tap("a")).await.unwrap();
    let outcome = Outcome {
        fate: Fate::Failed,
        effect: Effect::Unknown,
        reason: Some("COMMAND_FAILED".to_owned()),
        message: Some("it threw: \u{0}\"\u{1F600}'".to_owned()),
        warning: Some("looked off".to_owned()),
        hint: Some("look again".to_owned()),
        reactivated: true,
        attempts: 3,
        recovered: true,
        queue_wait: Duration::from_micros(5),
        device_time: Duration::from_secs(75),
        reply: Some(KeptReply::of("{\"ok\":true}\u{0}".to_owned())),
    };
    ledger
        .conclude(NewFate {
            command_id: id("a"),
            outcome: outcome.clone(),
        })
        .await
        .unwrap();
    ledger
        .intend(NewIntent {
            app_bundle_id: None,
            caller: None,
            ..tap("b")
        })
        .await
        .unwrap();
    ledger.close().await;

    let ledger = place.open().await;
    let row = ledger.command(&id("a")).await.unwrap().unwrap();
    let written = tap("a");
    assert_eq!(row.command_id, written.command_id);
    assert_eq!(row.device, written.device);
    assert_eq!(row.kind, written.kind);
    assert_eq!(row.app_bundle_id, written.app_bundle_id);
    assert_eq!(row.parameters, written.parameters);
    assert_eq!(row.caller, written.caller);
    let conclusion = row.conclusion.unwrap();
    assert_eq!(conclusion.outcome, outcome);
    assert!(before <= row.created && row.created <= conclusion.concluded);
    assert!(conclusion.concluded <= SystemTime::now());

    let open = ledger.command(&id("b")).await.unwrap().unwrap();
    assert_eq!(
        (open.app_bundle_id, open.caller, open.conclusion),
        (None, None, None)
    );
    assert_eq!(ledger.command(&id("c")).await.unwrap(), None);
    ledger.close().await;
}

#[tokio::test]
async fn an_acknowledged_entry_is_in_the_files_at_once() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger.transition(transition("PLUGGED")).await.unwrap();
    let told = settings(PHONE, Some("front"));
    ledger
        .set_device(told.clone(), operation("update_device"))
        .await
        .unwrap();
    ledger
        .write_leases(NewLeaseWrite {
            clock: Duration::from_secs(5),
            ..rows([granted("l1", 3)])
        })
        .await
        .unwrap();
    let crashed = Place::new();
    for (path, bytes) in place.files() {
        fs::write(crashed.directory().join(path.file_name().unwrap()), bytes).unwrap();
    }

    let survivor = crashed.open().await;
    assert!(survivor.command(&id("a")).await.unwrap().is_some());
    let moves = survivor.transitions(&told.device, 0, None).await.unwrap();
    assert_eq!(moves.transitions.len(), 1);
    assert_eq!(survivor.device_settings().await.unwrap(), [told]);
    let leases = survivor.open_leases().await.unwrap();
    assert_eq!(leases, [granted("l1", 3)]);
    let clock = survivor.lease_clock().await.unwrap();
    assert_eq!((clock.clock.as_secs(), clock.last_epoch), (5, 3));
    let report = survivor.verify(None).await.unwrap();
    assert_eq!((report.first_break, report.events), (None, 4));
    survivor.close().await;
    ledger.close().await;
}

#[tokio::test]
async fn a_file_that_is_not_at_its_place_any_more_takes_nothing() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("before")).await.unwrap();
    let aside = place.directory().join("aside.db");
    let refused = async |id: &str, why: &str| match ledger.intend(tap(id)).await {
        Err(LedgerError::Storage { source, .. }) => {
            assert!(source.to_string().contains(why), "{source}");
        }
        other => panic!("written where nobody will look for it: {other:?}"),
    };

    fs::rename(place.path(), &aside).unwrap();
    refused("removed", "was removed").await;
    fs::copy(&aside, place.path()).unwrap();
    refused("replaced", "was replaced").await;
    fs::rename(&aside, place.path()).unwrap();
    ledger.intend(tap("after")).await.unwrap();

    ledger.close().await;
    let ledger = place.open().await;
    for (name, there) in [
        ("before", true),
        ("removed", false),
        ("replaced", false),
        ("after", true),
    ] {
        let row = ledger.command(&id(name)).await.unwrap();
        assert_eq!(row.is_some(), there, "{name}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn every_kind_fate_and_effect_fits_the_schema() {
    let place = Place::new();
    let ledger = place.open().await;
    for kind in CommandKind::ALL {
        let command = NewIntent {
            kind,
            ..tap(kind.as_str())
        };
        ledger
            .record(NewRecord {
                command,
                outcome: completed(),
            })
            .await
            .unwrap();
        assert_eq!(
            ledger
                .command(&id(kind.as_str()))
                .await
                .unwrap()
                .unwrap()
                .kind,
            kind
        );
    }
    for fate in [
        Fate::NotSent,
        Fate::Completed,
        Fate::CompletedResultLost,
        Fate::Failed,
        Fate::Unknown,
    ] {
        for effect in [Effect::None, Effect::Applied, Effect::Unknown] {
            let name = format!("{fate:?}-{effect:?}");
            let outcome = Outcome {
                fate,
                effect,
                ..completed()
            };
            ledger
                .record(NewRecord {
                    command: tap(&name),
                    outcome: outcome.clone(),
                })
                .await
                .unwrap();
            let row = ledger.command(&id(&name)).await.unwrap().unwrap();
            assert_eq!(row.conclusion.unwrap().outcome, outcome);
        }
    }
    ledger.close().await;
}

#[tokio::test]
async fn closing_writes_what_was_handed_in_and_takes_nothing_more() {
    let place = Place::new();
    let ledger = place.open().await;
    let ids: Vec<String> = (0..100).map(|n| format!("c{n}")).collect();
    // The entries are polled, and so handed in, before the closing is.
    let (written, ()) = join(
        join_all(ids.iter().map(|id| ledger.intend(tap(id)))),
        ledger.close(),
    )
    .await;
    assert!(written.iter().all(Result::is_ok), "{written:?}");
    assert!(matches!(
        ledger.intend(tap("late")).await,
        Err(LedgerError::Closed)
    ));
    assert!(matches!(
        ledger.command(&id("c0")).await,
        Err(LedgerError::Closed)
    ));
    ledger.close().await;
    assert!(
        !place.directory().join("ledger.db-wal").exists(),
        "the WAL should be folded in"
    );

    let ledger = place.open().await;
    let query = CommandQuery {
        page_size: 1000,
        ..CommandQuery::default()
    };
    assert_eq!(ledger.commands(query).await.unwrap().commands.len(), 100);
    ledger.close().await;
}

#[tokio::test]
async fn a_ledger_whose_handles_are_dropped_writes_what_waits_and_lets_go_of_its_file() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut holder = place.plain().await;
    run(&mut holder, "BEGIN IMMEDIATE").await;
    let waiting = {
        let ledger = ledger.clone();
        tokio::task::JoinSet::from_iter([async move { ledger.intend(tap("a")).await }])
    };
    until(|| ledger.stats().found_locked > 0).await;
    // The caller stops waiting; its entry stands.
    drop(waiting);
    drop(ledger);
    run(&mut holder, "COMMIT").await;

    let reopened = loop {
        match fleetgate_ledger::Ledger::open(place.config()).await {
            Ok(ledger) => break ledger,
            Err(LedgerError::InUse { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(reopened.command(&id("a")).await.unwrap().is_some());
    reopened.close().await;
}

#[tokio::test]
async fn a_row_once_written_is_never_changed() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.record(record("a")).await.unwrap();
    ledger.conclude(conclude("b")).await.unwrap_err();
    let mut plain = place.plain().await;
    for statement in [
        "UPDATE commands SET caller = 'mallory'",
        "UPDATE commands SET principal = 'mallory'",
        "UPDATE fates SET fate = 'NOT_SENT'",
    ] {
        let error = sqlx::query(statement)
            .execute(&mut plain)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("never changed"), "{error}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn the_newest_word_on_a_command_counts() {
    let place = Place::new();
    let ledger = place.open().await;
    let outcome = Outcome {
        fate: Fate::Unknown,
        effect: Effect::Unknown,
        ..completed()
    };
    ledger
        .record(NewRecord {
            command: tap("a"),
            outcome,
        })
        .await
        .unwrap();
    let mut plain = place.plain().await;
    run(
        &mut plain,
        "INSERT INTO fates (command_seq, revision, fate, effect, reactivated, attempts, recovered, \
         queue_wait_us, device_time_us, concluded_us) \
         SELECT command_seq, 1, 'COMPLETED', 'APPLIED', 0, 1, 1, 0, 0, concluded_us FROM fates",
    )
    .await;

    let row = ledger.command(&id("a")).await.unwrap().unwrap();
    assert_eq!(row.conclusion.unwrap().outcome.fate, Fate::Completed);
    for (fate, expected) in [(Fate::Completed, 1), (Fate::Unknown, 0)] {
        let query = CommandQuery {
            fates: vec![Some(fate)],
            ..CommandQuery::default()
        };
        assert_eq!(
            ledger.commands(query).await.unwrap().commands.len(),
            expected,
            "{fate:?}"
        );
    }
    ledger.close().await;
}

#[tokio::test]
async fn every_call_can_be_made_from_a_task() {
    let place = Place::new();
    let config = place.config();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let ledger = fleetgate_ledger::Ledger::open(config).await?;
        ledger.intend(tap("a")).await?;
        ledger.conclude(conclude("a")).await?;
        ledger.record(record("b")).await?;
        let found = ledger.command(&id("a")).await?;
        let page = ledger.commands(CommandQuery::default()).await?;
        ledger.transition(transition("PLUGGED")).await?;
        let told = settings(PHONE, None);
        ledger
            .set_device(told.clone(), operation("update_device"))
            .await?;
        ledger.write_leases(rows([granted("l1", 1)])).await?;
        ledger.open_leases().await?;
        ledger.lease("l1").await?;
        ledger.lease_by_request("ada", "r").await?;
        ledger.leases(LeaseQuery::default()).await?;
        ledger.lease_clock().await?;
        ledger.operations(OperationQuery::default()).await?;
        ledger.device_settings().await?;
        ledger.transitions(&told.device, 0, None).await?;
        ledger.unsettled(None, None).await?;
        ledger.health().await;
        ledger.close().await;
        Ok::<_, LedgerError>((found.is_some(), page.commands.len()))
    });
    assert_eq!(tasks.join_all().await.remove(0).unwrap(), (true, 2));
}
