//! The leases that an earlier gateway left open.
//!
//! Invariant: an outage takes nothing from a lease. Only one that has not begun
//! goes by the wall clock, since that is how its beginning was asked for.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use fleetgate_lease::{Lease, LeaseId};
use fleetgate_ledger::{Ledger, LedgerError};

use super::board::Board;
use super::clock::LeaseClock;
use super::gate::Gate;
use super::rows::{Origin, UnreadableLease, read};

/// Why leases cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum LeasesError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// What it says of one cannot be.
    #[error(transparent)]
    Unreadable(#[from] UnreadableLease),
}

/// What was left open.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) gate: Gate,
    pub(super) board: Board,
    pub(super) open: Vec<Lease>,
    pub(super) last_epoch: u64,
    pub(super) origins: HashMap<LeaseId, Origin>,
}

/// Reads what was left open, and starts the clock.
pub(super) async fn load(ledger: &Ledger, required: bool) -> Result<Loaded, LeasesError> {
    let fleetgate_ledger::LeaseClock { clock, last_epoch } = ledger.lease_clock().await?;
    let rows = ledger.open_leases().await?;
    let clock = LeaseClock::resume(clock);
    let (gate, board) = (Gate::new(required, clock), Board::default());
    let (mut open, mut origins) = (Vec::new(), HashMap::new());
    for row in rows {
        let (lease, origin) = read(&row)?;
        let lease = resumed(lease, clock, SystemTime::now());
        gate.tell(Arc::clone(&lease));
        board.resume(Arc::clone(&lease));
        origins.insert(lease.id().clone(), origin);
        open.push(Arc::unwrap_or_clone(lease));
    }
    Ok(Loaded {
        gate,
        board,
        open,
        last_epoch,
        origins,
    })
}

/// A lease by a clock that stood still for a while.
fn resumed(lease: Arc<Lease>, clock: LeaseClock, wall: SystemTime) -> Arc<Lease> {
    let Some(begin) = lease.begin() else {
        return lease;
    };
    let left = begin.time.duration_since(wall).unwrap_or_default();
    let mut lease = Arc::unwrap_or_clone(lease);
    lease.begin_at(clock.now().saturating_add(left));
    Arc::new(lease)
}
