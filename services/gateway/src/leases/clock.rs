//! The lease clock: counts the time in which a gateway was up to serve leases.
//!
//! It goes on where the ledger says that it stood when the gateway before went,
//! so that an outage takes nothing from a lease, and it runs on a monotonic
//! clock, so that it does not matter what the wall clock is set to. What callers
//! are told in the wall clock's terms is computed when they ask.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_lease::LeaseTime;
use tokio::time::Instant;

/// How far away a moment may be for the monotonic clock to name it.
const FAR: Duration = Duration::from_hours(24 * 365);

/// A running lease clock; copies are the same clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseClock {
    /// How far it had run when this gateway began.
    ran: Duration,
    since: Instant,
}

impl LeaseClock {
    /// Goes on after having run for so long.
    pub(crate) fn resume(ran: Duration) -> Self {
        Self {
            ran,
            since: Instant::now(),
        }
    }

    /// What it shows.
    pub(crate) fn now(&self) -> LeaseTime {
        LeaseTime::new(self.ran.saturating_add(self.since.elapsed()))
    }

    /// When it will show that; now, if it has.
    pub(crate) fn instant(&self, at: LeaseTime) -> Instant {
        Instant::now() + self.until(at).min(FAR)
    }

    /// How long it is until it shows that.
    pub(crate) fn until(&self, at: LeaseTime) -> Duration {
        at.since(self.now())
    }

    /// The same by the wall clock as it is set now.
    pub(crate) fn wall(&self, at: LeaseTime) -> SystemTime {
        let now = SystemTime::now();
        now.checked_add(self.until(at).min(FAR)).unwrap_or(now)
    }
}

/// The wall clock's time as it is written down, in whole milliseconds, so that a
/// lease is told after a restart as it was before.
pub(crate) fn wall_now() -> SystemTime {
    let now = SystemTime::now();
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let rest = Duration::from_nanos((since.subsec_nanos() % 1_000_000).into());
    now.checked_sub(rest).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn at(seconds: u64) -> LeaseTime {
        LeaseTime::new(Duration::from_secs(seconds))
    }

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_where_it_stood() {
        let clock = LeaseClock::resume(Duration::from_secs(100));
        assert_eq!(clock.now(), at(100));
        advance(Duration::from_secs(5)).await;
        assert_eq!(clock.now(), at(105));
        assert_eq!(clock.until(at(110)), Duration::from_secs(5));
        assert_eq!(clock.until(at(50)), Duration::ZERO, "it has been that late");
        let due = clock.instant(at(110));
        assert_eq!(due, Instant::now() + Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn the_wall_clock_only_tells_what_is_left() {
        let clock = LeaseClock::resume(Duration::ZERO);
        let told = clock.wall(at(60));
        let left = told.duration_since(SystemTime::now()).unwrap();
        assert!(left <= Duration::from_secs(60), "{left:?}");
        assert!(left > Duration::from_secs(50), "{left:?}");
    }
}
