//! The host's processes: which there are, to which group each belongs, when
//! each began, and which launch each says that it is of.
//!
//! A process is told from another that has its number by when it began. On
//! Linux that is counted in ticks since the boot, and the boot and the number
//! space that it is seen in are part of it; elsewhere `ps` says it to the
//! second, by the wall clock as it was then. Both stay the same for as long as
//! the process lives, whatever happens to the clock.

#[cfg(target_os = "linux")]
mod proc;
// Compiled for its tests, too: it is what runs where the phones are.
#[cfg(any(not(target_os = "linux"), test))]
mod ps;

use std::collections::HashMap;
use std::io;

#[cfg(target_os = "linux")]
use proc as source;
#[cfg(not(target_os = "linux"))]
use ps as source;

/// One process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) group: u32,
    /// It has ended, and its parent has not yet asked how.
    pub(crate) zombie: bool,
    /// When it began, in words that only ever are compared.
    pub(crate) start: String,
}

/// All processes, at about one moment.
#[derive(Debug, Default)]
pub(crate) struct Table {
    processes: HashMap<u32, Process>,
    groups: HashMap<u32, Vec<u32>>,
}

impl Table {
    /// The processes that there are now.
    pub(crate) fn read() -> io::Result<Self> {
        Ok(source::all()?.into_iter().collect())
    }

    pub(crate) fn get(&self, pid: u32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    /// Those of a group that have not ended.
    pub(crate) fn living(&self, group: u32) -> impl Iterator<Item = &Process> {
        let members = self.groups.get(&group).into_iter().flatten();
        let members = members.filter_map(|pid| self.processes.get(pid));
        members.filter(|process| !process.zombie)
    }

    /// All that have not ended.
    pub(crate) fn all_living(&self) -> impl Iterator<Item = &Process> {
        self.processes.values().filter(|process| !process.zombie)
    }
}

impl FromIterator<Process> for Table {
    fn from_iter<I: IntoIterator<Item = Process>>(processes: I) -> Self {
        let mut table = Self::default();
        for process in processes {
            table
                .groups
                .entry(process.group)
                .or_default()
                .push(process.pid);
            table.processes.insert(process.pid, process);
        }
        table
    }
}

/// One process, if there is one of this number.
pub(crate) fn look(pid: u32) -> io::Result<Option<Process>> {
    source::one(pid)
}

/// What the starts of processes count from: those of different epochs say
/// nothing about each other.
pub(crate) fn epoch() -> io::Result<String> {
    source::epoch()
}

/// Of which launch these processes say that they are: those that say it, and
/// that can be read.
pub(crate) fn claims(pids: &[u32]) -> HashMap<u32, String> {
    source::claims(pids)
}
