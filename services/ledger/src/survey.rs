//! Which commands are unsettled, kept such that nobody has to look at all of
//! them.
//!
//! ```text
//!            through                 newest
//! ▏ surveyed    ▏ not yet surveyed      ▏
//!   settled,      looked at one by one
//!   but for the
//!   listed ones
//! ```
//!
//! Keeping the list exact would cost every commit a page. So the writer surveys
//! what has come, a step at a time between batches, once that is a step's worth.
//! A lag is harmless: what is listed is looked at again by whoever reads it.
//!
//! Invariant: a mutation up to `through` that is unsettled is listed. It holds
//! since a settled one stays settled, and since a step and what it goes by are
//! one transaction.

use sqlx::{Connection, SqliteConnection};

use crate::batch::{CommitError, abandon, finish};
use crate::row::newest_fates;

/// The commands that one step looks at: a few milliseconds, and the most that a
/// reader looks at besides the listed ones.
const STEP: i64 = 4096;

/// What makes a command `c` with its newest fate `f` unsettled.
macro_rules! is_unsettled {
    () => {
        "c.mutation = 1 AND (f.seq IS NULL OR (f.final = 0 AND f.fate = 'UNKNOWN'))"
    };
}
pub(crate) use is_unsettled;

const FORGET_SETTLED: &str = concat!(
    "DELETE FROM unsettled WHERE command_seq NOT IN (SELECT c.seq FROM ",
    newest_fates!(),
    " WHERE c.seq IN (SELECT command_seq FROM unsettled) AND ",
    is_unsettled!(),
    ")"
);

const LIST: &str = concat!(
    "INSERT OR IGNORE INTO unsettled (command_seq) SELECT c.seq FROM ",
    newest_fates!(),
    " WHERE c.seq > ?1 AND c.seq <= ?2 AND ",
    is_unsettled!()
);

/// An unsettled command that should be listed and is not.
pub(crate) const SELECT_UNLISTED: &str = concat!(
    "SELECT min(c.seq) FROM ",
    newest_fates!(),
    " WHERE c.seq <= (SELECT through FROM survey) AND ",
    is_unsettled!(),
    " AND c.seq NOT IN (SELECT command_seq FROM unsettled)"
);

/// How far the survey has come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Survey {
    through: i64,
    newest: i64,
}

impl Survey {
    /// Begins anew from the first command if it is not known how far it came.
    pub(crate) async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        Ok(Self {
            through: through(connection).await?,
            newest: sqlx::query_scalar("SELECT coalesce(max(seq), 0) FROM commands")
                .fetch_one(connection)
                .await?,
        })
    }

    /// Takes note of the newest command.
    pub(crate) fn written(&mut self, newest: i64) {
        self.newest = newest;
    }

    /// Whether a step's worth has come.
    pub(crate) fn due(&self) -> bool {
        self.newest - self.through >= STEP
    }

    /// Surveys a step's worth.
    pub(crate) async fn step(
        &mut self,
        connection: &mut SqliteConnection,
    ) -> Result<(), CommitError> {
        let to = self.newest.min(self.through + STEP);
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        match step(&mut transaction, self.through, to).await {
            Ok(()) => finish(transaction).await?,
            Err(error) => return Err(abandon(transaction, error).await),
        }
        self.through = to;
        Ok(())
    }
}

/// The last command that was surveyed.
pub(crate) async fn through(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let through: Option<i64> = sqlx::query_scalar("SELECT through FROM survey")
        .fetch_optional(connection)
        .await?;
    Ok(through.unwrap_or_default())
}

async fn step(connection: &mut SqliteConnection, after: i64, to: i64) -> Result<(), sqlx::Error> {
    sqlx::query(FORGET_SETTLED)
        .execute(&mut *connection)
        .await?;
    sqlx::query(LIST)
        .bind(after)
        .bind(to)
        .execute(&mut *connection)
        .await?;
    sqlx::query("INSERT OR REPLACE INTO survey (one, through) VALUES (1, ?1)")
        .bind(to)
        .execute(connection)
        .await?;
    Ok(())
}
