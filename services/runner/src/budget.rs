//! The time that a command may take, on the runner and on its client.
//!
//! The runner abandons a command that overruns its budget and says so at once.
//! The client's window covers one whole attempt, connecting included, and must
//! outlast the budget, or it would throw that verdict away. [`TABLE`] is the
//! only place where these numbers stand, and it does not compile otherwise.

use std::time::Duration;

/// Commands that share a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CommandClass {
    /// Typing text.
    Type,
    /// Tap, long press and drag.
    Gesture,
    /// The accessibility tree.
    Snapshot,
    /// Everything else.
    Other,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// After this the runner abandons the command.
    pub runner: Duration,
    /// After this the client gives up on one attempt.
    pub window: Duration,
}

const fn row(runner_secs: u64, window_secs: u64) -> Budget {
    Budget {
        runner: Duration::from_secs(runner_secs),
        window: Duration::from_secs(window_secs),
    }
}

/// Every budget and window, in the order of [`CommandClass`].
pub const TABLE: [(CommandClass, Budget); 4] = [
    (CommandClass::Type, row(55, 60)),
    (CommandClass::Gesture, row(75, 90)),
    (CommandClass::Snapshot, row(30, 45)),
    (CommandClass::Other, row(30, 45)),
];

/// The window of a status request that asks for the fate of a lost command.
pub const RECOVERY_WINDOW: Duration = Duration::from_secs(3);

/// The window of a status request that asks whether a runner is up.
pub const READINESS_WINDOW: Duration = Duration::from_secs(2);

/// How long abandoned work may drain before the runner calls itself wedged.
pub const WEDGE_THRESHOLD: Duration = Duration::from_secs(120);

const _: () = {
    let mut at = 0;
    while at < TABLE.len() {
        let (class, budget) = TABLE[at];
        assert!(
            budget.window.as_nanos() > budget.runner.as_nanos(),
            "a window must outlast its budget"
        );
        assert!(
            class as usize == at,
            "the table must be in the order of the classes"
        );
        at += 1;
    }
};

/// The table under a clock that may run faster.
///
/// Tests and simulated labs scale every budget and window by one factor, so
/// that what takes a minute on a phone takes a moment and keeps its order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budgets {
    scale: f64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { scale: 1.0 }
    }
}

impl Budgets {
    /// Every duration multiplied by `scale`; a scale that is not a positive
    /// finite number counts as 1.
    pub fn scaled(scale: f64) -> Self {
        Self {
            scale: if scale.is_finite() && scale > 0.0 {
                scale
            } else {
                1.0
            },
        }
    }

    /// One class's row.
    pub fn budget(&self, class: CommandClass) -> Budget {
        let (_, Budget { runner, window }) = TABLE[class as usize];
        Budget {
            runner: self.of(runner),
            window: self.of(window),
        }
    }

    /// [`RECOVERY_WINDOW`] under this clock.
    pub fn recovery_window(&self) -> Duration {
        self.of(RECOVERY_WINDOW)
    }

    /// [`READINESS_WINDOW`] under this clock.
    pub fn readiness_window(&self) -> Duration {
        self.of(READINESS_WINDOW)
    }

    /// [`WEDGE_THRESHOLD`] under this clock.
    pub fn wedge_threshold(&self) -> Duration {
        self.of(WEDGE_THRESHOLD)
    }

    /// Any duration of the protocol under this clock, up to the longest there is.
    pub fn of(&self, duration: Duration) -> Duration {
        Duration::try_from_secs_f64(duration.as_secs_f64() * self.scale).unwrap_or(Duration::MAX)
    }
}
