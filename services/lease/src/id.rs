//! What leases are called and counted by.
//!
//! Refuses names that could not stand in a path, a log line or an environment
//! variable as they are. Invariant: a name that exists is usable; nothing checks
//! it again.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Not the id of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a lease id: expected 1 to {max} letters, digits, dots, hyphens or underscores", max = LeaseId::MAX_LEN)]
pub struct InvalidLeaseId;

/// A lease's id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeaseId(Arc<str>);

impl LeaseId {
    /// The longest id that is taken.
    pub const MAX_LEN: usize = 64;

    /// The id as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for LeaseId {
    type Err = InvalidLeaseId;

    fn from_str(text: &str) -> Result<Self, InvalidLeaseId> {
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if text.is_empty() || text.len() > Self::MAX_LEN || !text.bytes().all(usable) {
            return Err(InvalidLeaseId);
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for LeaseId {
    type Error = InvalidLeaseId;

    fn try_from(text: String) -> Result<Self, InvalidLeaseId> {
        text.parse()
    }
}

impl From<LeaseId> for String {
    fn from(id: LeaseId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeaseId({})", self.0)
    }
}

/// No grant has this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an epoch: the first is 1")]
pub struct InvalidEpoch;

/// The number of a grant, which fences off those before it: of two grants of one
/// phone the later has the higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(NonZeroU64);

impl Epoch {
    /// The number.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl TryFrom<u64> for Epoch {
    type Error = InvalidEpoch;

    fn try_from(number: u64) -> Result<Self, InvalidEpoch> {
        NonZeroU64::new(number).map(Self).ok_or(InvalidEpoch)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How urgent a lease is: higher ones are granted first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Priority(pub i32);

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
