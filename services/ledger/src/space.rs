//! The size of the file.
//!
//! A ledger is made such that pages which retention has freed can be given back
//! to the file system a few at a time, while it is in use. A file from before
//! that must be rewritten once; when it is opened, if it is small. A larger one
//! keeps its free pages for later entries, until somebody runs
//! `PRAGMA auto_vacuum = INCREMENTAL; VACUUM;` on it while no gateway does.

use sqlx::SqliteConnection;

use crate::error::{Condition, condition};

/// The largest file that is rewritten when it is opened: well below a second.
const SMALL: i64 = 64 << 20;

const INCREMENTAL: i64 = 2;

/// Makes sure that the file can shrink, if that does not take long.
pub(crate) async fn allow_shrinking(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let mode: i64 = sqlx::query_scalar("PRAGMA auto_vacuum")
        .fetch_one(&mut *connection)
        .await?;
    if mode == INCREMENTAL {
        return Ok(());
    }
    let space = Space::read(connection).await?;
    if space.file() > SMALL {
        tracing::warn!(
            bytes = space.file(),
            "the ledger's file is from before it could shrink, and too large to be rewritten at once: \
             what retention frees is reused, but not given back; to change that, run \
             'PRAGMA auto_vacuum = INCREMENTAL; VACUUM;' on it while no gateway does"
        );
        return Ok(());
    }
    match sqlx::raw_sql("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        .execute(connection)
        .await
    {
        Ok(_) => Ok(()),
        // Somebody else is writing, or there is no room for a second copy.
        Err(error) if matches!(condition(&error), Condition::Locked | Condition::Full) => {
            tracing::warn!(%error, "the ledger's file cannot be made able to shrink now; the next start tries again");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Gives some free pages back to the file system; false if there are none left,
/// or none can be given back.
pub(crate) async fn shrink(connection: &mut SqliteConnection) -> Result<bool, sqlx::Error> {
    let before = Space::read(connection).await?.free;
    if before == 0 {
        return Ok(false);
    }
    sqlx::query("PRAGMA incremental_vacuum(256)")
        .execute(&mut *connection)
        .await?;
    let after = Space::read(connection).await?.free;
    Ok(0 < after && after < before)
}

/// How much room the database takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Space {
    pages: i64,
    free: i64,
    page_bytes: i64,
}

impl Space {
    pub(crate) async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        Ok(Self {
            pages: sqlx::query_scalar("PRAGMA page_count")
                .fetch_one(&mut *connection)
                .await?,
            free: sqlx::query_scalar("PRAGMA freelist_count")
                .fetch_one(&mut *connection)
                .await?,
            page_bytes: sqlx::query_scalar("PRAGMA page_size")
                .fetch_one(connection)
                .await?,
        })
    }

    /// The bytes of pages that hold something.
    pub(crate) fn used(self) -> i64 {
        (self.pages - self.free).saturating_mul(self.page_bytes)
    }

    /// The bytes of the file, once the WAL is folded in.
    pub(crate) fn file(self) -> i64 {
        self.pages.saturating_mul(self.page_bytes)
    }
}
