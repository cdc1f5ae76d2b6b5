//! What goes on beside the lane about commands that are over, or seem to be:
//! the task that reconciles, resolves and watches over a runner that is stuck.
//!
//! ```text
//!      one may still be under way
//!        ┌──────────────────────────────┐
//!        ▼                              │
//!   RECONCILING: no mutation is ──► RESOLVING ── closing ──► RECONCILING only
//!   started     known, or abandoned                               │
//!                                                                 │ the lane
//!                                                                 ▼ is gone
//!                                                               DONE
//! ```
//!
//! While the session is closing, what was let in is still carried out, so that
//! it still matters what may be under way. Nothing else is asked then.
//!
//! Invariant: the lane opens for mutations however a reconciliation ends, be it
//! by a panic.

use std::time::Duration;

use fleetgate_runner::{Budgets, Envelope, SendError};
use tokio::sync::mpsc;
use tower::Service;

use crate::dispatch::Dispatch;
use crate::doubt::Doubt;
use crate::gauge::Gauge;
use crate::hold::{Held, Raised};
use crate::inquiry::Inquiry;
use crate::lane::Closing;
use crate::record::{Record, RecordError, Unsettled};
use crate::resolver::Resolver;
use crate::vigil::vigil;

/// What earlier sessions have left, oldest first.
#[derive(Debug)]
pub(crate) struct Legacy {
    /// Mutations that keep the lane shut.
    held: Vec<Held>,
    /// Others, whose fate is on record as unknown.
    over: Vec<Doubt>,
}

impl Legacy {
    /// Sorts out what may still be under way.
    pub(crate) fn new(
        mut unsettled: Vec<Unsettled>,
        budgets: Budgets,
        patience: Duration,
        gauge: &Gauge,
    ) -> Self {
        unsettled.sort_by_key(|mutation| mutation.sent_at);
        let (mut held, mut over) = (Vec::new(), Vec::new());
        for mutation in unsettled {
            let window = budgets.budget(mutation.kind.class()).window;
            match Held::left(Doubt::from(mutation), window, patience, gauge) {
                Raised::Held(one) => held.push(one),
                Raised::Over(doubt) => over.push(doubt),
            }
        }
        Self { held, over }
    }
}

/// The task beside the lane.
#[derive(Debug)]
pub(crate) struct Aftermath<S, R> {
    pub(crate) resolver: Resolver<S, R>,
    pub(crate) doubts: mpsc::Receiver<Raised>,
    pub(crate) inquiry: Inquiry<S>,
    pub(crate) gauge: Gauge,
    pub(crate) budgets: Budgets,
    pub(crate) closing: Closing,
}

impl<S, R> Aftermath<S, R>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
    R: Service<Record, Response = (), Error = RecordError> + Clone,
{
    /// Works until the lane has ended.
    pub(crate) async fn run(self, legacy: Legacy) {
        let Self {
            mut resolver,
            mut doubts,
            inquiry,
            gauge,
            budgets,
            closing,
        } = self;
        let Closing {
            begun,
            abandon,
            gone,
        } = closing;
        let Legacy { held, over } = legacy;
        let work = async {
            // Boxed, as it takes much more room than waiting for it to be needed.
            let reconciliation = Box::pin(resolver.reconcile(held));
            abandon.run_until_cancelled(reconciliation).await;
            for doubt in over {
                Box::pin(resolver.take(doubt)).await;
            }
            loop {
                let looking = resolver.run(&mut doubts);
                let held = match begun.run_until_cancelled(looking).await {
                    Some(held) => held,
                    None => next_held(&mut doubts).await,
                };
                let Some(held) = held else { return };
                let reconciliation = Box::pin(resolver.reconcile(vec![held]));
                abandon.run_until_cancelled(reconciliation).await;
            }
        };
        let watch = vigil(inquiry, gauge, budgets);
        let all = async {
            tokio::select! {
                () = work => {}
                () = watch => {}
            }
        };
        gone.run_until_cancelled(all).await;
    }
}

/// The next mutation that keeps the lane shut. The others are the next
/// session's to look into.
async fn next_held(doubts: &mut mpsc::Receiver<Raised>) -> Option<Held> {
    loop {
        match doubts.recv().await? {
            Raised::Held(held) => return Some(held),
            Raised::Over(_) => {}
        }
    }
}
