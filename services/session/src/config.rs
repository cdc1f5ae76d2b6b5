//! What can be set about a session, with defaults that suit a real phone.
//!
//! The pauses between attempts are the protocol's own and follow the clock of
//! the [`Budgets`]; they are no settings.

use std::time::Duration;

use fleetgate_runner::Budgets;

/// The settings of one session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionConfig {
    /// Budgets and windows, and the clock that they run under.
    pub budgets: Budgets,
    /// How many commands may wait for their turn, and how many callers may
    /// share one of them. One more is refused as `LANE_FULL`.
    pub queue_capacity: usize,
    /// How many `status` requests may be under way beside the lane.
    pub bypass_limit: usize,
    /// How long a command may be kept from its turn's end by `RUNNER_BUSY`,
    /// counted from the first such verdict.
    ///
    /// The default of 30 s is the runner's most common budget: work that was
    /// abandoned for overrunning it often drains within as much again. Waiting
    /// any longer makes everybody else in the queue pay, and after
    /// 120 s of draining the runner calls itself wedged anyway.
    pub busy_ceiling: Duration,
    /// How long one entry of the record may take, retries included, before the
    /// command goes on without it.
    pub record_patience: Duration,
    /// How long mutations may be kept waiting while it is found out what became
    /// of those of an earlier session. It is counted from the session's start,
    /// and putting the result on record may take `record_patience` on top.
    pub reconcile_patience: Duration,
    /// Whether nothing is started from the runner's first `RUNNER_WEDGED` on until
    /// it is seen to be well again. It makes commands wait for somebody who
    /// recycles the runner, instead of telling each of them that it is wedged.
    pub hold_when_wedged: bool,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            budgets: Budgets::default(),
            queue_capacity: 128,
            bypass_limit: 8,
            busy_ceiling: Duration::from_secs(30),
            record_patience: Duration::from_secs(10),
            reconcile_patience: Duration::from_secs(10),
            hold_when_wedged: false,
        }
    }
}
