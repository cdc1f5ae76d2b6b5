//! What may be opened, and what is refused untouched.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use fleetgate_ledger::{Ledger, LedgerConfig, LedgerError};
use sqlx::Connection;

use crate::support::{Place, count, id, record, run, tap};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn a_new_ledger_and_its_directory_are_for_their_owner_only() {
    let place = Place::new();
    let path = place.directory().join("var/lib/ledger.db");
    let ledger = Ledger::open(LedgerConfig::new(&path)).await.unwrap();
    ledger.intend(tap("a")).await.unwrap();
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn a_second_opener_is_refused_until_the_first_has_closed() {
    let place = Place::new();
    let first = place.open().await;
    match Ledger::open(place.config()).await {
        Err(LedgerError::InUse { path, .. }) => assert_eq!(path, place.path()),
        other => panic!("{other:?}"),
    }
    first.intend(tap("a")).await.unwrap();
    first.close().await;

    let second = place.open().await;
    assert!(second.command(&id("a")).await.unwrap().is_some());
    second.close().await;
}

#[tokio::test]
async fn the_lock_of_another_process_is_heeded() {
    let place = Place::new();
    let lock = File::create(place.directory().join("ledger.db.lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(matches!(
        Ledger::open(place.config()).await,
        Err(LedgerError::InUse { .. })
    ));
    assert!(!place.path().exists());
    drop(lock);
    place.open().await.close().await;
}

async fn assert_refused_as_newer(place: &Place) {
    let before = place.files();
    match Ledger::open(place.config()).await {
        Err(error @ LedgerError::NewerSchema { .. }) => {
            let LedgerError::NewerSchema {
                path,
                found: 9000,
                known: 4,
            } = &error
            else {
                panic!("{error}")
            };
            assert_eq!(*path, place.path());
            let message = error.to_string();
            assert!(
                message.contains("9000") && message.contains('4'),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(place.files() == before, "the files should be untouched");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_as_it_is() {
    let place = Place::new();
    place.open().await.close().await;
    let mut newer = place.plain().await;
    run(
        &mut newer,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9000, 'from the future', TRUE, x'00', 0)",
    )
    .await;
    newer.close().await.unwrap();
    assert!(!place.directory().join("ledger.db-wal").exists());
    assert_refused_as_newer(&place).await;
}

#[tokio::test]
async fn a_newer_schema_is_seen_while_it_is_still_in_the_wal() {
    let place = Place::new();
    place.open().await.close().await;
    let mut newer = place.plain().await;
    run(
        &mut newer,
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) \
         VALUES (9000, 'from the future', TRUE, x'00', 0)",
    )
    .await;
    let crashed = Place::new();
    for (path, bytes) in place.files() {
        fs::write(crashed.directory().join(path.file_name().unwrap()), bytes).unwrap();
    }
    let wal = crashed.directory().join("ledger.db-wal");
    let before = (fs::read(crashed.path()).unwrap(), fs::read(&wal).unwrap());
    assert!(matches!(
        Ledger::open(crashed.config()).await,
        Err(LedgerError::NewerSchema { found: 9000, .. })
    ));
    assert!((fs::read(crashed.path()).unwrap(), fs::read(&wal).unwrap()) == before);
    newer.close().await.unwrap();
}

#[tokio::test]
async fn what_is_no_database_is_called_damaged_and_kept() {
    let place = Place::new();
    fs::write(place.path(), "not a database at all. ".repeat(400)).unwrap();
    let before = place.files();
    let error = Ledger::open(place.config()).await.unwrap_err();
    assert!(
        matches!(&error, LedgerError::Corrupt { path, .. } if *path == place.path()),
        "{error:?}"
    );
    assert!(error.to_string().contains("kept"), "{error}");
    assert!(place.files() == before, "the files should be untouched");
}

#[tokio::test]
async fn a_ledger_that_lost_its_second_half_is_called_damaged_and_kept() {
    let place = Place::new();
    let ledger = place.open().await;
    for n in 0..200 {
        ledger.record(record(&format!("c{n}"))).await.unwrap();
    }
    ledger.close().await;
    let file = fs::OpenOptions::new()
        .write(true)
        .open(place.path())
        .unwrap();
    file.set_len(fs::metadata(place.path()).unwrap().len() / 2)
        .unwrap();
    let before = place.files();
    let error = Ledger::open(place.config()).await.unwrap_err();
    assert!(matches!(error, LedgerError::Corrupt { .. }), "{error:?}");
    assert!(place.files() == before, "the files should be untouched");
}

#[tokio::test]
async fn a_database_of_another_program_is_refused_and_left_as_it_is() {
    let place = Place::new();
    let mut theirs = place.plain().await;
    run(&mut theirs, "CREATE TABLE songs (title TEXT)").await;
    theirs.close().await.unwrap();
    let before = place.files();
    assert!(matches!(
        Ledger::open(place.config()).await,
        Err(LedgerError::Foreign { .. })
    ));
    assert!(place.files() == before, "the files should be untouched");
}

#[tokio::test]
async fn an_empty_file_becomes_a_ledger() {
    let place = Place::new();
    File::create(place.path()).unwrap();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    assert_eq!(
        count(&mut place.plain().await, "SELECT count(*) FROM commands").await,
        1
    );
    ledger.close().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named() {
    let place = Place::new();
    let file = place.directory().join("file");
    File::create(&file).unwrap();
    match Ledger::open(LedgerConfig::new(file.join("ledger.db"))).await {
        Err(LedgerError::Directory { path, .. }) => assert_eq!(path, file),
        other => panic!("{other:?}"),
    }
}

/// Permissions stop everybody but root; this file system stops root, too.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_directory_that_cannot_be_written_is_a_typed_error() {
    match Ledger::open(LedgerConfig::new("/proc/ledger.db")).await {
        Err(LedgerError::File { path, .. }) => assert!(path.starts_with("/proc"), "{path:?}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_path_that_is_no_file_is_refused() {
    let place = Place::new();
    for path in [Path::new(":memory:"), Path::new(""), place.directory()] {
        let result = Ledger::open(LedgerConfig::new(path)).await;
        assert!(
            matches!(result, Err(LedgerError::NotAFile { .. })),
            "{path:?}: {result:?}"
        );
    }
}

#[tokio::test]
async fn a_name_with_a_meaning_to_sqlite_is_just_a_name() {
    let place = Place::new();
    let path = place.directory().join("file:x?mode=memory#é");
    let ledger = Ledger::open(LedgerConfig::new(&path)).await.unwrap();
    ledger.intend(tap("a")).await.unwrap();
    ledger.close().await;
    let ledger = Ledger::open(LedgerConfig::new(&path)).await.unwrap();
    assert!(ledger.command(&id("a")).await.unwrap().is_some());
    ledger.close().await;
}
