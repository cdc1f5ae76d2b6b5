//! Why a lease waits, in the words of those who ask.
//!
//! Owns how it is put. What stands in the way of which phone is the scheduler's
//! to say, by the same rule by which it grants.

use std::fmt;

use fleetgate_runner::Udid;

use crate::id::LeaseId;
use crate::state::LeaseState;
use crate::time::LeaseTime;

/// What stands in the way of a phone that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// Nothing: it is free.
    None,
    /// A lease has it, or had it and drains.
    Leased {
        /// Which.
        lease: LeaseId,
        /// When that one ends at the latest, if it has not.
        until: Option<LeaseTime>,
    },
    /// It is kept for the lease that waits, and commands are on their way there.
    Busy,
    /// It is kept for a lease that is before this one.
    Reserved {
        /// Which.
        lease: LeaseId,
    },
    /// It is unplugged.
    Detached,
    /// It is in quarantine.
    Quarantined,
    /// An operator keeps it back.
    Cordoned,
    /// Its runner is not ready.
    NotReady,
}

/// A phone that matches, and what stands in its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceExplanation {
    /// Which.
    pub udid: Udid,
    /// What.
    pub obstacle: Obstacle,
}

/// Why a lease waits, or that it does not. `Display` is its summary in a line,
/// without times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Where the lease is in its life.
    pub state: LeaseState,
    /// How many phones it wants.
    pub wanted: usize,
    /// Every phone that matches, in the order of their UDIDs.
    pub devices: Vec<DeviceExplanation>,
    /// Those that wait and are before it, the first of them first.
    pub ahead: Vec<LeaseId>,
}

impl Explanation {
    /// Its summary in a line; the times in it are written by `clock`.
    pub fn summary(&self, clock: impl Fn(LeaseTime) -> String) -> String {
        self.write(Some(&clock))
    }

    fn write(&self, _clock: Option<&dyn Fn(LeaseTime) -> String>) -> String {
        format!("{} match, {} wanted", self.devices.len(), self.wanted)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(None))
    }
}
