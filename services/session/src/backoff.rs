//! Pauses that double up to a cap. Pure: whoever takes a pause also sleeps it.

use std::time::Duration;

/// The pauses of one series of attempts.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    next: Duration,
    cap: Duration,
}

impl Backoff {
    /// Starts at `first` and never exceeds `cap`.
    pub(crate) fn new(first: Duration, cap: Duration) -> Self {
        Self {
            next: first.min(cap),
            cap,
        }
    }

    /// The next pause.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = self.next.saturating_mul(2).min(self.cap);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_cap() {
        let mut backoff = Backoff::new(Duration::from_millis(300), Duration::from_secs(2));
        let pauses: Vec<_> = (0..5).map(|_| backoff.pause().as_millis()).collect();
        assert_eq!(pauses, [300, 600, 1200, 2000, 2000]);
    }
}
