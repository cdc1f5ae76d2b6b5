//! `[limits]`: how much of the gateway one principal may take.
//!
//! They are there so that a program that runs wild harms nobody but itself, and
//! are far above what a driver or a scheduler does.

use std::num::{NonZeroU32, NonZeroUsize};

use serde::Deserialize;

/// `[limits]`: each of them for one principal.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// How many calls per second, on average. Default `200`.
    pub calls_per_second: NonZeroU32,
    /// How many calls at once after a pause. Default `400`.
    pub call_burst: NonZeroU32,
    /// How many commands may wait or run. Default `256`.
    pub max_queued_commands: NonZeroUsize,
    /// How many leases may wait or hold phones. Default `64`.
    pub max_open_leases: NonZeroUsize,
}

impl Default for LimitsSection {
    fn default() -> Self {
        const CALLS: NonZeroU32 = NonZeroU32::new(200).expect("not zero");
        const BURST: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
        const COMMANDS: NonZeroUsize = NonZeroUsize::new(256).expect("not zero");
        const LEASES: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
        Self {
            calls_per_second: CALLS,
            call_burst: BURST,
            max_queued_commands: COMMANDS,
            max_open_leases: LEASES,
        }
    }
}
