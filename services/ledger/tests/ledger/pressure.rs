//! A reader that never lets go, a disk that is full, a lock in another process.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fleetgate_ledger::{Ledger, LedgerConfig, LedgerError, verify};
use fleetgate_runner::CommandId;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::task::JoinSet;

use crate::support::{Place, at_once, conclude, count, id, operation, record, run, tap, until};

/// What a checkpoint cuts the WAL back to.
const WAL_LIMIT: u64 = 64 << 20;

/// SQLite keeps in the WAL whatever a reader may still want, and nobody can
/// take that from a reader that is not ours. So the WAL grows with the writes,
/// and no faster; the writer is not slowed; and when the reader is gone, the
/// WAL is used from its beginning again and cut back.
#[tokio::test]
async fn a_hundred_thousand_writes_beside_a_pinned_reader_are_all_kept_and_the_wal_is_cut_back() {
    const WRITES: usize = 100_000;
    let place = Place::new();
    let ledger = place.open().await;
    let mut reader = place.plain().await;
    run(&mut reader, "BEGIN").await;
    assert_eq!(count(&mut reader, "SELECT count(*) FROM commands").await, 0);

    for _ in 0..WRITES / 1000 {
        let entries = (0..1000).map(|_| {
            let mut entry = record("x");
            entry.command.command_id = CommandId::mint();
            ledger.record(entry)
        });
        assert!(at_once(entries).await.iter().all(Result::is_ok));
    }
    let stats = ledger.stats();
    assert_eq!((stats.written, stats.found_locked), (WRITES as u64, 0));
    assert_eq!(count(&mut reader, "SELECT count(*) FROM commands").await, 0);
    let wal = || {
        fs::metadata(place.directory().join("ledger.db-wal"))
            .unwrap()
            .len()
    };
    let pinned = wal();
    assert!(
        pinned > WAL_LIMIT,
        "the reader should have pinned it: {pinned}"
    );
    assert!(pinned < 6 * 1024 * WRITES as u64, "{pinned}");

    run(&mut reader, "COMMIT").await;
    // The first folds in what the reader held back, the next one starts the WAL
    // anew.
    for name in ["first", "second"] {
        ledger.intend(tap(name)).await.unwrap();
    }
    let after = wal();
    assert!(after <= WAL_LIMIT, "{after}");
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(report.first_break, None);
    assert_eq!(report.commands, WRITES as u64 + 2);
    ledger.close().await;
}

/// A small file system of its own; gone with the value.
pub(crate) struct SmallDisk {
    pub(crate) at: PathBuf,
    _place: Place,
}

impl SmallDisk {
    /// Only root may: to anybody else this is a failure, and no pass.
    pub(crate) fn mount(size: &str) -> Self {
        let place = Place::new();
        let at = place.directory().join("disk");
        fs::create_dir(&at).unwrap();
        let root = fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0);
        assert!(
            root,
            "a small disk can be mounted by root only: run the tests as root"
        );
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size}"),
                "fleetgate-test",
            ])
            .arg(&at)
            .status()
            .unwrap();
        assert!(mounted.success(), "root should be able to mount a tmpfs");
        Self { at, _place: place }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("-l").arg(&self.at).status().ok();
    }
}

#[tokio::test]
async fn on_a_full_disk_entries_are_refused_reads_are_served_and_room_is_used_at_once() {
    let disk = SmallDisk::mount("2m");
    let filler = disk.at.join("filler");
    fs::write(&filler, vec![1; 768 * 1024]).unwrap();
    let path = disk.at.join("ledger.db");
    let ledger = Ledger::open(LedgerConfig::new(&path)).await.unwrap();
    ledger.intend(tap("open")).await.unwrap();
    // While somebody reads, a writer that starts anew does not fold the WAL in,
    // which would make room.
    assert!(ledger.command(&id("open")).await.unwrap().is_some());

    let mut written = Vec::new();
    let full = loop {
        let name = format!("c{}", written.len());
        match ledger.record(record(&name)).await {
            Ok(()) => written.push(name),
            Err(error) => break error,
        }
        assert!(written.len() < 100_000, "the disk should have become full");
    };
    assert!(matches!(full, LedgerError::Full { .. }), "{full:?}");
    // Down to where the smallest entry does not fit.
    while ledger.operation(operation("cordon")).await.is_ok() {}
    let refused = at_once((0..20).map(|n| ledger.intend(tap(&format!("refused-{n}"))))).await;
    assert!(
        refused
            .iter()
            .all(|result| matches!(result, Err(LedgerError::Full { .. }))),
        "{refused:?}"
    );
    let fate = ledger.conclude(conclude("open")).await;
    assert!(matches!(fate, Err(LedgerError::Full { .. })), "{fate:?}");

    for name in [written.first(), written.last()].into_iter().flatten() {
        assert!(ledger.command(&id(name)).await.unwrap().is_some(), "{name}");
    }
    assert_eq!(ledger.command(&id("refused-0")).await.unwrap(), None);
    assert!(!ledger.tail(None, 10).await.unwrap().events.is_empty());

    fs::remove_file(&filler).unwrap();
    ledger.conclude(conclude("open")).await.unwrap();
    ledger.intend(tap("refused-0")).await.unwrap();
    let report = ledger.verify(None).await.unwrap();
    assert_eq!(report.first_break, None);
    assert_eq!(report.commands, written.len() as u64 + 2);
    ledger.close().await;
    assert!(verify(&path, None).await.unwrap().is_intact());
}

const HELD: &str = "FLEETGATE_TEST_HOLD";

/// Not a test but what [`Holder`] runs as another process: holds what it is
/// told to until its standard input ends.
#[tokio::test]
async fn holder() {
    let Some(path) = std::env::var_os(HELD) else {
        return;
    };
    let path = Path::new(&path);
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .connect()
        .await
        .unwrap();
    run(&mut connection, "BEGIN EXCLUSIVE").await;
    println!("\nheld");
    std::io::stdout().flush().unwrap();
    std::io::stdin()
        .lock()
        .read_line(&mut String::new())
        .unwrap();
}

/// Another process that holds the database's write lock.
struct Holder(Child);

impl Holder {
    fn start(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "pressure::holder", "--nocapture"])
            .env(HELD, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let held = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .any(|line| line.unwrap() == "held");
        assert!(held, "the other process should hold the lock");
        Self(child)
    }

    /// Killed, as a process that holds a lock may be.
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[tokio::test]
async fn a_lock_in_another_process_delays_entries_until_that_process_is_killed() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.record(record("before")).await.unwrap();
    let holder = Holder::start(&place.path());
    let mut writers = JoinSet::new();
    for n in 0..20 {
        let ledger = ledger.clone();
        writers.spawn(async move { ledger.intend(tap(&format!("c{n}"))).await });
    }
    until(|| ledger.stats().found_locked > 0).await;
    assert!(ledger.command(&id("before")).await.unwrap().is_some());
    assert!(writers.try_join_next().is_none());
    holder.kill();
    assert!(writers.join_all().await.iter().all(Result::is_ok));
    assert_eq!(ledger.verify(None).await.unwrap().commands, 21);
    ledger.close().await;
}
