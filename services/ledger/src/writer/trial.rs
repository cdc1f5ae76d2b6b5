//! Whether a ledger that could not be written can be written again.
//!
//! ```text
//!         ┌──────────────────────────────────┐
//!         ▼                                  │ a second later: try, and fail
//!   failing since a write failed ────────────┘
//!         │ a write, or a try, succeeds
//!         ▼
//!       well
//! ```
//!
//! Writers find out by themselves; the tries are for whoever asks how the ledger
//! fares and will not write before it fares well. A try commits one page that
//! holds what it held.

use std::time::Duration;

use sqlx::ConnectOptions;
use tokio::time::Instant;

use super::{Writer, discard};
use crate::error::{Condition, LedgerError, classify, condition};

const INTERVAL: Duration = Duration::from_secs(1);

/// Sets a number in the file's header, which nothing else uses, to what it is:
/// that writes the page all the same.
const TRY: &str = "PRAGMA user_version = 0";

impl Writer {
    /// Takes note that a write succeeded.
    pub(super) fn succeeded(&mut self) {
        if self.trial.take().is_some() {
            self.last_failure.set(None);
            tracing::info!("the ledger can be written again");
        }
    }

    /// Takes note that a write failed.
    pub(super) fn failed(&mut self, failure: LedgerError) {
        self.last_failure.set(Some(failure));
        self.trial = Some(Instant::now() + INTERVAL);
    }

    /// Tries to write if the last write failed and that was a while ago.
    pub(super) async fn try_again(&mut self) {
        if self.trial.take_if(|due| *due <= Instant::now()).is_none() {
            return;
        }
        // Until it is known better.
        self.trial = Some(Instant::now() + INTERVAL);
        match self.try_write().await {
            Ok(()) => self.succeeded(),
            Err(error) if condition(&error) == Condition::Locked => {}
            Err(error) => self.failed(classify(&self.path, self.patience, error)),
        }
    }

    async fn try_write(&mut self) -> Result<(), sqlx::Error> {
        self.place.check(&self.path)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        let tried = sqlx::query(TRY).execute(&mut connection).await;
        if tried.is_ok() {
            self.connection = Some(connection);
        } else {
            discard(connection).await;
        }
        tried.map(|_| ())
    }
}
