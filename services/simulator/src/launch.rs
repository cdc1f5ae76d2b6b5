//! Launching: what a stand-in for `xcodebuild` asks of the lab, and what it is
//! told to print and to do.
//!
//! ```text
//!   fleetgate lab runner             the lab
//!     │  POST …/runner/launch          │
//!     ├───────────────────────────────▶│  is the phone there, trusted, unlocked?
//!     │◀── lines, one event each ──────┤  another launch on it ends
//!     │        STARTING                │
//!     │        LISTENING port=N        │  the runner is up
//!     │        COMMAND_ACCEPTED …      │
//!     │◀── exit ───────────────────────┤  it has ended, in whatever way
//! ```
//!
//! The process decides nothing: what goes wrong with a launch is data here,
//! [queued](LaunchFault) on the phone or sent with the request.
//!
//! Invariant: a launched runner lives exactly as long as its launch, the launch
//! no longer than the connection that asked for it, and a phone has one launch
//! at a time.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::debug;

mod fault;
mod run;
pub(crate) mod words;

pub(crate) use fault::LaunchFaults;
pub use fault::{InvalidLaunch, LaunchFault, Mishap};
pub(crate) use run::run;

/// How many events may wait for the process to take them.
pub(crate) const EVENTS: usize = 1024;

/// What is asked of a launch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchRequest {
    /// Where the runner is to listen; 0 for any port that is free.
    #[serde(default)]
    pub port: u16,
    /// What goes wrong with this launch, before what waits on the phone.
    #[serde(default)]
    pub mishaps: Vec<Mishap>,
}

/// What the process that launches is told. As JSON, one a line:
/// `{"runner": "ARGENT_RUNNER_SERVING"}`, `"leave_child"`, `{"exit": 65}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchEvent {
    /// Print this line as `xcodebuild`'s own.
    Tool(String),
    /// Print this line as `xcodebuild`'s own, to stderr.
    Error(String),
    /// Print this line as one that the runner logs.
    Runner(String),
    /// Begin such a line; the rest of it comes later.
    RunnerBegins(String),
    /// End the line that was begun.
    RunnerEnds(String),
    /// Ignore SIGTERM from now on.
    IgnoreSigterm,
    /// Start a child that ignores SIGTERM and stays behind.
    LeaveChild,
    /// End with this code. Nothing comes after it.
    Exit(u8),
}

/// One launch of a runner.
#[derive(Debug)]
pub(crate) struct Launch {
    /// Counts the phone's launches, from 1.
    pub(crate) id: u64,
    /// Whether its runner outlives the cable.
    pub(crate) stays_when_unplugged: bool,
    over: CancellationToken,
    ending: OnceLock<Ending>,
    events: mpsc::Sender<LaunchEvent>,
}

/// How a runner, or its launch, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was told to shut down.
    ShutDown,
    /// Its session was as old as one gets.
    Expired,
    /// It died.
    Killed,
    /// The cable was pulled.
    Unplugged,
    /// Another was launched.
    Replaced,
    /// Another took its place in the same launch.
    Restarted,
}

impl Launch {
    pub(crate) fn new(
        id: u64,
        stays_when_unplugged: bool,
        events: mpsc::Sender<LaunchEvent>,
    ) -> Self {
        Self {
            id,
            stays_when_unplugged,
            over: CancellationToken::new(),
            ending: OnceLock::new(),
            events,
        }
    }

    /// Ends it, unless it has ended in another way before.
    pub(crate) fn end(&self, ending: Ending) {
        self.ending.get_or_init(|| ending);
        self.over.cancel();
    }

    /// Waits until it is ended from outside.
    async fn ended(&self) -> Ending {
        self.over.cancelled().await;
        *self.ending.get_or_init(|| Ending::Killed)
    }

    /// Logs a line of the runner's. A process that does not keep up loses it.
    pub(crate) fn log(&self, line: String) {
        if let Err(error) = self.events.try_send(LaunchEvent::Runner(line)) {
            debug!(%error, "a line that nobody takes");
        }
    }
}
