//! What can go wrong with a launch. Each message names what it is about.

use std::io;
use std::path::{Path, PathBuf};

use fleetgate_runner::Udid;

use crate::spec::InvalidSpec;

/// Why a runner's process was not started, or orphans were not looked for.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The template cannot be used.
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
    /// Another launcher has the directory.
    #[error(
        "the launch directory {} is in use by another gateway, which holds {}",
        directory.display(),
        lock.display()
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
        /// The file that the other one has locked.
        lock: PathBuf,
    },
    /// The directory belongs to another user, who could have us end processes
    /// of ours by what is written in it.
    #[error("the launch directory {} belongs to another user (uid {owner})", directory.display())]
    NotOurs {
        /// The directory.
        directory: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// A file or directory of the launcher's own cannot be dealt with.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was to be done with it.
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// This launcher has a process for the phone already.
    #[error("a runner of {device} is already being run by this gateway")]
    AlreadyRunning {
        /// The phone.
        device: Udid,
    },
    /// The working directory cannot be used.
    #[error("the working directory {} cannot be used: {source}", directory.display())]
    WorkingDirectory {
        /// The directory as configured.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The program is not there.
    #[error("the program '{program}' was not found{}", match path { Some(path) => format!(" in PATH={path}"), None => String::new() })]
    NotFound {
        /// As configured.
        program: String,
        /// Where it was looked for, if its name has no slash.
        path: Option<String>,
    },
    /// The program is there and cannot be run.
    #[error("the program '{program}' at {} cannot be executed: {source}", found.display())]
    NotExecutable {
        /// As configured.
        program: String,
        /// Where it was found.
        found: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The process could not be started.
    #[error("the program '{program}' could not be started: {source}")]
    Spawn {
        /// As configured.
        program: String,
        /// Why not.
        source: io::Error,
    },
    /// What an earlier gateway started for the phone cannot be ended, and would
    /// be in the way of another.
    #[error("an earlier runner of {device} cannot be ended: processes {pids:?} live on")]
    Outlived {
        /// The phone.
        device: Udid,
        /// What lives on.
        pids: Vec<u32>,
    },
    /// The kernel's list of processes cannot be read.
    #[error("the processes of this host cannot be listed: {0}")]
    Processes(#[source] io::Error),
    /// The work was given up because the runtime is being shut down, or failed
    /// in a way that is a bug.
    #[error("the launch was interrupted: {0}")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl LaunchError {
    /// What becomes of an error with a file of ours.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File {
            what,
            path: path.clone(),
            source,
        }
    }
}
