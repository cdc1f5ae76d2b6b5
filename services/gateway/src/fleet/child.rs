//! A runner's process from its launch to its end, as one thing that can be
//! waited for.
//!
//! ```text
//!   NONE ── begin ──► STARTING ──► RUNNING
//!     ▲                  │ end        │ end
//!     └──────────────── STOPPING ◄────┘
//! ```
//!
//! Dropping it kills what runs.

use std::future::{pending, ready};
use std::sync::Arc;

use fleetgate_launch::{LaunchError, LaunchSpec, Launcher, RunnerEvent, Running};
use fleetgate_runner::Udid;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::life::Process;
use crate::config::RunnerPort;

/// The process of one phone's runner.
#[derive(Default)]
pub(super) enum Child {
    #[default]
    None,
    Starting {
        launch: BoxFuture<'static, Result<Launched, NotStarted>>,
        give_up: CancellationToken,
    },
    Running(Box<Running>),
    Stopping(BoxFuture<'static, ()>),
}

/// A process that has begun, and its place among those that begin.
pub(super) struct Launched {
    running: Running,
    place: OwnedSemaphorePermit,
}

/// Why there is no process.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotStarted {
    #[error("the launch was given up while it waited for its turn")]
    GivenUp,
    #[error("nothing is launched any more")]
    Closed(#[from] AcquireError),
    #[error("there is nothing to launch")]
    Nothing,
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// What happened to it.
pub(super) struct Happened {
    pub(super) process: Process,
    /// Held as long as the launch is under way.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

impl From<Process> for Happened {
    fn from(process: Process) -> Self {
        Self {
            process,
            place: None,
        }
    }
}

impl Child {
    /// Begins a launch as soon as there is a place for it.
    pub(super) fn begin(
        &mut self,
        launcher: Launcher,
        device: Udid,
        spec: LaunchSpec,
        places: Arc<Semaphore>,
    ) {
        let give_up = CancellationToken::new();
        let unwanted = give_up.clone();
        let launch = async move {
            let place = tokio::select! {
                biased;
                () = unwanted.cancelled() => return Err(NotStarted::GivenUp),
                place = places.acquire_owned() => place?,
            };
            let running = launcher.start(&device, &spec).await?;
            Ok(Launched { running, place })
        };
        *self = Self::Starting {
            launch: launch.boxed(),
            give_up,
        };
    }

    /// Begins a launch of nothing, which fails.
    pub(super) fn begin_in_vain(&mut self) {
        *self = Self::Starting {
            launch: ready(Err(NotStarted::Nothing)).boxed(),
            give_up: CancellationToken::new(),
        };
    }

    /// Begins the end, however far it is.
    pub(super) fn end(&mut self) {
        let end = match std::mem::take(self) {
            Self::None => async {}.boxed(),
            Self::Starting { launch, give_up } => {
                give_up.cancel();
                async move {
                    if let Ok(Launched { running, .. }) = launch.await {
                        stop(running).await;
                    }
                }
                .boxed()
            }
            Self::Running(running) => stop(*running).boxed(),
            Self::Stopping(end) => end,
        };
        *self = Self::Stopping(end);
    }

    /// The number of the process, while there is one.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            Self::Running(running) => Some(running.pid()),
            Self::None | Self::Starting { .. } | Self::Stopping(_) => None,
        }
    }

    /// What happens next; dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Happened {
        match self {
            Self::None => pending().await,
            Self::Starting { launch, .. } => match launch.await {
                Ok(Launched { running, place }) => {
                    *self = Self::Running(Box::new(running));
                    Happened {
                        process: Process::Started,
                        place: Some(place),
                    }
                }
                Err(why) => {
                    *self = Self::None;
                    Process::NotStarted(why.to_string()).into()
                }
            },
            Self::Running(running) => match running.next().await {
                // No log line has a command sent to another service of the phone.
                RunnerEvent::Listening { port } => match RunnerPort::try_from(port.get()) {
                    Ok(port) => Process::Listening(port.get()),
                    Err(unusable) => Process::ListenerFailed(unusable.to_string()),
                },
                RunnerEvent::ListenerFailed { error } => Process::ListenerFailed(error),
                RunnerEvent::Exited { status } => Process::Exited(status.to_string()),
            }
            .into(),
            Self::Stopping(end) => {
                end.await;
                *self = Self::None;
                Process::Stopped.into()
            }
        }
    }
}

async fn stop(running: Running) {
    let pid = running.pid();
    let stopped = running.stop().await;
    if !stopped.outlived.is_empty() {
        warn!(pid, outlived = ?stopped.outlived, "processes of a runner cannot be ended");
    }
}
