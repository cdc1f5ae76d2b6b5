//! The lab's clock: the phones' time, at the scenario's scale.
//!
//! What a phone takes a second for takes `time_scale` seconds here: budgets,
//! gestures, the wedge threshold and the delays of faults alike, so that their
//! order stays what it is on a phone. It is tokio's clock below, which a test
//! can pause.

use std::time::Duration;

use fleetgate_runner::Budgets;
use tokio::time::Instant;

/// A lab's clock. All its durations are the phones' unless they say otherwise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    scale: f64,
    budgets: Budgets,
    start: Instant,
}

impl Clock {
    /// A clock that starts now. A scale that is not a positive finite number
    /// counts as 1, as it does for [`Budgets`].
    pub(crate) fn start(scale: f64) -> Self {
        let scale = if scale.is_finite() && scale > 0.0 {
            scale
        } else {
            1.0
        };
        Self {
            scale,
            budgets: Budgets::scaled(scale),
            start: Instant::now(),
        }
    }

    /// The protocol's budgets under this clock.
    pub(crate) fn budgets(&self) -> Budgets {
        self.budgets
    }

    /// What a duration on the phone takes here.
    pub(crate) fn real(&self, on_the_phone: Duration) -> Duration {
        self.budgets.of(on_the_phone)
    }

    /// What has passed on the phone since `then`.
    pub(crate) fn since(&self, then: Instant) -> Duration {
        let seconds = then.elapsed().as_secs_f64() / self.scale;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Real time since the lab started.
    pub(crate) fn at(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for what takes this long on the phone.
    pub(crate) async fn sleep(&self, on_the_phone: Duration) {
        tokio::time::sleep(self.real(on_the_phone)).await;
    }
}
