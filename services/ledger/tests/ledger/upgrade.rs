//! Ledgers from before: the first version knew no chain, the second one no
//! transitions.

use fleetgate_ledger::{EventKind, Head, Ledger, LedgerError, Subject, verify};
use fleetgate_runner::Fate;
use sqlx::Connection;
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
};

use crate::support::{
    PHONE, Place, completed, conclude, count, id, operation, record, resolve, run, settings, tap,
    transition, unknown,
};

/// An empty file that is marked as a ledger.
pub(crate) async fn marked(place: &Place, vacuum: SqliteAutoVacuum) -> SqlitePool {
    let options = SqliteConnectOptions::new()
        .filename(place.path())
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .auto_vacuum(vacuum)
        .pragma("application_id", 0x464c_4754.to_string());
    SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .unwrap()
}

/// As the first version left it: `open` without a fate, `unknown` with one that
/// may be settled, and 2500 others.
async fn first_version(place: &Place) {
    let pool = marked(place, SqliteAutoVacuum::None).await;
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
                known: 4,
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

/// As a gateway of the second version left it when it was killed; written down
/// by sqlite3.
const SECOND: &str = include_str!("versions/2.sql");

/// Its last link, and its commands that have no fate or one that may be settled.
const LAST: (i64, &str) = (
    24,
    "d205975f691ac02b3a743ec35cdd3c23b17c62ddbaf54c248f1453f3031e5820",
);
const UNKNOWN: &str = "01a22d13-177d-7060-8a63-826180c8de53";
const OPEN: &str = "01a22d13-1791-72fd-ad6f-93c638c1d937";

async fn second_version(place: &Place) {
    let pool = marked(place, SqliteAutoVacuum::Incremental).await;
    sqlx::raw_sql(SECOND).execute(&pool).await.unwrap();
    pool.close().await;
}

async fn names(ledger: &Ledger) -> Vec<String> {
    let unsettled = ledger.unsettled(None, None).await.unwrap();
    unsettled
        .iter()
        .map(|row| row.command_id.to_string())
        .collect()
}

#[tokio::test]
async fn what_the_second_version_wrote_is_as_its_migrations_made_it() {
    let written = Place::new();
    second_version(&written).await;
    assert_as_migrated(&written, 2).await;
}

/// The schema is the one that the migrations up to `version` make.
pub(crate) async fn assert_as_migrated(written: &Place, version: i64) {
    const SCHEMA: &str = "SELECT name, sql FROM sqlite_schema WHERE name NOT LIKE '\\_sqlx%' ESCAPE '\\' \
                          AND sql IS NOT NULL ORDER BY name";
    let made = Place::new();
    let pool = marked(&made, SqliteAutoVacuum::Incremental).await;
    sqlx::migrate!("../../migrations/sqlite")
        .run_to(version, &pool)
        .await
        .unwrap();
    pool.close().await;
    let mut schemas = Vec::new();
    for place in [written, &made] {
        let schema: Vec<(String, String)> = sqlx::query_as(SCHEMA)
            .fetch_all(&mut place.plain().await)
            .await
            .unwrap();
        schemas.push(schema);
    }
    assert_eq!(schemas[0], schemas[1]);
    assert!(schemas[0].len() > 10);
}

#[tokio::test]
async fn the_chain_of_the_second_version_goes_on_and_takes_transitions() {
    let place = Place::new();
    second_version(&place).await;
    let older = verify(&place.path(), None).await;
    assert!(
        matches!(
            older,
            Err(LedgerError::OlderSchema {
                found: 2,
                known: 4,
                ..
            })
        ),
        "{older:?}"
    );
    let last = Head {
        seq: LAST.0,
        hash: LAST.1.parse().unwrap(),
    };

    let ledger = place.open().await;
    let report = ledger.verify(Some(last)).await.unwrap();
    assert_eq!(report.first_break, None);
    assert!(report.known_compared);
    assert_eq!(
        (report.head, report.events, report.commands),
        (last, 17, 11)
    );
    assert_eq!(report.checkpoint.unwrap().commands_pruned, 4);
    let phone = PHONE.parse().unwrap();
    let page = ledger.transitions(&phone, 0, None).await.unwrap();
    assert_eq!(page.transitions, []);
    assert_eq!(ledger.device_settings().await.unwrap(), []);

    ledger.transition(transition("PLUGGED")).await.unwrap();
    ledger
        .set_device(settings(PHONE, Some("front")), operation("update_device"))
        .await
        .unwrap();
    ledger.record(record("new")).await.unwrap();
    let tail = ledger.tail(None, 500).await.unwrap();
    let newest: Vec<EventKind> = tail.events[17..].iter().map(|event| event.kind).collect();
    assert_eq!(
        newest,
        [
            EventKind::Transition,
            EventKind::Operation,
            EventKind::Recorded
        ]
    );
    ledger.close().await;

    let ledger = place.open().await;
    let page = ledger.transitions(&phone, 0, None).await.unwrap();
    assert_eq!(page.transitions.len(), 1);
    assert_eq!(page.transitions[0].seq, LAST.0 + 1);
    assert_eq!(ledger.device_settings().await.unwrap().len(), 1);
    let report = ledger.verify(Some(last)).await.unwrap();
    assert!(report.is_intact() && report.known_compared);
    ledger.close().await;
}

#[tokio::test]
async fn what_the_second_version_left_open_can_be_settled() {
    let place = Place::new();
    second_version(&place).await;
    let ledger = place.open().await;
    assert_eq!(names(&ledger).await, [UNKNOWN, OPEN]);
    ledger.resolve(resolve(OPEN, unknown())).await.unwrap();
    assert_eq!(names(&ledger).await, [UNKNOWN, OPEN]);
    for name in [UNKNOWN, OPEN] {
        ledger.resolve(resolve(name, completed())).await.unwrap();
    }
    assert_eq!(names(&ledger).await, [""; 0]);
    let history = ledger.history(&id(OPEN)).await.unwrap();
    let fates: Vec<Fate> = history.iter().map(|word| word.outcome.fate).collect();
    assert_eq!(fates, [Fate::Unknown, Fate::Completed]);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn a_ledger_of_the_first_version_takes_transitions_too() {
    let place = Place::new();
    first_version(&place).await;
    let ledger = place.open().await;
    ledger.transition(transition("PLUGGED")).await.unwrap();
    ledger
        .set_device(settings(PHONE, None), operation("update_device"))
        .await
        .unwrap();
    let page = ledger
        .transitions(&PHONE.parse().unwrap(), 0, None)
        .await
        .unwrap();
    assert_eq!(page.transitions.len(), 1);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}
