//! What goes on in a lane, as others see it, and how they keep it from going on.
//!
//! ```text
//!             start, unless paused
//!   nothing ───────────────────────► in flight
//!      ▲                                │
//!      └────────── Flight dropped ──────┘
//! ```
//!
//! Whether anything may start and that something has are one step under one
//! lock. So whoever pauses and then finds nothing in flight knows that nothing
//! is, and that nothing will be.
//!
//! Invariants:
//!
//! - While a [`Pause`] lives nothing starts, and what is in flight goes on.
//! - A [`Pause`] or a [`Flight`] that is dropped, by whatever accident, is over.

use std::sync::Arc;

use fleetgate_runner::{CommandId, Point};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::condition::Condition;
use crate::queue::{Gate, Queue};
use crate::turn::Turn;

/// How busy a device is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Load {
    /// Commands that wait for their turn.
    pub queued: usize,
    /// The command whose turn it is.
    pub in_flight: Option<CommandId>,
    /// How its runner fares.
    pub condition: Condition,
}

/// One lane's traffic; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Traffic(Arc<watch::Sender<Flow>>);

#[derive(Debug, Default)]
struct Flow {
    queued: usize,
    in_flight: Option<CommandId>,
    pauses: usize,
}

/// While there is one, nothing that is queued starts. What is asked for
/// meanwhile waits, in order, until its deadline.
#[derive(Debug)]
#[must_use = "dropping it ends the pause"]
pub struct Pause(Traffic);

impl Drop for Pause {
    fn drop(&mut self) {
        self.0
            .0
            .send_modify(|flow| flow.pauses = flow.pauses.saturating_sub(1));
    }
}

/// Something is in flight.
#[derive(Debug)]
pub(crate) struct Flight(Traffic);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.0.send_modify(|flow| flow.in_flight = None);
    }
}

impl Traffic {
    /// From now on nothing starts.
    pub(crate) fn pause(&self) -> Pause {
        self.0.send_modify(|flow| flow.pauses += 1);
        Pause(self.clone())
    }

    /// True while nothing starts.
    pub(crate) fn is_paused(&self) -> bool {
        self.0.borrow().pauses > 0
    }

    /// Waits until that is so, or is not.
    pub(crate) async fn until_paused_is(&self, paused: bool) {
        self.until(|flow| (flow.pauses > 0) == paused).await;
    }

    /// Waits until nothing is in flight.
    pub(crate) async fn until_idle(&self) {
        self.until(|flow| flow.in_flight.is_none()).await;
    }

    /// Starts what is next in the queue, as far as the gate and the pauses let
    /// it.
    pub(crate) fn start<W>(
        &self,
        queue: &mut Queue<W>,
        gate: Gate,
        gone: impl Fn(&W) -> bool,
    ) -> Option<(Turn<Point>, Flight)> {
        let mut started = None;
        self.0.send_if_modified(|flow| {
            let gate = if flow.pauses > 0 { Gate::Shut } else { gate };
            started = queue.start(Instant::now(), gate, gone);
            let Some(turn) = &started else { return false };
            flow.in_flight = Some(turn.command_id.clone());
            flow.queued = queue.len();
            true
        });
        started.map(|turn| (turn, Flight(self.clone())))
    }

    /// So many wait.
    pub(crate) fn set_queued(&self, queued: usize) {
        self.0.send_if_modified(|flow| {
            let changed = flow.queued != queued;
            flow.queued = queued;
            changed
        });
    }

    /// What goes on, of a runner that fares so.
    pub(crate) fn load(&self, condition: Condition) -> Load {
        let flow = self.0.borrow();
        Load {
            queued: flow.queued,
            in_flight: flow.in_flight.clone(),
            condition,
        }
    }

    async fn until(&self, holds: impl FnMut(&Flow) -> bool) {
        let mut flow = self.0.subscribe();
        // Cannot fail: the sender lives as long as this.
        flow.wait_for(holds).await.ok();
    }
}

#[cfg(test)]
mod tests;
