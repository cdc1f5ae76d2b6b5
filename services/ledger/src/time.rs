//! Times and durations as the database holds them: whole microseconds.
//!
//! Nothing here fails: what lies outside an `i64` is held at its end, since a
//! clock that is wrong must not keep a fate from being written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds, held at the end of the range.
pub(crate) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Microseconds since the epoch; what is before it counts as the epoch.
pub(crate) fn since_epoch(time: SystemTime) -> i64 {
    micros(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// The first whole microsecond that is not before `time`. A bound of a range
/// must be rounded up, since the times that it is compared with were rounded
/// down.
pub(crate) fn bound(time: SystemTime) -> i64 {
    since_epoch(time.checked_add(Duration::from_nanos(999)).unwrap_or(time))
}

/// The reverse of [`micros`]; what is negative counts as nothing.
pub(crate) fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// The reverse of [`since_epoch`].
pub(crate) fn system_time(micros: i64) -> SystemTime {
    UNIX_EPOCH
        .checked_add(duration(micros))
        .unwrap_or(UNIX_EPOCH)
}
