//! The one task that writes.
//!
//! ```text
//!            ┌──────────── whatever waits, 256 at most ◄───────────┐
//!            ▼                                                     │
//!        attempt ── written ──────────► answer each ───────────────┤
//!          ▲ │ ├─── locked ───► refuse who has waited long enough, │
//!          └─┼─┼─────────────── pause                              │
//!            │ └─── a rule broken ─► halve the batch, each half    │
//!            │                       for itself; alone: refuse it ─┤
//!            └───── failed ────────► refuse all ───────────────────┘
//! ```
//!
//! There is no tick: under load the batch grows by itself while the last one is
//! being synchronised. Between batches there is a step of the chores, if one is
//! due, one of the survey, and after a failure a try to write again. The task
//! ends when the ledger is closed, or its last handle dropped, and everything
//! handed in before that has been answered.
//!
//! Invariant: an entry is answered once, and with success only after its
//! commit, to a file that its path still named before.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection, SqlitePool};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::batch::{self, CommitError, Committed};
use crate::entry::Entry;
use crate::error::{Condition, LedgerError, classify, condition};
use crate::health::LastFailure;
use crate::lock::WriterLock;
use crate::stats::Counters;

mod chores;
mod place;
mod surveyor;
mod trial;

pub(crate) use self::chores::Chores;
pub(crate) use self::place::Place;
pub(crate) use self::surveyor::Surveyor;

/// The most entries in one transaction.
pub(crate) const BATCH_LIMIT: usize = 256;

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// An entry and whoever waits for it.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) entry: Entry,
    pub(crate) submitted: Instant,
    pub(crate) answer: oneshot::Sender<Result<(), LedgerError>>,
}

/// What the task owns.
pub(crate) struct Writer {
    pub(crate) path: Arc<Path>,
    pub(crate) patience: Duration,
    pub(crate) lock: WriterLock,
    /// The file that was opened.
    pub(crate) place: Place,
    /// `None` after a failure, until the next attempt.
    pub(crate) connection: Option<SqliteConnection>,
    pub(crate) options: SqliteConnectOptions,
    pub(crate) readers: SqlitePool,
    pub(crate) tickets: mpsc::Receiver<Ticket>,
    pub(crate) stop: CancellationToken,
    pub(crate) counters: Arc<Counters>,
    pub(crate) last_failure: Arc<LastFailure>,
    /// When to try again to write; `None` while the last write succeeded.
    pub(crate) trial: Option<Instant>,
    /// The number of the chain's last link.
    pub(crate) head: watch::Sender<u64>,
    /// `None` if there are none to do.
    pub(crate) chores: Option<Chores>,
    pub(crate) surveyor: Surveyor,
}

/// What the writer does next.
enum Next {
    /// Write these.
    Write(Vec<Ticket>),
    /// Do a step of its chores, or try again to write.
    Tidy,
    End,
}

impl Writer {
    pub(crate) async fn run(mut self) {
        loop {
            match self.next().await {
                Next::Write(batch) => {
                    self.settle(batch).await;
                    // Also under load, when there is always something to write.
                    self.tidy().await;
                    self.survey().await;
                }
                Next::Tidy => {
                    self.try_again().await;
                    self.tidy().await;
                    self.survey().await;
                }
                Next::End => break,
            }
        }
        // The writer goes last: only the last connection that may write folds
        // the WAL into the file.
        self.readers.close().await;
        if let Some(connection) = self.connection.take()
            && let Err(error) = connection.close().await
        {
            tracing::warn!(%error, "the ledger did not close cleanly");
        }
        drop(self.lock);
    }

    /// Whatever waits, or the first thing to come.
    async fn next(&mut self) -> Next {
        let mut batch = Vec::new();
        if !self.tickets.is_closed() {
            let chore = self.chores.as_ref().map(Chores::next);
            let due = [chore, self.trial, self.surveyor.next()]
                .into_iter()
                .flatten()
                .min();
            let due = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => self.tickets.close(),
                count = self.tickets.recv_many(&mut batch, BATCH_LIMIT) => {
                    return if count > 0 { Next::Write(batch) } else { Next::End };
                }
                () = due => return Next::Tidy,
            }
        }
        if self.tickets.recv_many(&mut batch, BATCH_LIMIT).await > 0 {
            Next::Write(batch)
        } else {
            Next::End
        }
    }

    fn publish(&self, head: i64) {
        let head = head.unsigned_abs();
        // What makes no link, as the clock of leases, is no news.
        self.head
            .send_if_modified(|known| std::mem::replace(known, head) != head);
    }

    async fn settle(&mut self, batch: Vec<Ticket>) {
        let mut batches = vec![batch];
        while let Some(mut batch) = batches.pop() {
            match self.write(&mut batch).await {
                Ok(verdicts) => {
                    for (ticket, verdict) in batch.into_iter().zip(verdicts) {
                        self.answer(ticket, verdict);
                    }
                }
                Err(LedgerError::Rejected { .. }) if batch.len() > 1 => {
                    let second = batch.split_off(batch.len() / 2);
                    batches.push(second);
                    batches.push(batch);
                }
                Err(error) => {
                    tracing::error!(?error, refused = batch.len(), "the ledger cannot write");
                    for ticket in batch {
                        self.answer(ticket, Err(error.clone()));
                    }
                }
            }
        }
    }

    /// Writes the batch, waiting for a lock as long as each entry's patience
    /// lasts; those that run out of it are answered and leave the batch.
    async fn write(
        &mut self,
        batch: &mut Vec<Ticket>,
    ) -> Result<Vec<Result<(), LedgerError>>, LedgerError> {
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match self.attempt(batch).await {
                Ok(verdicts) => return Ok(verdicts),
                Err(error) => error,
            };
            match condition(&error) {
                Condition::Locked => {}
                // A fault of the entry, not of the ledger.
                Condition::Constraint => {
                    return Err(classify(&self.path, self.patience, error));
                }
                Condition::Damaged | Condition::Full | Condition::Other => {
                    let failure = classify(&self.path, self.patience, error);
                    self.failed(failure.clone());
                    return Err(failure);
                }
            }
            self.counters.found_locked();
            let unavailable = classify(&self.path, self.patience, error);
            let patience = self.patience;
            let waiting = batch.len();
            for ticket in batch.extract_if(.., |ticket| ticket.submitted.elapsed() >= patience) {
                self.answer(ticket, Err(unavailable.clone()));
            }
            if batch.len() < waiting {
                self.failed(unavailable);
                tracing::warn!(
                    refused = waiting - batch.len(),
                    "the ledger is locked by another connection"
                );
            }
            let Some(first) = batch.first() else {
                return Ok(Vec::new());
            };
            let left = patience.saturating_sub(first.submitted.elapsed());
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn attempt(
        &mut self,
        batch: &[Ticket],
    ) -> Result<Vec<Result<(), LedgerError>>, sqlx::Error> {
        self.place.check(&self.path)?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.options.connect().await?,
        };
        let started = Instant::now();
        let entries: Vec<&Entry> = batch.iter().map(|ticket| &ticket.entry).collect();
        match batch::commit(&mut connection, &entries).await {
            Ok(Committed { verdicts, written }) => {
                self.counters.committed(started.elapsed(), written.chaining);
                self.succeeded();
                self.publish(written.head);
                self.surveyor.written(written.newest);
                self.connection = Some(connection);
                Ok(verdicts)
            }
            Err(CommitError {
                error,
                spoiled: false,
            }) => {
                self.connection = Some(connection);
                Err(error)
            }
            // Closed before the answer goes out, so that what is refused is
            // undone by then.
            Err(CommitError {
                error,
                spoiled: true,
            }) => {
                discard(connection).await;
                Err(error)
            }
        }
    }

    fn answer(&self, ticket: Ticket, verdict: Result<(), LedgerError>) {
        self.counters.answered(verdict.is_ok());
        // Whoever asked may have stopped waiting; the entry stands all the same.
        ticket.answer.send(verdict).ok();
    }
}

/// Closes a connection that has failed.
async fn discard(connection: SqliteConnection) {
    if let Err(error) = connection.close().await {
        tracing::debug!(%error, "a failed connection did not close cleanly");
    }
}

#[cfg(test)]
mod tests;
