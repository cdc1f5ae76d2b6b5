//! Questions about a runner's health from beside a session: one attempt each,
//! which counts as nothing but itself.
//!
//! It asks `status` and nothing else, so that it delays no command and changes
//! nothing on the phone. What it learns is worth telling the session
//! ([`Session::hear`](crate::Session::hear)); it does not do that by itself.

use fleetgate_runner::{
    Budgets, Clearance, Command, CommandKind, DeviceCommand, Envelope, Exchange, InvalidReply,
    Reply, Request, RunnerStatus, SendError,
};
use tower::{Layer, Service, ServiceExt};

use crate::dispatch::{Allowance, Dispatch};
use crate::tally::Tally;
use crate::turn::Patience;
use crate::window::{Window, WindowLayer};

/// How long a probe waits for its answer, connecting included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProbeWindow {
    /// For a runner that is coming up: 2 s.
    Readiness,
    /// For one that is up: 3 s.
    Health,
}

impl From<ProbeWindow> for Allowance {
    fn from(window: ProbeWindow) -> Self {
        match window {
            ProbeWindow::Readiness => Self::Readiness,
            ProbeWindow::Health => Self::Recovery,
        }
    }
}

/// Asks one runner how it fares.
#[derive(Debug, Clone)]
pub struct Probe<X> {
    window: Window<X>,
}

impl<X> Probe<X>
where
    X: Service<Exchange, Response = Envelope, Error = SendError> + Clone,
{
    /// Questions through `exchange`, with windows under the clock of `budgets`.
    pub fn new(exchange: X, budgets: Budgets) -> Self {
        Self {
            window: WindowLayer::new(budgets).layer(exchange),
        }
    }

    /// How the runner fares, by one attempt.
    ///
    /// A runner that answers with an envelope that holds no status, be it an
    /// error, is up all the same: that is [`InvalidReply::Data`].
    ///
    /// Does not borrow the probe, which need not be `Sync`.
    pub fn status(
        &self,
        within: ProbeWindow,
    ) -> impl Future<Output = Result<RunnerStatus, SendError>> + use<X> {
        let question = Dispatch {
            request: Request {
                command_id: None,
                command: Command::Device(DeviceCommand::Status),
            },
            clearance: Clearance::granted(),
            allowance: within.into(),
            patience: Patience::until(None),
            tally: Tally::default(),
        };
        let answer = self.window.clone().oneshot(question);
        async move {
            let detail = match answer.await?.result {
                Ok(Reply::Status(status)) => return Ok(status),
                Ok(
                    Reply::CommandStatus(_)
                    | Reply::Viewport(_)
                    | Reply::Done(_)
                    | Reply::Snapshot(_)
                    | Reply::Screenshot(_),
                ) => "a reply to another command".to_owned(),
                // Its words may quote what was typed.
                Err(error) => {
                    let code = error.code.known().unwrap_or("with a code of its own");
                    format!("an error, {code}")
                }
            };
            let kind = CommandKind::Status;
            Err(InvalidReply::Data { kind, detail }.into())
        }
    }
}

#[cfg(test)]
mod tests;
