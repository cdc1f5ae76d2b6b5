//! Other connections to the same file.

use std::time::Duration;

use fleetgate_ledger::{CommandQuery, LedgerError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::support::{Place, at_once, count, id, run, tap, until};

#[tokio::test]
async fn a_lock_of_two_seconds_delays_entries_and_loses_none() {
    const HELD: Duration = Duration::from_secs(2);
    let place = Place::new();
    let ledger = place.open().await;
    let mut holder = place.plain().await;
    run(&mut holder, "BEGIN IMMEDIATE").await;
    let locked = Instant::now();
    let mut writers = JoinSet::new();
    for n in 0..20 {
        let ledger = ledger.clone();
        writers.spawn(async move { ledger.intend(tap(&format!("c{n}"))).await });
    }
    until(|| ledger.stats().found_locked > 0).await;
    assert!(
        ledger
            .commands(CommandQuery::default())
            .await
            .unwrap()
            .commands
            .is_empty()
    );
    tokio::time::sleep_until(locked + HELD).await;
    assert!(
        writers.try_join_next().is_none(),
        "nobody should be answered while the lock is held"
    );
    run(&mut holder, "ROLLBACK").await;

    assert!(writers.join_all().await.iter().all(Result::is_ok));
    assert_eq!(
        count(&mut holder, "SELECT count(*) FROM commands").await,
        20
    );
    ledger.close().await;
}

#[tokio::test]
async fn when_patience_ends_the_entry_is_refused_and_the_writer_goes_on() {
    let place = Place::new();
    let ledger = place.open_with_patience(Duration::from_millis(100)).await;
    let mut holder = place.plain().await;
    run(&mut holder, "BEGIN IMMEDIATE").await;
    let started = Instant::now();
    let results = at_once([ledger.intend(tap("a")), ledger.intend(tap("b"))]).await;
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(LedgerError::Unavailable { .. }))),
        "{results:?}"
    );
    assert!(started.elapsed() >= Duration::from_millis(100));
    run(&mut holder, "ROLLBACK").await;

    ledger.intend(tap("c")).await.unwrap();
    assert_eq!(
        ledger.command(&id("a")).await.unwrap(),
        None,
        "a refused entry should not be written"
    );
    ledger.intend(tap("a")).await.unwrap();
    let stats = ledger.stats();
    assert_eq!((stats.commits, stats.written, stats.refused), (2, 2, 2));
    ledger.close().await;
}

#[tokio::test]
async fn a_pinned_reader_neither_blocks_the_writer_nor_sees_its_work() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("first")).await.unwrap();
    let mut reader = place.plain().await;
    run(&mut reader, "BEGIN").await;
    assert_eq!(count(&mut reader, "SELECT count(*) FROM commands").await, 1);

    for n in 0..200 {
        ledger.intend(tap(&format!("c{n}"))).await.unwrap();
    }
    assert_eq!(ledger.stats().found_locked, 0);
    let query = CommandQuery {
        page_size: 1000,
        ..CommandQuery::default()
    };
    assert_eq!(ledger.commands(query).await.unwrap().commands.len(), 201);
    assert_eq!(count(&mut reader, "SELECT count(*) FROM commands").await, 1);
    run(&mut reader, "COMMIT").await;
    ledger.close().await;
}

#[tokio::test]
async fn a_write_of_others_between_ours_does_no_harm() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut other = place.plain().await;
    for n in 0..50 {
        let (ours, ()) = tokio::join!(ledger.intend(tap(&format!("c{n}"))), async {
            sqlx::query(
                "INSERT INTO commands (command_id, device, kind, mutation, parameters, created_us) \
                 VALUES ('other' || ?1, 'x', 'tap', 1, '{}', 0)",
            )
            .bind(n)
            .execute(&mut other)
            .await
            .unwrap();
        });
        ours.unwrap();
    }
    assert_eq!(
        count(&mut other, "SELECT count(*) FROM commands").await,
        100
    );
    ledger.close().await;
}
