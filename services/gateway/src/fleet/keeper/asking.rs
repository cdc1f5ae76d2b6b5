//! What a keeper asks of its phone's runner and lane, and what the answers are.

use std::sync::Arc;

use fleetgate_device::RunnerExchange;
use fleetgate_runner::{InvalidReply, RunnerStatus, SendError, Udid};
use fleetgate_session::{Pause, Probe, ProbeWindow, Session};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::sleep;

use super::Keeper;
use crate::fleet::ground::Ground;
use crate::fleet::life::{Heard, Idleness};

type Answer = Result<RunnerStatus, SendError>;

/// A question with its answer.
pub(super) struct Asked {
    /// Which question, as the life counts them.
    pub(super) epoch: u64,
    pub(super) answer: Answer,
}

impl Keeper {
    /// A question to the runner.
    pub(super) fn ask(&self, epoch: u64, window: ProbeWindow) -> BoxFuture<'static, Asked> {
        let exchange = RunnerExchange::new(
            self.ground.hosts.clone(),
            self.phone.udid.clone(),
            self.phone.port.subscribe(),
        );
        let probe = Probe::new(exchange, self.ground.budgets);
        let ground = Arc::clone(&self.ground);
        async move {
            // Before the window opens: a thousand phones are asked in turn.
            let _turn = ground.questions.acquire().await;
            let answer = probe.status(window).await;
            Asked { epoch, answer }
        }
        .boxed()
    }
}

/// Waits until nothing is in flight; gives a pause if that is to stay so. A
/// phone that somebody has is not idle between two commands.
pub(super) async fn until_idle(
    device: &Udid,
    session: &Session,
    idleness: Idleness,
    ground: &Ground,
) -> Option<Pause> {
    loop {
        session.idle().await;
        match idleness {
            Idleness::Held => return None,
            Idleness::Natural => {
                let pause = session.pause();
                let load = session.load();
                let is_lent = ground.gate.is_taken(device);
                if load.in_flight.is_none() && load.queued == 0 && !is_lent {
                    return Some(pause);
                }
                drop(pause);
                sleep(ground.policy.readiness).await;
            }
        }
    }
}

pub(super) fn heard(answer: Answer) -> Heard {
    let error = match answer {
        Ok(status) => return Heard::Status(status),
        Err(error) => error,
    };
    match &error {
        SendError::InvalidReply(InvalidReply::Data { .. }) => Heard::SomethingElse,
        SendError::NotAttached
        | SendError::Connect(_)
        | SendError::Misunderstood(_)
        | SendError::RequestTooLarge { .. }
        | SendError::Refused(_) => Heard::NoWay(error.to_string()),
        SendError::NotListening { .. }
        | SendError::WindowClosed { .. }
        | SendError::Broken(_)
        | SendError::ReplyTooLarge { .. }
        | SendError::InvalidReply(InvalidReply::NotAnEnvelope { .. }) => {
            Heard::Silence(error.to_string())
        }
    }
}
