//! How a device's runner fares, as far as the lane can tell from what it hears.
//!
//! ```text
//!             COMMAND_TIMED_OUT, RUNNER_BUSY          RUNNER_WEDGED
//!   READY ───────────────────────────────► DRAINING ───────────────► WEDGED
//!     ▲                                       │                        │
//!     └──── a queued command is executed, or `status` says idle ───────┘
//!           (a runner that has restarted is idle)
//! ```
//!
//! Pure: whoever hears something tells it here, with the time.
//!
//! A command that overran its budget is abandoned and goes on in the runner;
//! until that has ended, nothing else is executed. Whether it ever ends cannot
//! be known, so that a pause is offered in proportion to how long it has taken
//! already, and never past the moment when the runner gives up on itself.

use std::time::Duration;

use tokio::time::Instant;

/// How a device's runner fares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Condition {
    /// As far as is known, it executes what it is sent.
    #[default]
    Ready,
    /// Mutations wait until it is known what became of those of an earlier
    /// session. Reads are carried out.
    Reconciling,
    /// It is busy with a command that it has abandoned, and executes no other.
    Draining {
        /// Since when, as far as is known.
        since: Instant,
    },
    /// It has given up on that, and needs to be recycled.
    Wedged,
}

/// How long abandoned work has been draining, and how long it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drain {
    /// How long it has, as far as is known.
    pub age: Duration,
    /// How long it may until the runner calls itself wedged.
    pub left: Duration,
}

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Drain {
    /// A pause after which it is worth asking again.
    pub fn pause(&self) -> Duration {
        (self.age / 2)
            .min(LONGEST_PAUSE)
            .min(self.left)
            .max(SHORTEST_PAUSE)
    }
}
