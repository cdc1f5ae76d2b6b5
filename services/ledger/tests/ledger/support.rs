//! A ledger in a directory of its own, entries for it, and plain connections.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use fleetgate_ledger::{
    Cordon, DeviceSettings, LeaseRow, Ledger, LedgerConfig, NewFate, NewIntent, NewLeaseWrite,
    NewOperation, NewRecord, NewResolution, NewTransition, Outcome, Quarantine,
};
use fleetgate_runner::{CommandId, CommandKind, Effect, Fate};
use futures_util::future::join_all;
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, SqliteConnection};
use tempfile::TempDir;

pub(crate) const PHONE: &str = "00008110-000978540290401E";
pub(crate) const OTHER: &str = "00008020-00060D691AD8003A";

/// A directory with the place of a ledger in it.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory().join("ledger.db")
    }

    pub(crate) fn config(&self) -> LedgerConfig {
        LedgerConfig::new(self.path())
    }

    pub(crate) async fn open(&self) -> Ledger {
        Ledger::open(self.config()).await.unwrap()
    }

    pub(crate) async fn open_with_patience(&self, patience: Duration) -> Ledger {
        Ledger::open(LedgerConfig {
            patience,
            ..self.config()
        })
        .await
        .unwrap()
    }

    /// A connection that knows nothing of the ledger.
    pub(crate) async fn plain(&self) -> SqliteConnection {
        SqliteConnectOptions::new()
            .filename(self.path())
            .create_if_missing(true)
            .connect()
            .await
            .unwrap()
    }

    /// Every file and its bytes, but for the lock file.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        fs::read_dir(self.directory())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_none_or(|extension| extension != "lock"))
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    }
}

/// Polls all of these in their order before anything else runs: on a test's
/// runtime of one thread, the writer finds all of them waiting.
pub(crate) async fn at_once<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    tokio::task::unconstrained(join_all(futures)).await
}

pub(crate) async fn run(connection: &mut SqliteConnection, statement: &'static str) {
    sqlx::query(statement).execute(connection).await.unwrap();
}

pub(crate) async fn count(connection: &mut SqliteConnection, statement: &'static str) -> i64 {
    sqlx::query_scalar(statement)
        .fetch_one(connection)
        .await
        .unwrap()
}

/// Waits for `condition`, and fails if it does not come.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("the condition should have come");
}

pub(crate) fn id(text: &str) -> CommandId {
    text.parse().unwrap()
}

pub(crate) fn tap(command_id: &str) -> NewIntent {
    let parameters = [
        ("x", json!(120.5)),
        ("y", json!(40)),
        ("numberOfTaps", json!(2)),
    ];
    NewIntent {
        command_id: id(command_id),
        device: PHONE.parse().unwrap(),
        kind: CommandKind::Tap,
        app_bundle_id: Some("com.apple.Preferences".parse().unwrap()),
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect(),
        asked: [("x", json!(120.5)), ("unit", json!("points"))]
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect(),
        caller: Some("grace".to_owned()),
        principal: None,
        lease: None,
    }
}

pub(crate) fn completed() -> Outcome {
    Outcome {
        fate: Fate::Completed,
        effect: Effect::Applied,
        reason: None,
        message: None,
        warning: None,
        hint: None,
        reactivated: false,
        attempts: 1,
        recovered: false,
        queue_wait: Duration::from_micros(17),
        device_time: Duration::from_millis(230),
        reply: None,
    }
}

pub(crate) fn conclude(command_id: &str) -> NewFate {
    NewFate {
        command_id: id(command_id),
        outcome: completed(),
    }
}

pub(crate) fn record(command_id: &str) -> NewRecord {
    NewRecord {
        command: tap(command_id),
        outcome: completed(),
    }
}

pub(crate) fn unknown() -> Outcome {
    Outcome {
        fate: Fate::Unknown,
        effect: Effect::Unknown,
        reason: Some("FATE_UNKNOWN".to_owned()),
        ..completed()
    }
}

pub(crate) fn resolve(command_id: &str, outcome: Outcome) -> NewResolution {
    NewResolution {
        command_id: id(command_id),
        outcome,
        why: "the runner's journal".to_owned(),
        is_final: false,
    }
}

/// A read that was recorded at its end.
pub(crate) fn read(command_id: &str) -> NewRecord {
    NewRecord {
        command: NewIntent {
            kind: CommandKind::Viewport,
            parameters: serde_json::Map::new(),
            asked: serde_json::Map::new(),
            ..tap(command_id)
        },
        outcome: completed(),
    }
}

pub(crate) fn operation(what: &str) -> NewOperation {
    NewOperation {
        who: "ada".to_owned(),
        what: what.to_owned(),
        target: Some(PHONE.to_owned()),
        detail: [("n".to_owned(), json!(1))].into_iter().collect(),
    }
}

/// What happened to [`PHONE`]: from ATTACHED to READY.
pub(crate) fn transition(reason: &str) -> NewTransition {
    NewTransition {
        device: PHONE.parse().unwrap(),
        from: "ATTACHED".to_owned(),
        to: "READY".to_owned(),
        reason: reason.to_owned(),
        detail: Some("the runner answered".to_owned()),
    }
}

/// Everything that can be said of a phone.
pub(crate) fn settings(device: &str, alias: Option<&str>) -> DeviceSettings {
    let since = UNIX_EPOCH + Duration::from_micros(1_750_000_000_000_001);
    DeviceSettings {
        device: device.parse().unwrap(),
        alias: alias.map(ToOwned::to_owned),
        labels: [("rack", "b"), ("model", "iPhone \"15\"")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        cordon: Some(Cordon {
            reason: "new battery".to_owned(),
            who: "ada".to_owned(),
            since,
            until: Some(since + Duration::from_secs(3600)),
        }),
        quarantine: Some(Quarantine {
            reason: "LAUNCH_FAILED".to_owned(),
            since,
        }),
    }
}

/// A lease that waits: nobody has asked for it by a request, and it has no phone.
pub(crate) fn lease(id: &str) -> LeaseRow {
    LeaseRow {
        id: id.to_owned(),
        owner: "token:ci".to_owned(),
        request_id: None,
        state: "QUEUED".to_owned(),
        is_open: true,
        epoch: None,
        devices: Vec::new(),
        created: UNIX_EPOCH + Duration::from_micros(1_750_000_000_000_001),
        ended: None,
        body: json!({ "priority": 3, "text": "é \"15\"" }).to_string(),
    }
}

/// It has got both phones.
pub(crate) fn granted(id: &str, epoch: u64) -> LeaseRow {
    LeaseRow {
        state: "ACTIVE".to_owned(),
        epoch: Some(epoch),
        devices: [PHONE, OTHER].map(|udid| udid.parse().unwrap()).into(),
        ..lease(id)
    }
}

/// It has ended at a time, counted in seconds from its creation.
pub(crate) fn ended(lease: LeaseRow, seconds: u64) -> LeaseRow {
    LeaseRow {
        state: "RELEASED".to_owned(),
        is_open: false,
        ended: Some(lease.created + Duration::from_secs(seconds)),
        ..lease
    }
}

/// Leases, and nothing besides.
pub(crate) fn rows(rows: impl Into<Vec<LeaseRow>>) -> NewLeaseWrite {
    NewLeaseWrite {
        rows: rows.into(),
        ..NewLeaseWrite::default()
    }
}
