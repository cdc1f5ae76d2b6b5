//! How a ledger fares.

use std::fs;
use std::time::Duration;

use fleetgate_ledger::{Ledger, LedgerConfig, LedgerError, LedgerHealth};

use crate::pressure::SmallDisk;
use crate::support::{Place, operation, record, run, tap};

/// Asks until the ledger can be written again, and fails if that does not come.
async fn well_again(ledger: &Ledger) -> LedgerHealth {
    let asking = async {
        loop {
            let health = ledger.health().await;
            if health.writable {
                return health;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), asking)
        .await
        .expect("the ledger should be writable again")
}

#[tokio::test]
async fn a_ledger_that_works_says_so_and_how_large_it_is() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.record(record("a")).await.unwrap();
    let health = ledger.health().await;
    assert_eq!(health.path, place.path());
    assert!(health.writable && health.last_error.is_none(), "{health:?}");
    let bytes: usize = ["ledger.db", "ledger.db-wal"]
        .map(|name| fs::read(place.directory().join(name)).unwrap().len())
        .iter()
        .sum();
    assert_eq!(health.size_bytes, bytes as u64);
    assert!(health.free_bytes.is_some_and(|free| free > 0), "{health:?}");
    ledger.close().await;
    let closed = ledger.health().await;
    assert!(
        matches!(closed.last_error, Some(LedgerError::Closed)) && !closed.writable,
        "{closed:?}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_an_entry_is_not_wrong_with_the_ledger() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger.intend(tap("a")).await.unwrap_err();
    let mut nameless = operation("cordon");
    nameless.who = String::new();
    ledger.operation(nameless).await.unwrap_err();
    assert!(ledger.health().await.writable);
    ledger.close().await;
}

/// Nobody writes after the room is there: the ledger finds out by itself.
#[tokio::test]
async fn on_a_full_disk_it_cannot_be_written_until_there_is_room() {
    let disk = SmallDisk::mount("2m");
    let filler = disk.at.join("filler");
    fs::write(&filler, vec![1; 1024 * 1024]).unwrap();
    let path = disk.at.join("ledger.db");
    let ledger = Ledger::open(LedgerConfig::new(&path)).await.unwrap();
    assert!(ledger.tail(None, 1).await.is_ok());
    let mut n = 0;
    while ledger.record(record(&format!("c{n}"))).await.is_ok() {
        n += 1;
    }
    // Down to where nothing fits, so that not even a try does.
    while ledger.operation(operation("cordon")).await.is_ok() {}
    let mut rest = Vec::new();
    while fs::write(disk.at.join("rest"), &rest).is_ok() {
        rest.resize(rest.len() + 4096, 1);
    }
    ledger.operation(operation("cordon")).await.unwrap_err();

    let health = ledger.health().await;
    assert!(!health.writable);
    assert!(
        matches!(health.last_error, Some(LedgerError::Full { .. })),
        "{health:?}"
    );
    assert!(
        health.free_bytes.is_some_and(|free| free < 4096),
        "{health:?}"
    );

    let commits = ledger.stats().commits;
    fs::remove_file(&filler).unwrap();
    let health = well_again(&ledger).await;
    assert!(health.last_error.is_none());
    assert!(health.free_bytes.is_some_and(|free| free > 512 * 1024));
    assert_eq!(ledger.stats().commits, commits, "a try is no entry");
    ledger.record(record("again")).await.unwrap();
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(report.first_break, None);
    assert_eq!(report.commands, n + 1);
    ledger.close().await;
}

#[tokio::test]
async fn a_ledger_whose_file_is_not_at_its_place_cannot_be_written() {
    let place = Place::new();
    let ledger = place.open().await;
    let aside = place.directory().join("aside.db");
    fs::rename(place.path(), &aside).unwrap();
    // Before anybody wrote, and after.
    for _ in 0..2 {
        let health = ledger.health().await;
        assert!(!health.writable);
        match health.last_error {
            Some(LedgerError::Storage { source, .. }) => {
                assert!(source.to_string().contains("was removed"), "{source}");
            }
            other => panic!("{other:?}"),
        }
        ledger.intend(tap("lost")).await.unwrap_err();
    }
    fs::rename(&aside, place.path()).unwrap();
    well_again(&ledger).await;
    ledger.close().await;
}

#[tokio::test]
async fn a_ledger_that_was_locked_for_too_long_cannot_be_written_until_it_is_free() {
    let place = Place::new();
    let ledger = place.open_with_patience(Duration::from_millis(50)).await;
    let mut holder = place.plain().await;
    run(&mut holder, "BEGIN IMMEDIATE").await;
    ledger.intend(tap("a")).await.unwrap_err();
    let health = ledger.health().await;
    assert!(
        matches!(health.last_error, Some(LedgerError::Unavailable { .. })),
        "{health:?}"
    );
    run(&mut holder, "COMMIT").await;
    well_again(&ledger).await;
    ledger.close().await;
}
