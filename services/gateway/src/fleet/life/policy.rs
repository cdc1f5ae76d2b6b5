//! What a phone's life goes by, and the pauses that it makes.

use std::time::Duration;

use fleetgate_runner::Budgets;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::config::HealthSection;

/// What a life goes by: the configuration, and what is not worth a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Policy {
    pub(crate) health: HealthSection,
    /// How often a runner that is coming up is asked whether it has.
    pub(crate) readiness: Duration,
    /// When a static runner that did not answer is asked again at first.
    pub(crate) first_look: Duration,
    /// How long the process of a phone that was unplugged is kept for its
    /// return.
    pub(crate) grace: Duration,
    /// How long a command may take to end in a runner that is to be ended
    /// because it executes nothing.
    pub(crate) farewell: Duration,
    /// Over how much time the first questions after a host's return are spread.
    pub(crate) spread: Duration,
    /// When a runner ends by itself.
    pub(crate) lifetime: Duration,
}

impl Policy {
    /// What is configured, with what is of the runner protocol on its clock.
    pub(crate) fn new(health: HealthSection, budgets: Budgets) -> Self {
        Self {
            health,
            readiness: budgets.of(Duration::from_millis(250)),
            first_look: budgets.of(Duration::from_secs(1)),
            grace: budgets.of(Duration::from_secs(10)),
            farewell: budgets.of(Duration::from_secs(5)),
            spread: budgets.of(Duration::from_secs(2)),
            lifetime: Duration::from_hours(24),
        }
    }

    /// How long to wait after so many failures in a row; `chance` is from 0
    /// to 1.
    pub(super) fn backoff(&self, failures: u32, chance: f64) -> Duration {
        let (first, longest) = (self.health.backoff_initial, self.health.backoff_max);
        let doublings = failures.saturating_sub(1).min(31);
        let pause = first.saturating_mul(1 << doublings).min(longest);
        // A quarter less at most: phones that failed together come back apart.
        pause.mul_f64(1.0 - chance / 4.0)
    }

    /// The age from which on commands that wait do not keep a runner from its
    /// end any more: half of what is left of its life.
    pub(super) fn overdue(&self) -> Duration {
        let age = self.health.recycle_age;
        age + self.lifetime.saturating_sub(age) / 2
    }

    /// Whether runners are asked how they fare.
    pub(super) fn probes(&self) -> bool {
        !self.health.probe_interval.is_zero()
    }
}

/// Where a life takes its chances from: the same for the same seed.
#[derive(Debug, Clone)]
pub(super) struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// From 0 to 1.
    pub(super) fn draw(&mut self) -> f64 {
        self.drawn += 1;
        // Drawn rarely: a generator that is kept would be most of a life.
        StdRng::seed_from_u64(self.seed.wrapping_add(self.drawn)).random_range(0.0..1.0)
    }
}
