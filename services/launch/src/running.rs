//! A runner's process while it is ours.

use std::num::NonZeroU16;

/// What a runner's process says or does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerEvent {
    /// The runner listens to this port of its phone, from now on.
    Listening {
        /// The port.
        port: NonZeroU16,
    },
    /// The runner listens no longer, or never did.
    ListenerFailed {
        /// What it says of that.
        error: String,
    },
    /// The process has ended; nothing follows.
    Exited {
        /// How, in words.
        status: String,
    },
}

/// What became of a process that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How the process ended, in words.
    pub status: String,
    /// Whether SIGTERM was not enough.
    pub killed: bool,
    /// What of its group outlived even SIGKILL: as a rule nothing.
    pub outlived: Vec<u32>,
}

/// The owner of a runner's process and its group.
///
/// Dropping it kills the group at once.
#[derive(Debug)]
pub struct Running {
    pid: u32,
}

impl Running {
    /// The number of the process, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What happens next. After the process has ended, that again and again.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> RunnerEvent {
        std::future::pending().await
    }

    /// Ends the group: SIGTERM, and SIGKILL if its grace passes. Returns when
    /// every member is gone.
    pub async fn stop(self) -> Stopped {
        Stopped {
            status: "never started".to_owned(),
            killed: false,
            outlived: Vec::new(),
        }
    }
}
