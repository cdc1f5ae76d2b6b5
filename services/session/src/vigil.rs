//! A runner that executes nothing is asked how it fares until it does, so that
//! nobody has to find out by trying.
//!
//! Commands tell as much as long as there are any; without them a device would
//! seem to drain for ever. The pauses are long beside a command, and the
//! questions go past the runner's queue.

use std::time::Duration;

use fleetgate_runner::{Budgets, Envelope, SendError};
use tower::Service;

use crate::backoff::Backoff;
use crate::dispatch::Dispatch;
use crate::gauge::Gauge;
use crate::inquiry::Inquiry;

const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Watches over a runner for ever.
pub(crate) async fn vigil<S>(inquiry: Inquiry<S>, gauge: Gauge, budgets: Budgets)
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
{
    loop {
        gauge.until_stuck().await;
        tokio::select! {
            () = gauge.until_free() => {}
            () = Box::pin(ask_on(inquiry.clone(), &gauge, budgets)) => {}
        }
    }
}

async fn ask_on<S>(inquiry: Inquiry<S>, gauge: &Gauge, budgets: Budgets)
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
{
    let mut backoff = Backoff::new(budgets.of(FIRST_PAUSE), budgets.of(LONGEST_PAUSE));
    loop {
        tokio::time::sleep(backoff.pause()).await;
        if let Some(status) = inquiry.status().await {
            gauge.hear_status(&status);
        }
    }
}
