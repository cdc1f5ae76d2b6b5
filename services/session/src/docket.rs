//! The way from the lane to the resolver: doubts, and how many ids the runner
//! has been sent.
//!
//! Invariant: raising a doubt never waits. One for which there is no room is
//! dropped, and keeps nobody waiting; its fate is on record as unknown, and the
//! next session asks again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use crate::hold::Raised;

/// How many doubts may be on their way.
const ROOM: usize = 64;

/// Where doubts are raised; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Docket {
    to: mpsc::Sender<Raised>,
    ids: Ids,
}

/// How many ids the runner has been sent; clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ids(Arc<AtomicU64>);

impl Ids {
    /// So many until now.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Docket {
    /// A docket, the other end of it, and its count.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Raised>, Ids) {
        let (to, doubts) = mpsc::channel(ROOM);
        let ids = Ids::default();
        (
            Self {
                to,
                ids: ids.clone(),
            },
            doubts,
            ids,
        )
    }

    /// The runner is about to be sent another id. How many there are with it.
    pub(crate) fn count_id(&self) -> u64 {
        self.ids.0.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Something is to be looked into.
    pub(crate) fn raise(&self, raised: Raised) {
        if let Err(error) = self.to.try_send(raised) {
            tracing::warn!(%error, "a fate is not looked into any further");
        }
    }
}
