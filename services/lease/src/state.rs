//! Where a lease is in its life, and why it ended.
//!
//! Owns the words that stand in the ledger and in the API. Invariant: a word
//! stands for one state for ever.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a lease is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LeaseState {
    /// Its time to begin has not come.
    Scheduled,
    /// It waits for its phones.
    Queued,
    /// Its phones are its owner's.
    Active,
    /// It has ended for its owner; what was in flight runs to its verdict.
    Draining,
    /// Its owner gave it back.
    Released,
    /// One of its times ran out.
    Expired,
    /// Somebody else ended it.
    Revoked,
    /// Its owner gave it back before it was granted.
    Cancelled,
    /// Fewer phones match than it wants.
    Unsatisfiable,
}

impl LeaseState {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "SCHEDULED",
            Self::Queued => "QUEUED",
            Self::Active => "ACTIVE",
            Self::Draining => "DRAINING",
            Self::Released => "RELEASED",
            Self::Expired => "EXPIRED",
            Self::Revoked => "REVOKED",
            Self::Cancelled => "CANCELLED",
            Self::Unsatisfiable => "UNSATISFIABLE",
        }
    }

    /// Whether anything may still happen to it.
    pub fn is_open(self) -> bool {
        match self {
            Self::Scheduled | Self::Queued | Self::Active | Self::Draining => true,
            Self::Released
            | Self::Expired
            | Self::Revoked
            | Self::Cancelled
            | Self::Unsatisfiable => false,
        }
    }
}

impl fmt::Display for LeaseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a lease ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndReason {
    /// Its owner gave it back.
    Released,
    /// It was not kept alive.
    TtlExpired,
    /// It has lived for as long as it may.
    MaxDuration,
    /// It has waited for as long as it may.
    QueueTimeout,
    /// Somebody else ended it.
    Revoked,
    /// Its owner gave it back before it was granted.
    Cancelled,
    /// Fewer phones match than it wants.
    Unsatisfiable,
}

impl EndReason {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Released => "RELEASED",
            Self::TtlExpired => "TTL_EXPIRED",
            Self::MaxDuration => "MAX_DURATION",
            Self::QueueTimeout => "QUEUE_TIMEOUT",
            Self::Revoked => "REVOKED",
            Self::Cancelled => "CANCELLED",
            Self::Unsatisfiable => "UNSATISFIABLE",
        }
    }

    /// The state that a lease ends in.
    pub fn state(self) -> LeaseState {
        match self {
            Self::Released => LeaseState::Released,
            Self::TtlExpired | Self::MaxDuration | Self::QueueTimeout => LeaseState::Expired,
            Self::Revoked => LeaseState::Revoked,
            Self::Cancelled => LeaseState::Cancelled,
            Self::Unsatisfiable => LeaseState::Unsatisfiable,
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
