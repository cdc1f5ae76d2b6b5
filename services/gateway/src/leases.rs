//! Leases: who may drive which phone.
//!
//! ```text
//! callers ─► asks ─► broker ─► scheduler (pure)
//!                      │ acts
//!                      ├─ close ─────────────► gate ◄─ every command
//!                      └─ changes ─► ledger ─► gate: open, free
//!                                      └─────► board ─► watchers, callers
//! ```
//!
//! One task owns the scheduler. What it has decided counts when it is on record,
//! but for what takes phones away, which counts at once.
//!
//! Invariant: who is told of a lease is told of what is on record.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use fleetgate_lease::{Change, Epoch, LeaseId};
use fleetgate_ledger::{LeasePage, LeaseQuery, LeaseRow, Ledger, LedgerError};
use futures_util::FutureExt;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

mod asked;
mod board;
mod broker;
mod clock;
mod gate;
mod loading;
mod meters;
mod refused;
mod rows;
#[cfg(test)]
mod samples;
mod views;
mod watch;

pub(crate) use asked::Asked;
pub(crate) use board::{Board, LeaseView};
pub(crate) use broker::{Explained, LeaseError, Order};
pub(crate) use clock::{LeaseClock, wall_now};
pub(crate) use gate::{Gate, Named};
pub use loading::LeasesError;
pub(crate) use meters::Meters;
pub(crate) use refused::{Refused, ended};
pub use rows::UnreadableLease;
pub(crate) use rows::mint;
pub(crate) use views::view;
pub(crate) use watch::{Followed, WatchConfig, watch};

use broker::{Ask, Broker, Reply, Surroundings};
use loading::{Loaded, load};
use rows::read;
use watch::Follower;

use crate::feed::Feed;
use crate::fleet::Fleet;

/// How many may wait to be heard; who comes later waits for room.
const QUEUE: usize = 64;

/// How often a request for a lease is looked up again that was somebody's
/// meanwhile.
const LOOKS: usize = 3;

/// How long to wait before each.
const PATIENCE: Duration = Duration::from_secs(1);

/// The leases of a gateway. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    asks: mpsc::Sender<Ask>,
    gate: Gate,
    board: Board,
    ledger: Ledger,
}

/// Leases whose broker has not begun.
#[derive(Debug)]
pub(crate) struct Unbegun {
    loaded: Loaded,
    asks: mpsc::Receiver<Ask>,
    ledger: Ledger,
}

/// The broker's task; it ends with this.
#[derive(Debug)]
pub(crate) struct LeasesTask {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Leases {
    /// Those that are on record as open. Nothing is done about them, and nobody
    /// is heard, before [`Unbegun::begin`].
    pub(crate) async fn load(
        ledger: Ledger,
        required: bool,
    ) -> Result<(Self, Unbegun), LeasesError> {
        let loaded = load(&ledger, required).await?;
        let (asks, asked) = mpsc::channel(QUEUE);
        let leases = Self {
            asks,
            gate: loaded.gate.clone(),
            board: loaded.board.clone(),
            ledger: ledger.clone(),
        };
        let asks = asked;
        let unbegun = Unbegun {
            loaded,
            asks,
            ledger,
        };
        Ok((leases, unbegun))
    }

    /// Who may drive which phone.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The leases that are open.
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// Whether anybody sees to them.
    pub(crate) fn are_seen_to(&self) -> bool {
        !self.asks.is_closed()
    }

    /// The clock by which they end.
    pub(crate) fn clock(&self) -> LeaseClock {
        self.gate.clock()
    }

    /// Makes a lease, or gives the one that the same request has made before.
    pub(crate) async fn create(&self, order: Order) -> Reply {
        let mut last = LeaseError::LookAgain;
        let mut head = self.ledger.watch();
        for look in 0..LOOKS {
            if look > 0 {
                // Until whatever became of it is on record.
                timeout(PATIENCE, head.changed()).await.ok();
            }
            // Before the look, so that no change after it is missed.
            head.mark_unchanged();
            if let Some(before) = self.made_before(&order).await? {
                return Ok(before);
            }
            let order = Box::new(order.clone());
            match self.ask(|to| Ask::Create(order, to)).await {
                Err(
                    again @ (LeaseError::LookAgain
                    | LeaseError::Ledger(LedgerError::LeaseRequestTaken { .. })),
                ) => last = again,
                answer => return answer,
            }
        }
        Err(last)
    }

    /// The lease that is on record for an order's request.
    async fn made_before(&self, order: &Order) -> Result<Option<LeaseView>, LeaseError> {
        let Some(request_id) = &order.request_id else {
            return Ok(None);
        };
        let owner = &order.lease.owner;
        let Some(row) = self.ledger.lease_by_request(owner, request_id).await? else {
            return Ok(None);
        };
        let (view, origin) = self.told(&row)?;
        let fields = origin.asked.map(|before| before.differing(&order.asked));
        match fields {
            Some(fields) if !fields.is_empty() => Err(LeaseError::Differs { fields }),
            Some(_) | None => Ok(Some(view)),
        }
    }

    /// Keeps a lease for another ttl.
    pub(crate) async fn renew(&self, id: LeaseId, owner: String, epoch: Option<Epoch>) -> Reply {
        let renew = |to| Ask::Renew {
            id,
            owner,
            epoch,
            to,
        };
        self.ask(renew).await
    }

    /// Changes what may be changed of one.
    pub(crate) async fn update(&self, id: LeaseId, owner: String, change: Change) -> Reply {
        let update = |to| Ask::Update {
            id,
            owner,
            change,
            to,
        };
        self.ask(update).await
    }

    /// Ends an owner's lease.
    pub(crate) async fn release(&self, id: LeaseId, owner: String) -> Reply {
        self.ask(|to| Ask::Release { id, owner, to }).await
    }

    /// Ends somebody's lease, and what is under way by it if that is wanted now.
    pub(crate) async fn revoke(&self, id: LeaseId, by: String, reason: String, now: bool) -> Reply {
        let revoke = |to| Ask::Revoke {
            id,
            by,
            reason,
            now,
            to,
        };
        self.ask(revoke).await
    }

    /// Why an open lease waits; `None` if it is not open.
    pub(crate) async fn explain(&self, id: LeaseId) -> Result<Option<Explained>, LeaseError> {
        let (to, told) = oneshot::channel();
        let ask = Ask::Explain { id, to };
        self.asks.send(ask).await.map_err(|_| LeaseError::Closed)?;
        told.await.map_err(|_| LeaseError::Closed)
    }

    /// A lease, open or not, if there ever was one of this id.
    pub(crate) async fn find(&self, id: &LeaseId) -> Result<Option<LeaseView>, LeaseError> {
        if let Some(view) = self.board.get(id) {
            return Ok(Some(view));
        }
        match self.ledger.lease(id.as_str()).await? {
            Some(row) => Ok(Some(self.told(&row)?.0)),
            None => Ok(None),
        }
    }

    /// A lease to be followed, if there ever was one of this id.
    pub(crate) async fn follow(&self, id: &LeaseId) -> Result<Option<Followed>, LeaseError> {
        if let Some(bulletin) = self.board.follow(id) {
            return Ok(Some(Followed::Open(Follower(bulletin))));
        }
        Ok(self.find(id).await?.map(Followed::Ended))
    }

    /// Why somebody was refused, by what the ledger knows of the lease that was
    /// named, if it is not open.
    pub(crate) async fn as_known(&self, refused: Refused, principal: &str) -> Refused {
        let Refused::Unknown(id) = &refused else {
            return refused;
        };
        match self.find(id).await {
            Ok(Some(view)) if view.lease.owner() != principal => Refused::NotOwner(id.clone()),
            Ok(Some(view)) => ended(&view.lease).unwrap_or(refused),
            Ok(None) => refused,
            Err(error) => {
                warn!(%error, "a lease that has ended cannot be looked up");
                refused
            }
        }
    }

    /// One page of leases, the newest first.
    pub(crate) async fn page(
        &self,
        query: LeaseQuery,
    ) -> Result<(Vec<LeaseView>, Option<fleetgate_ledger::PageToken>), LeaseError> {
        let LeasePage { leases, next } = self.ledger.leases(query).await?;
        let views = leases.iter().map(|row| Ok(self.told(row)?.0));
        let views = views.collect::<Result<_, LeaseError>>()?;
        Ok((views, next))
    }

    /// A lease on record, as it is by now if it is open.
    fn told(&self, row: &LeaseRow) -> Result<(LeaseView, rows::Origin), LeaseError> {
        let (lease, origin) = read(row).map_err(|error| LeaseError::Unreadable(Arc::new(error)))?;
        let live = self.board.get(lease.id());
        let view = live.unwrap_or(LeaseView {
            lease,
            position: None,
        });
        Ok((view, origin))
    }

    async fn ask(&self, ask: impl FnOnce(oneshot::Sender<Reply>) -> Ask) -> Reply {
        let (to, answer) = oneshot::channel();
        let asked = self.asks.send(ask(to)).await;
        asked.map_err(|_| LeaseError::Closed)?;
        answer.await.map_err(|_| LeaseError::Closed)?
    }
}

impl Unbegun {
    /// Goes on with the leases that are open, and hears callers. When this
    /// returns no phone is let have by anybody but its holder. `gave_up` is
    /// cancelled if leases stand still for ever, by a fault of this program.
    pub(crate) fn begin(
        self,
        fleet: Fleet,
        feed: Feed,
        meters: Meters,
        max_open: usize,
        gave_up: CancellationToken,
    ) -> LeasesTask {
        let Self {
            loaded,
            asks,
            ledger,
        } = self;
        let stop = CancellationToken::new();
        let around = Surroundings {
            ledger,
            fleet,
            feed,
            meters,
            max_open,
        };
        let broker = Broker::new(loaded, around, asks, stop.clone());
        let mut task = JoinSet::new();
        let work = watched(broker.run(), gave_up);
        task.spawn(work.instrument(info_span!("leases")));
        LeasesTask { stop, task }
    }
}

/// Does work that nothing else could go on with, and says so if it breaks off.
/// What has been decided by then and is not on record is lost with it: whoever
/// goes on starts from the ledger.
async fn watched(work: impl Future<Output = ()>, broken: CancellationToken) {
    if AssertUnwindSafe(work).catch_unwind().await.is_err() {
        error!("the task that sees to leases has panicked: the gateway is to be started again");
        broken.cancel();
    }
}

impl LeasesTask {
    /// Puts on record how things are, and hears nobody any more. Leases do not
    /// end with it.
    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_breaks_off_is_told_of_and_work_that_ends_is_not() {
        let ended = CancellationToken::new();
        watched(async {}, ended.clone()).await;
        assert!(!ended.is_cancelled());
        let broken = CancellationToken::new();
        let work = async { panic!("on purpose") };
        watched(work, broken.clone()).await;
        assert!(broken.is_cancelled());
    }
}
