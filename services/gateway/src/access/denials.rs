//! Denied calls: who, what and why, on record.
//!
//! ```text
//! refusals ─► queue ─► task ─► flood: which, and how many are left out ─► ledger
//!                └─ full: counted
//! ```
//!
//! Invariant: a refusal waits for none of this, and is given whatever becomes of
//! it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fleetgate_ledger::{Ledger, NewOperation};
use fleetgate_runner::Udid;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span, warn};

use super::Caller;
use super::flood::Flood;
use crate::metrics::Counters;

/// How many denials may wait to be recorded.
const QUEUE: usize = 1024;

/// How many are recorded in one commit.
const TOGETHER: usize = 64;

/// Who has not said who it is, or not so that it is known. No principal is called
/// so.
const UNKNOWN: &str = "unknown";

/// A call that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(super) who: Arc<str>,
    pub(super) method: &'static str,
    pub(super) address: Option<SocketAddr>,
    pub(super) reason: &'static str,
    /// More about the reason, which its caller is not told.
    pub(super) why: Option<String>,
    pub(super) device: Option<Udid>,
    pub(super) lease: Option<String>,
}

impl Denial {
    /// Of a caller that is known, for a reason as it is told to it.
    pub(crate) fn of(caller: &Caller, reason: &'static str) -> Self {
        Self {
            who: caller.principal.name().into(),
            method: caller.method,
            address: caller.address,
            reason,
            why: None,
            device: None,
            lease: None,
        }
    }

    /// Of one that is not, but perhaps was once.
    pub(crate) fn of_one(
        was: Option<&Arc<str>>,
        method: &'static str,
        address: Option<SocketAddr>,
        reason: &'static str,
    ) -> Self {
        Self {
            who: was.map_or_else(|| UNKNOWN.into(), Arc::clone),
            method,
            address,
            reason,
            why: None,
            device: None,
            lease: None,
        }
    }

    /// More about the reason, for operators.
    pub(crate) fn because(self, why: Option<String>) -> Self {
        Self { why, ..self }
    }

    /// The phone that it is about.
    pub(crate) fn device(self, device: &Udid) -> Self {
        let device = Some(device.clone());
        Self { device, ..self }
    }

    /// The lease that it is about.
    pub(crate) fn lease(self, lease: &str) -> Self {
        let lease = Some(lease.to_owned());
        Self { lease, ..self }
    }
}

/// Where denials go. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Denials {
    queue: mpsc::Sender<Denial>,
    lost: Arc<AtomicU64>,
    counters: Counters,
}

/// The task that records them; it ends with this.
#[derive(Debug)]
pub(crate) struct DenialsTask {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Denials {
    pub(crate) fn new(ledger: Ledger, counters: Counters) -> (Self, DenialsTask) {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let lost = Arc::<AtomicU64>::default();
        let stop = CancellationToken::new();
        let recorder = Recorder {
            ledger,
            waiting,
            lost: Arc::clone(&lost),
            flood: Flood::default(),
            stop: stop.clone(),
            is_failing: false,
        };
        let mut task = JoinSet::new();
        task.spawn(recorder.run().instrument(info_span!("denials")));
        let denials = Self {
            queue,
            lost,
            counters,
        };
        (denials, DenialsTask { stop, task })
    }

    /// Counts a denial, and has it recorded.
    pub(crate) fn record(&self, denial: Denial) {
        self.counters.denied(denial.reason);
        if self.queue.try_send(denial).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl DenialsTask {
    /// Records what there is, and nothing more.
    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        // A panic of the task has been reported.
        while self.task.join_next().await.is_some() {}
    }
}

/// The one that records.
#[derive(Debug)]
struct Recorder {
    ledger: Ledger,
    waiting: mpsc::Receiver<Denial>,
    lost: Arc<AtomicU64>,
    flood: Flood,
    stop: CancellationToken,
    is_failing: bool,
}

impl Recorder {
    async fn run(mut self) {
        let mut denials = Vec::with_capacity(TOGETHER);
        loop {
            let due = self.flood.due();
            let due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !self.waiting.is_closed() => self.waiting.close(),
                count = self.waiting.recv_many(&mut denials, TOGETHER) => {
                    if count == 0 {
                        break;
                    }
                    self.take(&mut denials).await;
                }
                () = due => {
                    let entries = self.flood.release(false);
                    self.write(entries).await;
                }
            }
        }
        let entries = self.flood.release(true);
        self.write(entries).await;
    }

    async fn take(&mut self, denials: &mut Vec<Denial>) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0
            && let Some(like) = denials.last()
        {
            self.flood.lost(lost, like.clone());
        }
        let entries = self.flood.take(denials.drain(..));
        self.write(entries).await;
    }

    /// What the ledger does not take is lost: a refusal cannot wait for it.
    async fn write(&mut self, entries: Vec<NewOperation>) {
        let written = entries
            .into_iter()
            .map(|entry| self.ledger.operation(entry));
        for written in join_all(written).await {
            match written {
                Ok(()) => self.is_failing = false,
                Err(error) => {
                    if !self.is_failing {
                        warn!(%error, "denied calls cannot be recorded");
                    }
                    self.is_failing = true;
                }
            }
        }
    }
}
