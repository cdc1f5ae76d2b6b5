//! Why a command is not let in, in words and as a code.
//!
//! The codes stand here: as they are told of a command that is refused at its
//! admission, and of one whose leave is withdrawn while it waits.

use std::fmt::Write as _;
use std::time::SystemTime;

use fleetgate_lease::{End, EndReason, Epoch, Lease, LeaseId, LeaseState};
use fleetgate_session::Withdrawn;

use crate::convert::timestamp;

/// Why a command is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// It names no lease and needs one.
    #[error("the device needs a lease, and none is named")]
    Required,
    /// It names no lease, and its caller has one.
    #[error("the device is leased to you, and the command does not name the lease")]
    Unnamed {
        /// Which lease.
        lease: LeaseId,
        /// The number of its grant, if it has one.
        granted: Option<Epoch>,
    },
    /// It names no lease, and somebody else has one.
    #[error("{}", held(owner.as_deref(), *until))]
    HeldByOther {
        /// Who, if that is on record yet.
        owner: Option<String>,
        /// When that ends unless it is renewed.
        until: Option<SystemTime>,
    },
    /// No open lease has this id; the ledger may know one that has ended.
    #[error("no such lease")]
    Unknown(LeaseId),
    /// Somebody else's lease.
    #[error("the lease is somebody else's")]
    NotOwner(LeaseId),
    /// It has not been granted.
    #[error("the lease is {1} and has not been granted")]
    NotActive(LeaseId, LeaseState),
    /// Another grant's number.
    #[error("{}", stale(*granted))]
    EpochStale {
        /// Which lease.
        lease: LeaseId,
        /// The number of its grant, if it has one.
        granted: Option<Epoch>,
    },
    /// A lease of other phones.
    #[error("the lease is not one of this device")]
    OtherDevice(LeaseId),
    /// It has ended.
    #[error("{message}")]
    Ended {
        /// Which lease.
        lease: LeaseId,
        /// How.
        how: EndReason,
        /// The same in words.
        message: String,
    },
}

impl Refused {
    /// It as a code.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Required | Self::Unnamed { .. } => "LEASE_REQUIRED",
            Self::HeldByOther { .. } => "LEASE_HELD_BY_OTHER",
            Self::Unknown(_) => "LEASE_NOT_FOUND",
            Self::NotOwner(_) => "LEASE_NOT_OWNER",
            Self::NotActive(..) => "LEASE_NOT_ACTIVE",
            Self::EpochStale { .. } => "LEASE_EPOCH_STALE",
            Self::OtherDevice(_) => "LEASE_OTHER_DEVICE",
            Self::Ended { how, .. } => code(*how),
        }
    }

    /// What a person may do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Required => "create a lease, and name it and its epoch with the command",
            Self::Unnamed { .. } => "name the lease and its epoch with the command",
            Self::HeldByOther { .. } => "create a lease and wait until it is granted",
            Self::NotActive(..) => "WatchLease tells when it is granted",
            Self::EpochStale { .. } => "GetLease tells the epoch",
            Self::OtherDevice(_) => "GetLease tells which devices it is of",
            Self::Ended { .. } => NEW_ONE,
            Self::Unknown(_) | Self::NotOwner(_) => return None,
        })
    }

    /// The lease that was named, or should have been.
    pub(crate) fn lease(&self) -> Option<&LeaseId> {
        match self {
            Self::Required | Self::HeldByOther { .. } => None,
            Self::Unknown(lease)
            | Self::NotOwner(lease)
            | Self::NotActive(lease, _)
            | Self::OtherDevice(lease)
            | Self::Unnamed { lease, .. }
            | Self::EpochStale { lease, .. }
            | Self::Ended { lease, .. } => Some(lease),
        }
    }

    /// The same for a command that has been let in already, or may have been.
    pub(crate) fn withdrawn(&self) -> Withdrawn {
        Withdrawn {
            reason: self.reason(),
            message: self.to_string(),
            hint: self.hint().map(str::to_owned),
        }
    }
}

const NEW_ONE: &str = "create a new lease";

fn code(how: EndReason) -> &'static str {
    match how {
        EndReason::Released | EndReason::Cancelled => "LEASE_RELEASED",
        EndReason::TtlExpired | EndReason::MaxDuration | EndReason::QueueTimeout => "LEASE_EXPIRED",
        EndReason::Revoked => "LEASE_REVOKED",
        // It never was anybody's.
        EndReason::Unsatisfiable => "LEASE_NOT_ACTIVE",
    }
}

/// What is told of a lease, if it has ended.
pub(crate) fn ended(lease: &Lease) -> Option<Refused> {
    lease.end().map(|end| how_it_ended(lease, end))
}

/// What is told of a lease that has ended.
pub(super) fn how_it_ended(lease: &Lease, end: &End) -> Refused {
    over(lease, end.reason, Some(end))
}

/// What is told of a lease whose end is due, although nothing was done about
/// that yet.
pub(super) fn how_it_ends(lease: &Lease, how: EndReason) -> Refused {
    over(lease, how, None)
}

fn over(lease: &Lease, how: EndReason, end: Option<&End>) -> Refused {
    let mut message = match how {
        EndReason::Released => "the lease was released",
        EndReason::Cancelled => "the lease was released before it was granted",
        EndReason::TtlExpired => "the lease has expired: it was not renewed in time",
        EndReason::MaxDuration => "the lease has expired: it has lasted as long as it may",
        EndReason::QueueTimeout => "the lease has expired before it was granted",
        EndReason::Revoked => "the lease was revoked",
        EndReason::Unsatisfiable => "the lease was never granted: too few devices match",
    }
    .to_owned();
    if let (EndReason::Revoked, Some(End { by, detail, .. })) = (how, end) {
        // Writing to a string does not fail.
        if let Some(by) = by {
            write!(message, " by {by}").ok();
        }
        if let Some(detail) = detail {
            write!(message, ": {detail}").ok();
        }
    }
    Refused::Ended {
        lease: lease.id().clone(),
        how,
        message,
    }
}

fn stale(granted: Option<Epoch>) -> String {
    match granted {
        Some(granted) => format!("the epoch is not that of the lease's grant, {granted}"),
        None => "the lease has no epoch before it is granted".to_owned(),
    }
}

fn held(owner: Option<&str>, until: Option<SystemTime>) -> String {
    let mut told = match owner {
        Some(owner) => format!("{owner} has leased the device"),
        None => "the device is kept for somebody else's lease".to_owned(),
    };
    if let Some(until) = until {
        write!(told, " (until {})", timestamp(until)).ok();
    }
    told
}
