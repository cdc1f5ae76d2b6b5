//! How many commands the runners of a whole lab have in hand.
//!
//! The proof that phones do not wait for each other is that all of them are at
//! work at the same moment; this counts that moment.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;

/// Commands that runners took and have not yet answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Now.
    pub in_flight: usize,
    /// The most at once since the lab started.
    pub max_in_flight: usize,
}

/// The lab's counter; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Load(Arc<watch::Sender<LoadReport>>);

impl Load {
    pub(crate) fn enter(&self) {
        self.0.send_modify(|load| {
            load.in_flight += 1;
            load.max_in_flight = load.max_in_flight.max(load.in_flight);
        });
    }

    pub(crate) fn leave(&self) {
        self.0.send_modify(|load| load.in_flight -= 1);
    }

    pub(crate) fn watch(&self) -> watch::Receiver<LoadReport> {
        self.0.subscribe()
    }
}
