//! How many calls one principal may make, and how many of its commands may be
//! under way.
//!
//! Invariant: memory is bounded by the principals of late. One that has not
//! called for as long as a burst takes to grow again is as one that never has,
//! and is forgotten.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use super::clock::RuntimeClock;
use crate::config::LimitsSection;

/// A limiter of rates for each of many.
pub(super) type Keyed<K> =
    RateLimiter<K, HashMapStateStore<K>, RuntimeClock, NoOpMiddleware<Nanos>>;

/// How many principals there are before those that have been idle are looked
/// for.
const SWEEP_AT: usize = 1024;

/// The rates of all principals.
#[derive(Debug)]
pub(super) struct Rates {
    limiter: Keyed<String>,
    clock: RuntimeClock,
    /// How many the last look for idle ones left.
    kept: AtomicUsize,
}

impl Rates {
    pub(super) fn new(limits: &LimitsSection) -> Self {
        let clock = RuntimeClock::default();
        let quota = Quota::per_second(limits.calls_per_second).allow_burst(limits.call_burst);
        Self {
            limiter: RateLimiter::hashmap_with_clock(quota, clock),
            clock,
            kept: AtomicUsize::new(0),
        }
    }

    /// Takes a call; or says after how long one may be taken.
    pub(super) fn take(&self, principal: &str) -> Result<(), Duration> {
        self.sweep();
        self.limiter
            .check_key(&principal.to_owned())
            .map_err(|not_yet| not_yet.wait_time_from(self.clock.now()))
    }

    fn sweep(&self) {
        let kept = self.kept.load(Ordering::Relaxed);
        if self.limiter.len() >= SWEEP_AT.max(2 * kept) {
            self.limiter.retain_recent();
            self.kept.store(self.limiter.len(), Ordering::Relaxed);
        }
    }
}

/// The commands of each principal that have not ended.
#[derive(Debug)]
pub(crate) struct Queued {
    most: usize,
    counts: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// One command's place among those of its principal, until it is dropped.
#[derive(Debug)]
#[must_use = "dropping it gives the place away"]
pub(crate) struct Place {
    principal: Arc<str>,
    counts: Arc<Mutex<HashMap<Arc<str>, usize>>>,
}

/// A principal has as many commands under way as it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany(pub(crate) usize);

impl Queued {
    pub(crate) fn new(limits: &LimitsSection) -> Self {
        Self {
            most: limits.max_queued_commands.get(),
            counts: Arc::default(),
        }
    }

    /// A place for one more.
    pub(crate) fn enter(&self, principal: &str) -> Result<Place, TooMany> {
        let mut counts = lock(&self.counts);
        let principal = match counts.get_key_value(principal) {
            Some((_, count)) if *count >= self.most => return Err(TooMany(self.most)),
            Some((known, _)) => Arc::clone(known),
            None => Arc::from(principal),
        };
        *counts.entry(Arc::clone(&principal)).or_default() += 1;
        drop(counts);
        Ok(Place {
            principal,
            counts: Arc::clone(&self.counts),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.principal);
            }
        }
    }
}

fn lock(counts: &Mutex<HashMap<Arc<str>, usize>>) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
    // Nothing panics between two steps of a change, so that poisoned counts are
    // whole.
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::num::{NonZeroU32, NonZeroUsize};

    use tokio::time::advance;

    use super::*;

    fn limits() -> LimitsSection {
        LimitsSection {
            calls_per_second: NonZeroU32::new(10).unwrap(),
            call_burst: NonZeroU32::new(3).unwrap(),
            max_queued_commands: NonZeroUsize::new(2).unwrap(),
            ..LimitsSection::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_taken_and_then_one_call_at_a_time() {
        let rates = Rates::new(&limits());
        for _ in 0..3 {
            rates.take("token:ci").unwrap();
        }
        let wait = rates.take("token:ci").unwrap_err();
        assert_eq!(wait, Duration::from_millis(100));
        rates.take("token:other").unwrap();
        advance(wait).await;
        rates.take("token:ci").unwrap();
        rates.take("token:ci").unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_been_idle_is_forgotten() {
        let rates = Rates::new(&limits());
        for n in 0..SWEEP_AT {
            rates.take(&n.to_string()).unwrap();
        }
        assert_eq!(rates.limiter.len(), SWEEP_AT);
        advance(Duration::from_secs(60)).await;
        rates.take("token:ci").unwrap();
        assert_eq!(rates.limiter.len(), 1);
    }

    #[test]
    fn a_place_is_free_again_once_its_command_has_ended() {
        let queued = Queued::new(&limits());
        let first = queued.enter("token:ci").unwrap();
        let second = queued.enter("token:ci").unwrap();
        assert_eq!(queued.enter("token:ci").unwrap_err(), TooMany(2));
        let other = queued.enter("token:other").unwrap();
        drop(first);
        let third = queued.enter("token:ci").unwrap();
        drop((second, third, other));
        assert_eq!(lock(&queued.counts).len(), 0);
    }
}
