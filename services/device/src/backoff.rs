//! Pauses that grow from try to try up to a cap, each cut by chance to between
//! half and all of itself, so that those who failed together do not try again
//! together.

use std::time::Duration;

/// The pauses of one run of failures.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    initial: Duration,
    cap: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(initial: Duration, cap: Duration) -> Self {
        Self {
            initial,
            cap,
            next: initial,
        }
    }

    /// How long to pause before the next try.
    pub(crate) fn pause(&mut self) -> Duration {
        let full = self.next.min(self.cap);
        self.next = full.saturating_mul(2);
        full.mul_f64(rand::random_range(0.5..=1.0))
    }

    /// Starts over after a success.
    pub(crate) fn reset(&mut self) {
        self.next = self.initial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn pauses_double_up_to_the_cap_and_keep_at_least_half() {
        let mut backoff = Backoff::new(100 * MS, 500 * MS);
        for full in [100, 200, 400, 500, 500] {
            let pause = backoff.pause();
            assert!(
                pause >= full * MS / 2 && pause <= full * MS,
                "{pause:?} of {full} ms"
            );
        }
        backoff.reset();
        assert!(backoff.pause() <= 100 * MS);
    }

    #[test]
    fn two_who_failed_together_pause_differently() {
        let pauses: std::collections::BTreeSet<_> = (0..50)
            .map(|_| Backoff::new(Duration::from_secs(1), Duration::MAX).pause())
            .collect();
        assert!(pauses.len() > 40, "{pauses:?}");
    }
}
