//! A recorder that remembers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use fleetgate_runner::{CommandId, Fate};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tower::Service;

use crate::record::{Conclusion, Record, RecordError, RecordErrorKind, Resolution};
use crate::testing::id;

/// A recorder that remembers what it was given, and can be told to be slow or
/// to refuse.
#[derive(Debug, Clone)]
pub(crate) struct Ledger(Arc<Shelf>);

#[derive(Debug)]
struct Shelf {
    entries: Mutex<Vec<Record>>,
    known: Mutex<HashSet<CommandId>>,
    /// How many entries of each kind are still refused.
    refusals: Mutex<(usize, usize)>,
    /// How many resolutions are of fates that are known.
    settled: Mutex<usize>,
    open: watch::Sender<bool>,
    changed: watch::Sender<()>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shelf {
            entries: Mutex::default(),
            known: Mutex::default(),
            refusals: Mutex::default(),
            settled: Mutex::default(),
            open: watch::Sender::new(true),
            changed: watch::Sender::new(()),
        }))
    }

    /// Refuses the next so many intents and conclusions.
    pub(crate) fn refuse(&self, intents: usize, conclusions: usize) {
        *self.0.refusals.lock().unwrap() = (intents, conclusions);
    }

    /// Refuses so many resolutions because the fate is known already.
    pub(crate) fn refuse_as_settled(&self, resolutions: usize) {
        *self.0.settled.lock().unwrap() = resolutions;
    }

    /// The last resolution.
    pub(crate) fn resolution(&self) -> Resolution {
        let entries = self.0.entries.lock().unwrap();
        let mut resolutions = entries.iter().rev().filter_map(|record| match record {
            Record::Intent(_) | Record::Concluded(_) => None,
            Record::Resolved(resolution) => Some(Resolution::clone(resolution)),
        });
        resolutions.next().expect("a resolution")
    }

    /// While shut, nothing becomes durable.
    pub(crate) fn set_open(&self, open: bool) {
        self.0.open.send_replace(open);
    }

    /// Every entry as `intent ID` or `fate ID FATE`; `note` instead of `fate` if
    /// there was no intent.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |record: &Record| match record {
            Record::Intent(intent) => format!("intent {}", intent.command_id),
            Record::Concluded(conclusion) => {
                let Conclusion {
                    intended, receipt, ..
                } = &**conclusion;
                let word = if *intended { "fate" } else { "note" };
                format!("{word} {} {:?}", receipt.command_id, receipt.fate)
            }
            Record::Resolved(resolution) => {
                let Resolution {
                    receipt,
                    settled_for_good,
                    ..
                } = &**resolution;
                let word = if *settled_for_good {
                    "for good"
                } else {
                    "so far"
                };
                format!("resolved {} {:?} {word}", receipt.command_id, receipt.fate)
            }
        };
        self.0.entries.lock().unwrap().iter().map(line).collect()
    }

    /// The last conclusion.
    pub(crate) fn conclusion(&self) -> Conclusion {
        let entries = self.0.entries.lock().unwrap();
        let conclusions = entries.iter().rev().filter_map(|record| match record {
            Record::Intent(_) | Record::Resolved(_) => None,
            Record::Concluded(conclusion) => Some(Conclusion::clone(conclusion)),
        });
        conclusions.take(1).next().expect("a conclusion")
    }

    /// Waits until a command's fate is on record.
    pub(crate) async fn fate(&self, name: &str) -> Fate {
        let fate = |record: &Record| match record {
            Record::Concluded(conclusion) if conclusion.receipt.command_id == id(name) => {
                Some(conclusion.receipt.fate)
            }
            Record::Intent(_) | Record::Concluded(_) | Record::Resolved(_) => None,
        };
        let mut changed = self.0.changed.subscribe();
        loop {
            changed.mark_unchanged();
            if let Some(fate) = self.0.entries.lock().unwrap().iter().find_map(fate) {
                return fate;
            }
            changed.changed().await.unwrap();
        }
    }

    fn take(&self, record: Record) -> Result<(), RecordError> {
        let refused = |kind| {
            Err(RecordError {
                kind,
                source: Arc::new(std::fmt::Error),
            })
        };
        let mut refusals = self.0.refusals.lock().unwrap();
        let left = match &record {
            Record::Intent(_) => &mut refusals.0,
            Record::Concluded(_) | Record::Resolved(_) => &mut refusals.1,
        };
        if *left > 0 {
            *left -= 1;
            return refused(RecordErrorKind::Unavailable);
        }
        let mut settled = self.0.settled.lock().unwrap();
        if *settled > 0 && matches!(record, Record::Resolved(_)) {
            *settled -= 1;
            return refused(RecordErrorKind::Duplicate);
        }
        if let Record::Intent(intent) = &record
            && !self
                .0
                .known
                .lock()
                .unwrap()
                .insert(intent.command_id.clone())
        {
            return refused(RecordErrorKind::Duplicate);
        }
        self.0.entries.lock().unwrap().push(record);
        self.0.changed.send_replace(());
        Ok(())
    }
}

impl Service<Record> for Ledger {
    type Response = ();
    type Error = RecordError;
    type Future = BoxFuture<'static, Result<(), RecordError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), RecordError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, record: Record) -> Self::Future {
        let ledger = self.clone();
        Box::pin(async move {
            let mut open = ledger.0.open.subscribe();
            open.wait_for(|open| *open)
                .await
                .expect("the ledger lives as long as this");
            ledger.take(record)
        })
    }
}
