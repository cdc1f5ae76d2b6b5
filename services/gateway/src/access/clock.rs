//! The clock by which rates are measured: the runtime's, so that a paused test
//! pauses them, too.

use governor::clock::Clock;
use governor::nanos::Nanos;
use tokio::time::Instant;

/// Time since it was made.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuntimeClock(Instant);

impl Default for RuntimeClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for RuntimeClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.elapsed().into()
    }
}
