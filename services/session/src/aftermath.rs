//! What goes on beside the lane about commands that are over: the task that
//! reconciles at the start, resolves afterwards and watches over a runner that
//! is stuck.
//!
//! ```text
//!   RECONCILING: no mutation is started ── done, or abandoned ──► RESOLVING ──┐
//!                                                                     closing │
//!                                                                             ▼
//!                                                                           DONE
//! ```
//!
//! Invariant: the lane opens for mutations however the reconciliation ends, be
//! it by a panic.

use std::time::Duration;

use fleetgate_runner::{Budgets, Envelope, SendError};
use tokio::sync::mpsc;
use tower::Service;

use crate::condition::Gauge;
use crate::dispatch::Dispatch;
use crate::doubt::Doubt;
use crate::inquiry::Inquiry;
use crate::lane::Closing;
use crate::record::{Record, RecordError, Unsettled};
use crate::resolver::Resolver;
use crate::vigil::vigil;

/// What earlier sessions have left, oldest first.
#[derive(Debug)]
pub(crate) struct Legacy {
    /// Mutations without a fate on record.
    left_open: Vec<Doubt>,
    /// Mutations whose fate is on record as unknown.
    unknown: Vec<Doubt>,
}

impl From<Vec<Unsettled>> for Legacy {
    fn from(mut unsettled: Vec<Unsettled>) -> Self {
        unsettled.sort_by_key(|mutation| mutation.sent_at);
        let (unknown, left_open): (Vec<_>, Vec<_>) = unsettled
            .into_iter()
            .partition(|mutation| mutation.has_fate);
        let doubts = |mutations: Vec<Unsettled>| mutations.into_iter().map(Doubt::from).collect();
        Self {
            left_open: doubts(left_open),
            unknown: doubts(unknown),
        }
    }
}

impl Legacy {
    /// True if nothing keeps the lane shut.
    pub(crate) fn is_clear(&self) -> bool {
        self.left_open.is_empty()
    }
}

/// The task beside the lane.
#[derive(Debug)]
pub(crate) struct Aftermath<S, R> {
    pub(crate) resolver: Resolver<S, R>,
    pub(crate) doubts: mpsc::Receiver<Doubt>,
    pub(crate) inquiry: Inquiry<S>,
    pub(crate) gauge: Gauge,
    pub(crate) budgets: Budgets,
    /// How long a reconciliation may take.
    pub(crate) patience: Duration,
    pub(crate) closing: Closing,
}

/// Opens the lane when it is dropped.
struct Opening(Gauge);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.reconciled();
    }
}

impl<S, R> Aftermath<S, R>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    /// Works until the session is closing.
    pub(crate) async fn run(self, legacy: Legacy) {
        let Self {
            mut resolver,
            doubts,
            inquiry,
            gauge,
            budgets,
            patience,
            closing,
        } = self;
        let Legacy { left_open, unknown } = legacy;
        let opening = Opening(gauge.clone());
        let reconciliation = resolver.reconcile(left_open, patience);
        closing.abandon.run_until_cancelled(reconciliation).await;
        drop(opening);
        let work = async {
            for doubt in unknown {
                resolver.take(doubt).await;
            }
            tokio::select! {
                () = resolver.run(doubts) => {}
                () = vigil(inquiry, gauge, budgets) => {}
            }
        };
        closing.closing.run_until_cancelled(work).await;
    }
}
