//! The lease clock's time, and how times are written down.
//!
//! The lease clock runs while the gateway is up and has nothing to do with the
//! wall clock: whoever drives the scheduler resumes it where it stopped, so that
//! an outage is added to every deadline. Wall time is kept beside it for people
//! to read; nothing is decided by it.
//!
//! Invariant: both are whole milliseconds once they are written down, and so is
//! a [`LeaseTime`] before that, so that a lease read back ends at the same time.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A time of the lease clock: how long it had run, in whole milliseconds.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LeaseTime(u64);

impl LeaseTime {
    /// When the clock began.
    pub const ZERO: Self = Self(0);

    /// The time when it has run for so long; what is not a whole millisecond is
    /// left out.
    pub fn new(run: Duration) -> Self {
        Self(whole_millis(run))
    }

    /// How long the clock has run.
    pub fn as_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// So much later, or the last time of the clock.
    #[must_use]
    pub fn saturating_add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(whole_millis(span)))
    }

    /// So much earlier, or the beginning.
    #[must_use]
    pub fn saturating_sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(whole_millis(span)))
    }

    /// How much later this is than `earlier`; zero if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for LeaseTime {
    fn from(run: Duration) -> Self {
        Self::new(run)
    }
}

impl fmt::Display for LeaseTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} s", self.0 / 1000, self.0 % 1000)
    }
}

/// The longest that can be written down stands for what is longer.
fn whole_millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A span as milliseconds.
pub(crate) mod span {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(super::whole_millis(*span))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// A time of the wall clock as milliseconds since 1970, negative before.
pub(crate) mod wall {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        to.serialize_i64(match time.duration_since(UNIX_EPOCH) {
            Ok(after) => millis(after),
            Err(before) => -millis(before.duration()),
        })
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let millis = i64::deserialize(from)?;
        let span = Duration::from_millis(millis.unsigned_abs());
        let time = if millis < 0 {
            UNIX_EPOCH.checked_sub(span)
        } else {
            UNIX_EPOCH.checked_add(span)
        };
        time.ok_or_else(|| D::Error::custom("no time of this clock"))
    }
}
