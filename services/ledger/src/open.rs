//! From a path to a database that may be written: directory, lock, file, a look
//! before anything is touched, then the schema.
//!
//! Invariant: a file that this binary must not write (a newer schema, another
//! program's, a damaged one) is refused before a byte of it is changed.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection, SqlitePool};
use tokio::time::sleep;

use crate::chain::{self, Begun};
use crate::config::{LedgerConfig, Synchronous};
use crate::error::{LedgerError, classify};
use crate::lock::{WriterLock, beside};
use crate::space;
use crate::survey::Survey;
use crate::writer::Place;

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations/sqlite");

/// Marks a database as a ledger, in the header field that SQLite keeps for
/// this: `FLGT`.
const APPLICATION_ID: i32 = 0x464c_4754;

/// The WAL is cut back to this when it is used from its beginning again. It
/// grows past it only while a reader that is not ours keeps a snapshot open,
/// which nobody can take from it; our own let go after each page.
const WAL_LIMIT: &str = "67108864";

/// An open database.
pub(crate) struct Opened {
    pub(crate) lock: WriterLock,
    pub(crate) place: Place,
    pub(crate) connection: SqliteConnection,
    /// How the writer connects again if its connection fails.
    pub(crate) options: SqliteConnectOptions,
    pub(crate) readers: SqlitePool,
    /// The number of the chain's last link.
    pub(crate) head: i64,
    pub(crate) survey: Survey,
}

/// How often a lock that is held is looked at again, and after which pause: a
/// gateway that was killed while it started a process has left a copy of its
/// descriptor there, until that runs its own program.
const LOOKS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(10);

async fn take_lock(path: &Path) -> Result<WriterLock, LedgerError> {
    for _ in 1..LOOKS {
        match WriterLock::take(path) {
            Err(LedgerError::InUse { .. }) => sleep(PAUSE).await,
            taken => return taken,
        }
    }
    WriterLock::take(path)
}

/// Opens the ledger at `path`, which must be absolute: SQLite reads meaning
/// into a name such as `:memory:` or `file:x`.
pub(crate) async fn open(path: &Path, config: &LedgerConfig) -> Result<Opened, LedgerError> {
    make_directory(path)?;
    let lock = take_lock(path).await?;
    make_file(path)?;
    let place = Place::of(path).map_err(|source| LedgerError::File {
        path: path.to_owned(),
        source: Arc::new(source),
    })?;

    let failed = |error| classify(path, config.patience, error);
    let shared = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(config.patience)
        .disable_statement_logging();
    let fresh = inspect(path, shared.clone(), config.patience).await?;

    let options = shared
        .clone()
        .journal_mode(SqliteJournalMode::Wal)
        .pragma("journal_size_limit", WAL_LIMIT)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .synchronous(match config.synchronous {
            Synchronous::Full => SqliteSynchronous::Full,
            Synchronous::Normal => SqliteSynchronous::Normal,
        });
    migrate(path, options.clone(), fresh, config.patience).await?;
    let (head, survey) = prepare(path, &options, config.patience).await?;

    // The writer waits for a lock by itself: SQLite's way of waiting would
    // hold a whole batch for as long as its most patient entry.
    let options = options.busy_timeout(Duration::ZERO);
    let connection = options.connect().await.map_err(failed)?;
    let readers = SqlitePoolOptions::new()
        .max_connections(config.readers.get())
        .acquire_timeout(config.patience)
        // A connection to a file does not go stale, and asking it costs as much
        // as a look-up.
        .test_before_acquire(false)
        .connect_lazy_with(shared.read_only(true));
    Ok(Opened {
        lock,
        place,
        connection,
        options,
        readers,
        head,
        survey,
    })
}

/// Sees to what the schema cannot: the chain's beginning, and that the file can
/// shrink. Gives the chain's end, and how far the survey came.
async fn prepare(
    path: &Path,
    options: &SqliteConnectOptions,
    patience: Duration,
) -> Result<(i64, Survey), LedgerError> {
    let failed = |error| classify(path, patience, error);
    let mut connection = options.connect().await.map_err(failed)?;
    let begun = chain::begin(&mut connection).await.map_err(failed)?;
    space::allow_shrinking(&mut connection)
        .await
        .map_err(failed)?;
    let survey = Survey::read(&mut connection).await.map_err(failed)?;
    connection.close().await.map_err(failed)?;
    match begun {
        Begun::At(head) => Ok((head, survey)),
        Begun::Damaged => Err(LedgerError::BrokenChain {
            path: path.to_owned(),
        }),
    }
}

fn make_directory(path: &Path) -> Result<(), LedgerError> {
    let Some(directory) = path.parent() else {
        return Err(LedgerError::NotAFile {
            path: path.to_owned(),
        });
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|source| LedgerError::Directory {
            path: directory.to_owned(),
            source: Arc::new(source),
        })
}

/// Makes the file for its owner only, if it is missing; SQLite would make it as
/// the umask says, and gives its own files beside it the mode of this one.
fn make_file(path: &Path) -> Result<(), LedgerError> {
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => {
            Err(LedgerError::NotAFile {
                path: path.to_owned(),
            })
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(LedgerError::File {
            path: path.to_owned(),
            source: Arc::new(error),
        }),
    }
}

/// Looks at the database without touching it; true if it is empty.
async fn inspect(
    path: &Path,
    shared: SqliteConnectOptions,
    patience: Duration,
) -> Result<bool, LedgerError> {
    let failed = |error| classify(path, patience, error);
    // Even a read-only connection leaves files of its own beside a WAL
    // database. Told that nothing changes, which the lock sees to, it does not;
    // but then it also ignores what a WAL still holds, so that counts only if
    // there is none. A journal from a crash must be played back to read
    // anything at all.
    let crashed = beside(path, "-journal").exists();
    let settled = !crashed && !beside(path, "-wal").exists();
    let mut connection = shared
        .read_only(!crashed)
        .immutable(settled)
        .connect()
        .await
        .map_err(failed)?;
    let header = Header::read(&mut connection).await;
    connection.close().await.map_err(failed)?;

    header.map_err(failed)?.check(path)
}

/// The newest schema that this binary knows.
pub(crate) fn known_schema() -> i64 {
    MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or_default()
}

/// What a database says of itself.
pub(crate) struct Header {
    objects: i64,
    application: i32,
    /// Of a ledger only.
    pub(crate) schema: Option<i64>,
}

impl Header {
    pub(crate) async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let objects: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema")
            .fetch_one(&mut *connection)
            .await?;
        let application: i32 = sqlx::query_scalar("PRAGMA application_id")
            .fetch_one(&mut *connection)
            .await?;
        let migrated: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations'",
        )
        .fetch_one(&mut *connection)
        .await?;
        let schema = if application == APPLICATION_ID && migrated > 0 {
            sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations")
                .fetch_one(connection)
                .await?
        } else {
            None
        };
        Ok(Self {
            objects,
            application,
            schema,
        })
    }

    /// Refuses what is not to be touched; true if the database is empty.
    pub(crate) fn check(&self, path: &Path) -> Result<bool, LedgerError> {
        if self.application != APPLICATION_ID && (self.objects > 0 || self.application != 0) {
            return Err(LedgerError::Foreign {
                path: path.to_owned(),
            });
        }
        let known = known_schema();
        match self.schema {
            Some(found) if found > known => Err(LedgerError::NewerSchema {
                path: path.to_owned(),
                found,
                known,
            }),
            Some(_) | None => Ok(self.application == 0),
        }
    }
}

/// Brings the schema up to date, over a pool only since the migrator's future
/// cannot be sent between threads with anything else.
async fn migrate(
    path: &Path,
    options: SqliteConnectOptions,
    fresh: bool,
    patience: Duration,
) -> Result<(), LedgerError> {
    let failed = |error| classify(path, patience, error);
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .connect_with(options)
        .await
        .map_err(failed)?;
    if fresh {
        // Before the first table, so that no half-made ledger looks foreign.
        let mark = AssertSqlSafe(format!("PRAGMA application_id = {APPLICATION_ID}"));
        sqlx::query(mark).execute(&pool).await.map_err(failed)?;
    }
    let migrated = MIGRATIONS.run(&pool).await;
    pool.close().await;
    migrated.map_err(|error| migration_failed(path, patience, error))
}

fn migration_failed(path: &Path, patience: Duration, error: MigrateError) -> LedgerError {
    if let MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) = error {
        return classify(path, patience, error);
    }
    LedgerError::Schema {
        path: path.to_owned(),
        source: Arc::new(error),
    }
}

#[cfg(test)]
mod tests;
