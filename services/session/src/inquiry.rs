//! Questions to a runner about itself: `status`, in the short recovery window,
//! resent like any read. Nothing else can be sent from here.
//!
//! A runner answers them beside its queue, so that they delay no command.

use fleetgate_runner::{
    Clearance, Command, CommandId, DeviceCommand, Envelope, JournalEntry, Reply, Request,
    RunnerStatus, SendError,
};
use tower::{Service, ServiceExt};

use crate::dispatch::{Allowance, Dispatch};
use crate::tally::Tally;
use crate::turn::Patience;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// The phone's own word that nobody listens any more: that runner is over.
    Gone,
    /// None came, or none that is usable.
    Silence,
}

/// Somebody who asks a runner about itself.
#[derive(Debug, Clone)]
pub(crate) struct Inquiry<S> {
    probe: S,
}

impl<S> Inquiry<S>
where
    S: Service<Dispatch, Response = Envelope, Error = SendError> + Clone,
{
    /// Questions through `probe`.
    pub(crate) fn new(probe: S) -> Self {
        Self { probe }
    }

    /// One look into the journal for `id`. Does not borrow the probe, which need
    /// not be `Sync`.
    pub(crate) fn entry(
        &self,
        id: &CommandId,
    ) -> impl Future<Output = Result<JournalEntry, NoAnswer>> + use<S> {
        let id = id.clone();
        let answer = self.ask(DeviceCommand::CommandStatus { of: id.clone() });
        async move {
            match answer.await? {
                Reply::CommandStatus(entry) if entry.command_id == id => Ok(entry),
                Reply::CommandStatus(_)
                | Reply::Viewport(_)
                | Reply::Done(_)
                | Reply::Snapshot(_)
                | Reply::Screenshot(_)
                | Reply::Status(_) => {
                    tracing::warn!("the journal answered about something else");
                    Err(NoAnswer::Silence)
                }
            }
        }
    }

    /// The runner's health; `None` if there is no usable answer.
    pub(crate) fn status(&self) -> impl Future<Output = Option<RunnerStatus>> + use<S> {
        let answer = self.ask(DeviceCommand::Status);
        async move {
            match answer.await.ok()? {
                Reply::Status(status) => Some(status),
                Reply::CommandStatus(_)
                | Reply::Viewport(_)
                | Reply::Done(_)
                | Reply::Snapshot(_)
                | Reply::Screenshot(_) => {
                    tracing::warn!("the runner answered about something else than its health");
                    None
                }
            }
        }
    }

    fn ask(
        &self,
        question: DeviceCommand,
    ) -> impl Future<Output = Result<Reply, NoAnswer>> + use<S> {
        let question = Dispatch {
            request: Request {
                command_id: None,
                command: Command::Device(question),
            },
            clearance: Clearance::granted(),
            allowance: Allowance::Recovery,
            patience: Patience::until(None),
            tally: Tally::default(),
        };
        // A question is rare, and whoever asks lives as long as the device.
        let answer = Box::pin(self.probe.clone().oneshot(question));
        async move {
            match answer.await {
                Ok(Envelope {
                    result: Ok(reply), ..
                }) => Ok(reply),
                Ok(Envelope {
                    result: Err(error), ..
                }) => {
                    // Without its words, which may quote what was typed.
                    tracing::warn!(
                        code = error.code.known(),
                        "a question to the runner was refused"
                    );
                    Err(NoAnswer::Silence)
                }
                Err(error) => {
                    tracing::debug!(%error, "the runner could not be asked");
                    let is_gone = matches!(error, SendError::NotListening { .. });
                    Err(if is_gone {
                        NoAnswer::Gone
                    } else {
                        NoAnswer::Silence
                    })
                }
            }
        }
    }
}
