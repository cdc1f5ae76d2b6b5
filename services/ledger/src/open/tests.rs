//! How the connections are set, which only they can tell, and a crash before the
//! schema was whole.

use std::fs;

use sqlx::{Connection, SqliteConnection};

use super::{APPLICATION_ID, Opened, open};
use crate::config::{LedgerConfig, Synchronous};
use crate::lock::beside;

async fn number(connection: &mut SqliteConnection, pragma: &'static str) -> i64 {
    sqlx::query_scalar(pragma)
        .fetch_one(connection)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_commit_waits_for_what_the_config_says() {
    for (synchronous, expected) in [(Synchronous::Full, 2), (Synchronous::Normal, 1)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.db");
        let config = LedgerConfig {
            synchronous,
            ..LedgerConfig::new(&path)
        };
        let Opened {
            lock: _lock,
            mut connection,
            options: _,
            readers,
            head: _,
            survey: _,
            place: _,
        } = open(&path, &config).await.unwrap();
        assert_eq!(
            number(&mut connection, "PRAGMA synchronous").await,
            expected
        );
        assert_eq!(number(&mut connection, "PRAGMA busy_timeout").await, 0);
        assert_eq!(number(&mut connection, "PRAGMA foreign_keys").await, 1);
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(journal, "wal");
        let refused = sqlx::query("DELETE FROM commands")
            .execute(&readers)
            .await
            .unwrap_err();
        assert!(refused.to_string().contains("readonly"), "{refused}");
    }
}

#[tokio::test]
async fn a_ledger_whose_making_was_cut_short_is_made_whole() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let config = LedgerConfig::new(&path);
    // Marked, and no table yet.
    fs::write(&path, []).unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .pragma("application_id", APPLICATION_ID.to_string());
    SqliteConnection::connect_with(&options)
        .await
        .unwrap()
        .close()
        .await
        .unwrap();

    let mut opened = open(&path, &config).await.unwrap();
    assert_eq!(
        number(&mut opened.connection, "SELECT count(*) FROM commands").await,
        0
    );
}

#[tokio::test]
async fn a_journal_from_a_crash_is_played_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ledger.db");
    let config = LedgerConfig::new(&path);
    fs::write(&path, []).unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(&path)
        .pragma("cache_size", "1")
        .pragma("application_id", APPLICATION_ID.to_string());
    let mut crashing = SqliteConnection::connect_with(&options).await.unwrap();
    // More than the cache holds, so that pages and their journal are on the
    // disk before the transaction has ended.
    for statement in [
        "CREATE TABLE filler (blob BLOB)",
        "BEGIN",
        "INSERT INTO filler VALUES (x'00')",
        "INSERT INTO filler VALUES (zeroblob(400000))",
    ] {
        sqlx::query(statement).execute(&mut crashing).await.unwrap();
    }
    let crashed = directory.path().join("crashed.db");
    fs::copy(&path, &crashed).unwrap();
    fs::copy(beside(&path, "-journal"), beside(&crashed, "-journal")).unwrap();
    // Of the file itself the crash left the first page only; the journal holds
    // the other one that there was.
    fs::OpenOptions::new()
        .write(true)
        .open(&crashed)
        .unwrap()
        .set_len(4096)
        .unwrap();
    crashing.close().await.unwrap();

    let mut opened = open(&crashed, &config).await.unwrap();
    assert_eq!(
        number(&mut opened.connection, "SELECT count(*) FROM filler").await,
        0
    );
}
