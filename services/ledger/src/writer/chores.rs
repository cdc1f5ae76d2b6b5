//! What the writer does for the ledger itself, a step at a time between batches.
//!
//! ```text
//! wait for the interval ─► prune ─┬► prune … ─► note it ─► shrink ─► shrink … ─┐
//!   ▲                             └ nothing ───────────────► shrink            │
//!   └──────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A step takes some tens of milliseconds at most, and entries that wait are
//! written before the next one. One that fails ends the run; the next interval
//! tries again.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tokio::time::Instant;

use super::Writer;
use crate::batch::{self, CommitError};
use crate::config::RetentionConfig;
use crate::entry::{Change, Entry, NewOperation};
use crate::retention::{self, Step};
use crate::space;

/// Where the writer is with its chores.
#[derive(Debug)]
pub(crate) struct Chores {
    config: RetentionConfig,
    next: Instant,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    /// With what this run has removed so far.
    Prune {
        commands: i64,
        leases: i64,
    },
    Shrink,
}

impl Stage {
    const BEGIN: Self = Self::Prune {
        commands: 0,
        leases: 0,
    };
}

impl Chores {
    /// `None` if there are none to do.
    pub(crate) fn new(config: RetentionConfig) -> Option<Self> {
        (config.max_age.is_some() || config.max_bytes.is_some()).then(|| Self {
            config,
            next: Instant::now(),
            stage: Stage::BEGIN,
        })
    }

    /// Whether it is time for the next step.
    pub(super) fn due(&self) -> bool {
        self.next <= Instant::now()
    }

    /// When the next step is to be done.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    fn rest(&mut self) {
        // Never at once, whatever the configuration says: entries go first.
        let interval = self.config.interval.max(Duration::from_millis(1));
        self.next = Instant::now() + interval;
        self.stage = Stage::BEGIN;
    }
}

impl Writer {
    /// Does the next step of its chores if it is time.
    pub(super) async fn tidy(&mut self) {
        let Some(mut chores) = self.chores.take_if(|chores| chores.due()) else {
            return;
        };
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => self.options.connect().await,
        };
        match connection {
            Ok(mut connection) => match self.chore(&mut chores, &mut connection).await {
                Ok(()) => self.connection = Some(connection),
                Err(CommitError { error, spoiled }) => {
                    tracing::warn!(%error, "the ledger could not be pruned; it is tried again later");
                    chores.rest();
                    if !spoiled {
                        self.connection = Some(connection);
                    } else if let Err(closing) = connection.close().await {
                        tracing::debug!(error = %closing, "a failed connection did not close cleanly");
                    }
                }
            },
            Err(error) => {
                tracing::warn!(%error, "the ledger could not be pruned; it is tried again later");
                chores.rest();
            }
        }
        self.chores = Some(chores);
    }

    async fn chore(
        &self,
        chores: &mut Chores,
        connection: &mut SqliteConnection,
    ) -> Result<(), CommitError> {
        match chores.stage {
            Stage::Prune { commands, leases } => {
                match retention::step(connection, &chores.config, SystemTime::now()).await? {
                    Step::Removed(removed) => {
                        let (gone, ended) = (removed.commands, removed.leases);
                        self.counters
                            .pruned(gone.unsigned_abs(), ended.unsigned_abs());
                        if let Some(head) = removed.head {
                            self.publish(head);
                        }
                        chores.stage = Stage::Prune {
                            commands: commands + gone,
                            leases: leases + ended,
                        };
                        return Ok(());
                    }
                    Step::Nothing => {}
                    Step::Broken(broken) => tracing::error!(
                        %broken,
                        "the ledger was tampered with, so nothing of it is removed: verify it"
                    ),
                }
                if commands > 0 || leases > 0 {
                    let note = note(&chores.config, commands, leases);
                    let committed = batch::commit(connection, &[&note]).await?;
                    self.publish(committed.written.head);
                }
                chores.stage = Stage::Shrink;
            }
            Stage::Shrink => {
                if !space::shrink(connection).await? {
                    chores.rest();
                }
            }
        }
        Ok(())
    }
}

/// The operation that a run leaves behind.
fn note(config: &RetentionConfig, commands: i64, leases: i64) -> Entry {
    let seconds = |age: Duration| Value::from(age.as_secs());
    let detail: Map<String, Value> = [
        ("commands", commands.into()),
        ("leases", leases.into()),
        ("maxAgeSeconds", config.max_age.map_or(Value::Null, seconds)),
        (
            "maxBytes",
            config.max_bytes.map_or(Value::Null, Value::from),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect();
    Entry {
        at: SystemTime::now(),
        change: Change::Operate(NewOperation {
            who: "ledger".to_owned(),
            what: "prune".to_owned(),
            target: None,
            detail,
        }),
    }
}
