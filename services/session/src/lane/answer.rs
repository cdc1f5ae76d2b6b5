//! What a caller is told, and when, while the lane goes about its command.

use fleetgate_runner::{Effect, Fate, Point};
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::failure::{Failed, Failure};
use crate::lane::{Outcome, ReplyTo};
use crate::queue::Caller;
use crate::turn::Turn;

/// Waits for a command that goes past the lane, and stops waiting at the
/// caller's deadline.
pub(super) async fn attend(
    turn: Turn<Point>,
    mut execution: BoxFuture<'static, Outcome>,
    caller: Caller<ReplyTo>,
) {
    let Caller { deadline, to } = caller;
    tokio::select! {
        biased;
        outcome = &mut execution => answer(to, outcome),
        () = until(deadline) => {
            answer(to, Err(overdue(&turn)));
            execution.await.ok();
        }
    }
}

/// Until then; for ever if there is no deadline.
pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// A caller that is gone by now needs no answer.
pub(super) fn answer(to: ReplyTo, outcome: Outcome) {
    to.send(outcome).ok();
}

/// The command was not sent.
pub(super) fn unsent(turn: &Turn<Point>, failure: Failure) -> Failed {
    Failed {
        receipt: turn.receipt(Fate::NotSent, Effect::None),
        failure,
    }
}

/// The command goes on: its fate is not known yet.
pub(super) fn overdue(turn: &Turn<Point>) -> Failed {
    Failed {
        receipt: turn.receipt(Fate::Unknown, Effect::Unknown),
        failure: Failure::DeadlineExceeded,
    }
}
