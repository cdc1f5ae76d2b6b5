//! The handle that everybody holds.

use std::path::{Path, absolute};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sqlx::SqlitePool;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::canonical::Head;
use crate::config::LedgerConfig;
use crate::entry::{
    Change, Entry, NewFate, NewIntent, NewOperation, NewRecord, NewResolution, NewTransition,
};
use crate::error::{LedgerError, classify};
use crate::health::{self, LastFailure, LedgerHealth};
use crate::leases::NewLeaseWrite;
use crate::open::{self, Opened};
use crate::settings::DeviceSettings;
use crate::stats::{Counters, LedgerStats};
use crate::verify::{VerifyReport, verify};
use crate::writer::{Chores, Place, Surveyor, Ticket, Writer};

mod reads;

/// Entries that may wait for the writer; who comes later waits for room.
const QUEUE: usize = 1024;

/// An open ledger. Clones share it.
///
/// Writing returns after the commit. A caller that stops waiting does not take
/// its entry back.
#[derive(Debug, Clone)]
pub struct Ledger {
    tickets: mpsc::Sender<Ticket>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: Arc<Path>,
    place: Place,
    patience: Duration,
    readers: SqlitePool,
    counters: Arc<Counters>,
    last_failure: Arc<LastFailure>,
    head: watch::Receiver<u64>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Ledger {
    /// Opens a ledger, making it if it is missing and bringing its schema up to
    /// date, and starts its writer.
    ///
    /// Fails, without touching the file, if another gateway has it open, if a
    /// newer one wrote it, if it is another program's, or if it is damaged.
    pub async fn open(config: LedgerConfig) -> Result<Self, LedgerError> {
        let not_a_file = || LedgerError::NotAFile {
            path: config.path.clone(),
        };
        if config.path == Path::new(":memory:") {
            return Err(not_a_file());
        }
        let path: Arc<Path> = absolute(&config.path).map_err(|_| not_a_file())?.into();
        let Opened {
            lock,
            place,
            connection,
            options,
            readers,
            head,
            survey,
        } = open::open(&path, &config).await?;

        let (tickets, waiting) = mpsc::channel(QUEUE);
        let (publish, head) = watch::channel(head.unsigned_abs());
        let shared = Shared {
            path: Arc::clone(&path),
            place,
            patience: config.patience,
            readers: readers.clone(),
            counters: Arc::default(),
            last_failure: Arc::default(),
            head,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let writer = Writer {
            path,
            patience: config.patience,
            lock,
            place,
            connection: Some(connection),
            options,
            readers,
            tickets: waiting,
            stop: shared.stop.clone(),
            counters: Arc::clone(&shared.counters),
            last_failure: Arc::clone(&shared.last_failure),
            trial: None,
            head: publish,
            chores: Chores::new(config.retention),
            surveyor: Surveyor::new(survey),
        };
        let span =
            tracing::info_span!(parent: None, "ledger.writer", path = %shared.path.display());
        shared.tasks.spawn(writer.run().instrument(span));
        shared.tasks.close();
        Ok(Self {
            tickets,
            shared: Arc::new(shared),
        })
    }

    /// Records a command that is about to be sent. Its id must be new:
    /// [`LedgerError::Duplicate`].
    pub async fn intend(&self, intent: NewIntent) -> Result<(), LedgerError> {
        self.submit(Change::Intend(intent)).await
    }

    /// Records the fate of a command that was intended:
    /// [`LedgerError::NotIntended`] if it was not. The first word on a command
    /// stands: [`LedgerError::AlreadyConcluded`] for a second.
    pub async fn conclude(&self, fate: NewFate) -> Result<(), LedgerError> {
        self.submit(Change::Conclude(fate)).await
    }

    /// Records a command and its fate at once. Its id must be new:
    /// [`LedgerError::Duplicate`]. Of a read it may also be that of the same
    /// read (device, kind, app and what was asked): it ran again, and its fate
    /// becomes the newest word on it.
    pub async fn record(&self, record: NewRecord) -> Result<(), LedgerError> {
        self.submit(Change::Record(record)).await
    }

    /// Records what was learnt later of a command that has no fate yet, or an
    /// UNKNOWN that is not for good: [`LedgerError::NotIntended`] if it is not
    /// on record, [`LedgerError::AlreadyConcluded`] if its fate stands.
    pub async fn resolve(&self, resolution: NewResolution) -> Result<(), LedgerError> {
        self.submit(Change::Resolve(resolution)).await
    }

    /// Records what was done other than by a command.
    pub async fn operation(&self, operation: NewOperation) -> Result<(), LedgerError> {
        self.submit(Change::Operate(operation)).await
    }

    /// Records what a phone went through.
    pub async fn transition(&self, transition: NewTransition) -> Result<(), LedgerError> {
        self.submit(Change::Move(transition)).await
    }

    /// Replaces all of a phone's settings and records the operation that did,
    /// both or neither. No two phones have one alias:
    /// [`LedgerError::AliasTaken`].
    pub async fn set_device(
        &self,
        settings: DeviceSettings,
        operation: NewOperation,
    ) -> Result<(), LedgerError> {
        self.submit(Change::Set(settings, operation)).await
    }

    /// Writes leases as they are now, records the operations that made them so,
    /// and moves their clock on: all of it or none. An owner's request makes one
    /// lease: [`LedgerError::LeaseRequestTaken`]. A new epoch is higher than all
    /// that were given before: [`LedgerError::EpochTaken`]. What never changes of
    /// a lease stays: [`LedgerError::LeaseMismatch`].
    pub async fn write_leases(&self, write: NewLeaseWrite) -> Result<(), LedgerError> {
        self.submit(Change::Lease(write)).await
    }

    /// The number of the newest event, published after each commit.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.shared.head.clone()
    }

    /// Walks the chain; see [`verify`].
    pub async fn verify(&self, known: Option<Head>) -> Result<VerifyReport, LedgerError> {
        verify(&self.shared.path, known).await
    }

    /// What the writer has done so far.
    pub fn stats(&self) -> LedgerStats {
        self.shared.counters.read()
    }

    /// How the ledger fares. Never waits for the database; what the file system
    /// says of it is asked on a thread of its own, since a disk may hang.
    pub async fn health(&self) -> LedgerHealth {
        let path = Arc::clone(&self.shared.path);
        let place = self.shared.place;
        let (placed, size_bytes, free_bytes) = tokio::task::spawn_blocking(move || {
            let placed = place.check(&path).map_err(sqlx::Error::from);
            (placed, health::size(&path), health::free(&path))
        })
        .await
        .unwrap_or((Ok(()), 0, None));
        let closed = self.tickets.is_closed().then_some(LedgerError::Closed);
        let last_error = closed
            .or_else(|| self.shared.last_failure.get())
            .or_else(|| {
                let misplaced = placed.err()?;
                Some(classify(&self.shared.path, self.shared.patience, misplaced))
            });
        LedgerHealth {
            path: self.shared.path.to_path_buf(),
            writable: last_error.is_none(),
            last_error,
            size_bytes,
            free_bytes,
        }
    }

    /// Takes nothing more, writes what was handed in, and returns when the file
    /// is closed and another gateway may open it.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.tasks.wait().await;
    }

    async fn submit(&self, change: Change) -> Result<(), LedgerError> {
        let entry = Entry {
            at: SystemTime::now(),
            change,
        };
        if let Some(refusal) = entry.change.refusal() {
            return Err(refusal);
        }
        let (answer, answered) = oneshot::channel();
        let ticket = Ticket {
            entry,
            submitted: Instant::now(),
            answer,
        };
        self.tickets
            .send(ticket)
            .await
            .map_err(|_| LedgerError::Closed)?;
        answered.await.map_err(|_| LedgerError::Interrupted)?
    }
}
