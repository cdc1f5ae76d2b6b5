//! A ledger from before there was a chain.

use fleetgate_ledger::{LedgerError, Subject, verify};
use fleetgate_runner::Fate;
use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions};

use crate::support::{Place, completed, conclude, count, id, record, resolve, run, tap};

/// As the first version left it: `open` without a fate, `unknown` with one that
/// may be settled, and 2500 others.
async fn first_version(place: &Place) {
    let options = SqliteConnectOptions::new()
        .filename(place.path())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("application_id", 0x464c_4754.to_string());
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap();
    sqlx::migrate!("../../migrations/sqlite")
        .run_to(1, &pool)
        .await
        .unwrap();
    for statement in [
        "INSERT INTO commands (command_id, device, kind, mutation, app_bundle_id, parameters, caller, created_us) \
         VALUES ('open', '00008110-000978540290401E', 'tap', 1, 'com.example', '{\"x\":1.5}', 'grace', 1000), \
                ('unknown', '00008110-000978540290401E', 'tap', 1, NULL, '{}', NULL, 2000)",
        "INSERT INTO fates (command_seq, revision, fate, effect, reactivated, attempts, recovered, queue_wait_us, \
         device_time_us, concluded_us) VALUES (2, 0, 'UNKNOWN', 'UNKNOWN', 0, 1, 0, 0, 0, 3000)",
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500) \
         INSERT INTO commands (command_id, device, kind, mutation, parameters, created_us) \
         SELECT 'c' || n, '00008110-000978540290401E', 'viewport', 0, '{}', 4000 + n FROM n",
        "INSERT INTO fates (command_seq, revision, fate, effect, reactivated, attempts, recovered, queue_wait_us, \
         device_time_us, concluded_us) \
         SELECT seq, 0, 'COMPLETED', 'APPLIED', 0, 1, 0, 0, 0, created_us FROM commands WHERE seq > 2",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    pool.close().await;
}

#[tokio::test]
async fn its_commands_are_bound_and_its_open_intents_can_be_settled() {
    let place = Place::new();
    first_version(&place).await;
    let older = verify(&place.path(), None).await;
    assert!(
        matches!(
            older,
            Err(LedgerError::OlderSchema {
                found: 1,
                known: 3,
                ..
            })
        ),
        "{older:?}"
    );

    let ledger = place.open().await;
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(report.first_break, None);
    // The beginning, 2502 commands, 2501 fates, and the note of it.
    assert_eq!((report.commands, report.events), (2502, 5005));
    let row = ledger.command(&id("open")).await.unwrap().unwrap();
    assert_eq!((row.asked, row.conclusion), (None, None));
    let unsettled = ledger.unsettled(None, None).await.unwrap();
    let names: Vec<&str> = unsettled
        .iter()
        .map(|row| row.command_id.as_str())
        .collect();
    assert_eq!(names, ["open", "unknown"]);
    ledger.conclude(conclude("open")).await.unwrap();
    ledger
        .resolve(resolve("unknown", completed()))
        .await
        .unwrap();
    ledger.record(record("new")).await.unwrap();
    assert!(matches!(
        ledger.intend(tap("c7")).await,
        Err(LedgerError::Duplicate { .. })
    ));
    let history = ledger.history(&id("unknown")).await.unwrap();
    assert_eq!(history.len(), 2);
    assert_eq!(history[1].outcome.fate, Fate::Completed);
    ledger.close().await;

    // Once: a second opening binds nothing again.
    let ledger = place.open().await;
    let again = ledger.verify(Some(report.head)).await.unwrap();
    assert!(again.is_intact() && again.known_compared);
    assert_eq!(again.events, 5008);
    ledger.close().await;
}

#[tokio::test]
async fn that_it_was_adopted_is_on_record() {
    let place = Place::new();
    first_version(&place).await;
    let ledger = place.open().await;
    let mut cursor = None;
    let mut last = None;
    loop {
        let page = ledger.tail(cursor, 500).await.unwrap();
        let Some(event) = page.events.last() else {
            break;
        };
        last = Some(event.subject.clone());
        cursor = page.cursor;
    }
    let Some(Subject::Operation(note)) = last else {
        panic!("{last:?}")
    };
    assert_eq!((note.who.as_str(), note.what.as_str()), ("ledger", "adopt"));
    assert_eq!(note.detail["commands"], 2502);
    assert_eq!(note.detail["fates"], 2501);
    ledger.close().await;
}

#[tokio::test]
async fn its_file_learns_to_shrink() {
    let place = Place::new();
    first_version(&place).await;
    let mut plain = place.plain().await;
    assert_eq!(count(&mut plain, "PRAGMA auto_vacuum").await, 0);
    plain.close().await.unwrap();
    place.open().await.close().await;
    let mut plain = place.plain().await;
    assert_eq!(count(&mut plain, "PRAGMA auto_vacuum").await, 2);
}

#[tokio::test]
async fn a_reader_does_not_keep_it_from_being_brought_up_to_date() {
    let place = Place::new();
    first_version(&place).await;
    let mut reader = place.plain().await;
    run(&mut reader, "BEGIN").await;
    assert_eq!(
        count(&mut reader, "SELECT count(*) FROM commands").await,
        2502
    );
    let ledger = place.open().await;
    ledger.conclude(conclude("open")).await.unwrap();
    assert!(ledger.verify(None).await.unwrap().is_intact());
    assert_eq!(
        count(
            &mut reader,
            "SELECT count(*) FROM sqlite_schema WHERE name = 'chain'"
        )
        .await,
        0,
        "the reader should see what it saw"
    );
    run(&mut reader, "COMMIT").await;
    reader.close().await.unwrap();
    ledger.close().await;
    let mut plain = place.plain().await;
    assert_eq!(count(&mut plain, "PRAGMA auto_vacuum").await, 2);
}
