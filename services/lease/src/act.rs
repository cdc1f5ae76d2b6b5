//! What the scheduler is told, and what it wants done about it.
//!
//! Whoever drives it carries the acts of a step out in their order, and those of
//! one step before those of the next:
//!
//! - [`Act::Close`] at once, before anything is written;
//! - [`Act::Changed`] by putting the lease on record: the changes of a step may
//!   go into one commit, in their order, of which the last of a lease counts;
//! - [`Act::Open`] and [`Act::Free`] once the changes before them are on record.
//!
//! A phone that is free and kept for the next lease in the same step is closed
//! for that one and not freed in between.
//!
//! What the scheduler guarantees of them: a phone is opened for a lease only
//! after it was closed for it and was said to be idle since, and after the grant
//! was changed; it is freed only after the end of the lease that it was closed
//! for, or when that one no longer wants it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fleetgate_runner::Udid;

use crate::id::{LeaseId, Priority};
use crate::lease::{Lease, NewLease};
use crate::state::EndReason;
use crate::wants::DeviceView;

/// What the scheduler is told.
#[derive(Debug, Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "few are on their way at once, and none is kept"
)]
pub enum Input {
    /// Somebody wants phones.
    Create(NewLease),
    /// An owner keeps a lease for another ttl. Without effect on one that waits.
    Renew {
        /// Which.
        id: LeaseId,
    },
    /// An owner changes a lease.
    Update {
        /// Which.
        id: LeaseId,
        /// What of it.
        change: Change,
    },
    /// Somebody ends a lease. One that has ended stays as it is.
    End {
        /// Which.
        id: LeaseId,
        /// [`EndReason::Released`], which is [`EndReason::Cancelled`] before the
        /// grant, or [`EndReason::Revoked`]. The others are the scheduler's to
        /// find.
        how: EndReason,
        /// Who.
        by: Option<String>,
        /// Why, in words.
        detail: Option<String>,
    },
    /// Phones as they are now; the others are as they were.
    Devices(Vec<DeviceView>),
    /// Nothing is in flight or queued any more on a phone that was closed: the
    /// answer to the last [`Act::Close`] of it.
    Idle {
        /// Which.
        device: Udid,
    },
    /// The phones of a lease are open to its holder, which is the answer to the
    /// last of its [`Act::Open`]: its time runs from now on. Without effect on
    /// any other.
    Opened {
        /// Which.
        id: LeaseId,
    },
    /// Time has passed.
    Tick,
}

/// What is to be changed of a lease. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// From now on, also for the current term, which begins again.
    pub ttl: Option<Duration>,
    /// Counted from when its phones were opened to it.
    pub max_duration: Option<Duration>,
    /// Only before the grant.
    pub priority: Option<Priority>,
    /// Labels to set.
    pub set_labels: BTreeMap<String, String>,
    /// Labels to remove, before those are set.
    pub remove_labels: BTreeSet<String>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Let nobody else in, at once: the phone is kept for a lease, or its lease
    /// has ended. To be answered with [`Input::Idle`] when nothing is in flight
    /// or queued there. A phone's next `Close` or [`Act::Free`] withdraws the
    /// question: an answer to the one before must not be given any more.
    Close(Udid, LeaseId),
    /// A lease has changed, which is to be put on record.
    Changed(Box<Lease>, What),
    /// The holder of a lease may drive the phone. Once all of its phones are open,
    /// to be answered with [`Input::Opened`]: its time does not run before.
    Open(Udid, LeaseId),
    /// The phone is nobody's again.
    Free(Udid),
}

/// What has changed of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// It is new.
    Created,
    /// Its phones are its owner's.
    Granted,
    /// Its time runs.
    Opened,
    /// It was kept for another ttl.
    Renewed,
    /// Its owner changed it.
    Updated,
    /// Its time to begin came.
    Queued,
    /// It has ended for its owner.
    Draining,
    /// It has ended.
    Ended,
}

/// Why something was not done. Nothing has changed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// No open lease has this id.
    #[error("no such lease is open")]
    NotFound,
    /// The lease has ended, also if it still drains.
    #[error("the lease has ended: {0}")]
    Ended(EndReason),
    /// What it wants counts only before the grant, which was made.
    #[error("the lease does not wait any more")]
    NotWaiting,
    /// It makes no sense.
    #[error("{0}")]
    Unusable(&'static str),
}
