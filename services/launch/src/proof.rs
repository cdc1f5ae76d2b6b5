//! Whether a group of processes is one that was started here.
//!
//! ```text
//! recorded in another boot or container ──────────────────────────────► foreign
//! leader is there, began when ours did ── says it is of another launch ─► foreign
//!        │                              └─ otherwise ──────────────────► ours
//! leader is there, began at another time ─────────────────────────────► foreign
//! leader is gone ── nobody lives in its group ────────────────────────► gone
//!                ├─ a member says it is of this launch ───────────────► ours
//!                ├─ a member was known as ours before ────────────────► ours
//!                └─ otherwise ────────────────────────────────────────► unproven
//! ```
//!
//! The number of a group is not given to another process while the group has
//! members, so one member that is ours proves the group; and a process that has
//! its leader's number, but is not the leader, proves that the group had ended.
//!
//! Invariant: no verdict but `Ours` may be followed by a signal.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use crate::record::{Record, Started};
use crate::table::{Process, Table};

/// A group that may be ours.
#[derive(Debug, Clone)]
pub(crate) struct Suspect {
    /// The launch that it is of.
    pub(crate) launch: Uuid,
    /// The number of the group, and of its leader.
    pub(crate) group: u32,
    /// Its leader.
    pub(crate) leader: Started,
    /// Members that were proved to be ours earlier.
    pub(crate) known: HashSet<(u32, String)>,
}

impl Suspect {
    /// The group that a process on record leads.
    pub(crate) fn new(launch: Uuid, leader: Started) -> Self {
        Self {
            launch,
            group: leader.pid,
            leader,
            known: HashSet::new(),
        }
    }

    fn knows(&self, process: &Process) -> bool {
        self.known.contains(&identity(process))
    }
}

/// What a look at the processes says of a suspect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nobody is left.
    Gone,
    /// It is ours, and these live.
    Ours(Vec<u32>),
    /// Its number is somebody else's.
    Foreign,
    /// Nothing proves that these are ours.
    Unproven(Vec<u32>),
}

/// What is seen of the host at one look.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) table: Table,
    pub(crate) epoch: String,
    /// Our own group, which is never a suspect.
    pub(crate) own_group: u32,
    /// Of which launch the witnesses say that they are.
    pub(crate) claims: HashMap<u32, String>,
}

impl Evidence {
    /// Those whose word decides about these suspects. All are asked together:
    /// where that takes a program, one run of it is enough.
    pub(crate) fn witnesses<'s>(
        &self,
        suspects: impl IntoIterator<Item = &'s Suspect>,
    ) -> Vec<u32> {
        let suspects = suspects.into_iter().filter(|suspect| {
            let mut members = self.table.living(suspect.group);
            !members.any(|process| suspect.knows(process))
        });
        let living = suspects.flat_map(|suspect| self.table.living(suspect.group));
        living.map(|process| process.pid).collect()
    }

    /// Those that may lead a group of a launch.
    pub(crate) fn leaders(&self) -> Vec<u32> {
        let living = self.table.all_living();
        let leaders = living.filter(|process| process.pid == process.group);
        leaders.map(|process| process.pid).collect()
    }

    /// Says what a suspect is, and remembers its members if it is ours.
    pub(crate) fn judge(&self, suspect: &mut Suspect) -> Verdict {
        if suspect.group <= 1 || suspect.group == self.own_group {
            return Verdict::Foreign;
        }
        let verdict = self.verdict(suspect);
        if matches!(verdict, Verdict::Ours(_)) {
            let members = self.table.living(suspect.group).map(identity);
            suspect.known.extend(members);
        }
        verdict
    }

    fn verdict(&self, suspect: &Suspect) -> Verdict {
        let living: Vec<_> = self.table.living(suspect.group).collect();
        let pids: Vec<_> = living.iter().map(|process| process.pid).collect();
        if suspect.leader.epoch != self.epoch {
            return Verdict::Foreign;
        }
        if let Some(process) = self.table.get(suspect.group) {
            return if self.is_leader(process, suspect) {
                found(pids)
            } else {
                Verdict::Foreign
            };
        }
        if living.is_empty() {
            return Verdict::Gone;
        }
        if living.iter().any(|process| suspect.knows(process)) {
            return Verdict::Ours(pids);
        }
        let launch = suspect.launch.to_string();
        if pids.iter().any(|pid| self.claims.get(pid) == Some(&launch)) {
            Verdict::Ours(pids)
        } else {
            Verdict::Unproven(pids)
        }
    }

    /// Whether a process that has the leader's number is the leader. An ended
    /// leader keeps its number until its parent has asked how it ended.
    ///
    /// What it says of its launch counts if it says anything: a program may
    /// have been started with an environment of its own, by `env -i` or `sudo`.
    fn is_leader(&self, process: &Process, suspect: &Suspect) -> bool {
        if process.start != suspect.leader.start || process.group != suspect.group {
            return false;
        }
        let said = self.claims.get(&process.pid);
        suspect.knows(process) || said.is_none_or(|said| *said == suspect.launch.to_string())
    }

    /// The groups of launches whose processes are not on record: those led by
    /// a process that says that it is of one of them.
    pub(crate) fn suspects(&self, records: &[&Record]) -> Vec<Suspect> {
        let launches: HashMap<_, _> = records
            .iter()
            .map(|record| (record.launch.to_string(), record.launch))
            .collect();
        let ours = self.leaders().into_iter().filter_map(|pid| {
            let process = self.table.get(pid)?;
            let launch = *launches.get(self.claims.get(&pid)?)?;
            let leader = Started {
                pid: process.pid,
                epoch: self.epoch.clone(),
                start: process.start.clone(),
            };
            Some(Suspect::new(launch, leader))
        });
        ours.collect()
    }
}

pub(crate) fn identity(process: &Process) -> (u32, String) {
    (process.pid, process.start.clone())
}

fn found(pids: Vec<u32>) -> Verdict {
    if pids.is_empty() {
        Verdict::Gone
    } else {
        Verdict::Ours(pids)
    }
}

#[cfg(test)]
mod tests;
