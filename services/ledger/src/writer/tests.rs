//! What only somebody with a hand on the writer's own connection can bring
//! about: a disk without room, an entry that breaks a rule of the schema.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fleetgate_runner::{CommandId, CommandKind};
use serde_json::{Map, Value};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Surveyor, Ticket, Writer};
use crate::config::LedgerConfig;
use crate::entry::{Change, Entry, NewIntent};
use crate::error::LedgerError;
use crate::open;
use crate::query;
use crate::stats::Counters;

struct Bench {
    _directory: TempDir,
    path: PathBuf,
    writer: Writer,
    tickets: mpsc::Sender<Ticket>,
}

impl Bench {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.db");
        let config = LedgerConfig::new(&path);
        let opened = open::open(&path, &config).await.unwrap();
        let (tickets, waiting) = mpsc::channel(16);
        let writer = Writer {
            path: Arc::from(path.as_path()),
            patience: Duration::from_secs(5),
            lock: opened.lock,
            place: opened.place,
            connection: Some(opened.connection),
            options: opened.options,
            readers: opened.readers,
            tickets: waiting,
            stop: CancellationToken::new(),
            counters: Arc::new(Counters::default()),
            last_failure: Arc::default(),
            trial: None,
            surveyor: Surveyor::new(opened.survey),
            head: watch::Sender::new(0),
            chores: None,
        };
        Self {
            _directory: directory,
            path,
            writer,
            tickets,
        }
    }
}

async fn plain(path: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap()
}

fn id(text: &str) -> CommandId {
    text.parse().unwrap()
}

async fn hand_in(
    tickets: &mpsc::Sender<Ticket>,
    command_id: &str,
    parameter: (&str, String),
) -> oneshot::Receiver<Result<(), LedgerError>> {
    let parameters: Map<String, Value> = [(parameter.0.to_owned(), Value::String(parameter.1))]
        .into_iter()
        .collect();
    let intent = NewIntent {
        command_id: id(command_id),
        device: "00008110-000978540290401E".parse().unwrap(),
        kind: CommandKind::Tap,
        app_bundle_id: None,
        parameters,
        asked: Map::new(),
        caller: None,
        principal: None,
        lease: None,
    };
    let entry = Entry {
        at: SystemTime::now(),
        change: Change::Intend(intent),
    };
    let (answer, answered) = oneshot::channel();
    tickets
        .send(Ticket {
            entry,
            submitted: Instant::now(),
            answer,
        })
        .await
        .unwrap();
    answered
}

#[tokio::test]
async fn without_room_entries_are_refused_and_reads_served_until_there_is_room() {
    let Bench {
        _directory,
        path,
        mut writer,
        tickets,
    } = Bench::new().await;
    let mut other = plain(&path).await;
    sqlx::query("CREATE TABLE filler AS SELECT zeroblob(400000) AS filler")
        .execute(&mut other)
        .await
        .unwrap();
    let connection = writer.connection.as_mut().unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    let limit = sqlx::AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"));
    sqlx::query(limit).execute(&mut *connection).await.unwrap();
    let readers = writer.readers.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(writer.run());

    let large = || ("blob", "x".repeat(20_000));
    let mut written = 0;
    let full = loop {
        match hand_in(&tickets, &format!("c{written}"), large())
            .await
            .await
            .unwrap()
        {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 100, "the room should have come to an end");
    };
    assert!(matches!(full, LedgerError::Full { .. }), "{full:?}");
    let again = hand_in(&tickets, "again", large()).await.await.unwrap();
    assert!(matches!(again, Err(LedgerError::Full { .. })), "{again:?}");
    let missing = query::command(&readers, &id("again")).await.ok().unwrap();
    assert_eq!(
        missing, None,
        "reads should be served, and a refused entry not be there"
    );

    sqlx::query("DROP TABLE filler")
        .execute(&mut other)
        .await
        .unwrap();
    hand_in(&tickets, "again", large())
        .await
        .await
        .unwrap()
        .unwrap();
    assert!(
        query::command(&readers, &id("again"))
            .await
            .ok()
            .unwrap()
            .is_some()
    );
    drop(tickets);
    tasks.join_all().await;
}

#[tokio::test]
async fn an_entry_that_breaks_a_rule_is_refused_alone() {
    let Bench {
        _directory,
        path,
        writer,
        tickets,
    } = Bench::new().await;
    let counters = Arc::clone(&writer.counters);
    let mut answers = Vec::new();
    for n in 0..7 {
        let name = if n == 4 { "text" } else { "button" };
        answers.push(hand_in(&tickets, &format!("c{n}"), (name, "home".to_owned())).await);
    }
    drop(tickets);
    writer.run().await;

    for (n, answer) in answers.into_iter().enumerate() {
        match answer.await.unwrap() {
            Ok(()) => assert_ne!(n, 4),
            Err(LedgerError::Rejected { .. }) => assert_eq!(n, 4),
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!((counters.read().written, counters.read().refused), (6, 1));
    let order: Vec<String> = sqlx::query_scalar("SELECT command_id FROM commands ORDER BY seq")
        .fetch_all(&mut plain(&path).await)
        .await
        .unwrap();
    assert_eq!(order, ["c0", "c1", "c2", "c3", "c5", "c6"]);
}
