//! Ends groups of processes: SIGTERM, then SIGKILL when their grace has passed,
//! until nobody of them lives.
//!
//! ```text
//! suspected ── ours ──► asked (SIGTERM) ── grace passed ──► killed (SIGKILL)
//!     │                      │                                 │
//!     ├─ gone ─► gone        └────────────── gone ─────────────┴─► ended
//!     ├─ foreign ─► foreign                                    │
//!     └─ unproven ─► unproven              patience passed ────┴─► outlived
//! ```
//!
//! Any number of groups are ended together, with one look at the host's
//! processes for all of them. Before each signal the group is judged anew.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group, test_kill_process_group};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::error::LaunchError;
use crate::proof::{Evidence, Suspect, Verdict};
use crate::table::{self, Table};

/// How long the kernel may take to end what was killed. It waits for a process
/// that waits for a device.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// The pauses between two looks: short at first, since most end at once.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A list of processes is not made in one moment: a process that began while it
/// was made can be missing in it, and one that just then becomes another
/// program says nothing of its launch. So what is not the kernel's own word, or
/// a proof, must be seen this often.
const LOOKS: u32 = 6;

/// What became of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There was none.
    Gone,
    /// It was ended.
    Ended { killed: bool },
    /// It is not ours.
    Foreign,
    /// It may not be ours: these live.
    Unproven(Vec<u32>),
    /// These live in spite of SIGKILL, or may not be signalled.
    Outlived(Vec<u32>),
}

/// A group on its way to its end.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) suspect: Suspect,
    pub(crate) grace: Duration,
    /// When it got its SIGTERM.
    pub(crate) asked: Option<Instant>,
    /// When it got its SIGKILL.
    pub(crate) killed: Option<Instant>,
    pub(crate) outcome: Option<Outcome>,
    /// How often in a row a look has proved nothing.
    pub(crate) doubts: u32,
}

impl Ending {
    pub(crate) fn new(suspect: Suspect, grace: Duration) -> Self {
        Self {
            suspect,
            grace,
            asked: None,
            killed: None,
            outcome: None,
            doubts: 0,
        }
    }

    /// One step, by what the processes are now.
    fn step(&mut self, evidence: &Evidence, now: Instant) {
        let verdict = evidence.judge(&mut self.suspect);
        let asked = self.asked.is_some();
        self.doubts = match verdict {
            Verdict::Gone | Verdict::Unproven(_) => self.doubts + 1,
            Verdict::Foreign | Verdict::Ours(_) => 0,
        };
        let in_doubt = self.doubts < LOOKS;
        self.outcome = match verdict {
            Verdict::Ours(pids) => self.press(pids, now),
            Verdict::Gone | Verdict::Unproven(_) if in_doubt => None,
            Verdict::Foreign if !asked => Some(Outcome::Foreign),
            // A number that is somebody else's by now is free of ours.
            Verdict::Gone | Verdict::Foreign => Some(self.vanished()),
            Verdict::Unproven(pids) if asked => Some(Outcome::Outlived(pids)),
            Verdict::Unproven(pids) => Some(Outcome::Unproven(pids)),
        };
    }

    /// Signals a group that is ours, if it is time to.
    fn press(&mut self, pids: Vec<u32>, now: Instant) -> Option<Outcome> {
        let group = self.suspect.group;
        let signalled = match (self.asked, self.killed) {
            (None, _) => {
                self.asked = Some(now);
                tracing::info!(group, ?pids, "ending what is left of an earlier launch");
                signal(group, Signal::TERM)
            }
            (Some(asked), None) if now.duration_since(asked) >= self.grace => {
                self.killed = Some(now);
                tracing::warn!(group, ?pids, "SIGTERM was not enough");
                signal(group, Signal::KILL)
            }
            (Some(_), Some(killed)) if now.duration_since(killed) >= KILL_PATIENCE => {
                tracing::error!(group, ?pids, "SIGKILL was not enough");
                return Some(Outcome::Outlived(pids));
            }
            (Some(_), _) => return None,
        };
        match signalled {
            Ok(()) => None,
            Err(error) => {
                tracing::error!(group, ?pids, %error, "processes of ours cannot be signalled");
                Some(Outcome::Outlived(pids))
            }
        }
    }

    /// The outcome if nobody is left.
    fn vanished(&self) -> Outcome {
        match self.asked {
            Some(_) => Outcome::Ended {
                killed: self.killed.is_some(),
            },
            None => Outcome::Gone,
        }
    }
}

/// Ends groups, all at the same time, and returns when each has its outcome.
pub(crate) async fn end(mut endings: Vec<Ending>) -> Result<Vec<Ending>, LaunchError> {
    let mut pause = FIRST_PAUSE;
    loop {
        endings = spawn_blocking(move || step(endings))
            .await?
            .map_err(LaunchError::Processes)?;
        if endings.iter().all(|ending| ending.outcome.is_some()) {
            return Ok(endings);
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// One step of all that have no outcome.
pub(crate) fn step(mut endings: Vec<Ending>) -> io::Result<Vec<Ending>> {
    let open = |ending: &&mut Ending| ending.outcome.is_none();
    for ending in endings.iter_mut().filter(open) {
        if is_empty(ending.suspect.group) {
            ending.outcome = Some(ending.vanished());
        }
    }
    if endings.iter().all(|ending| ending.outcome.is_some()) {
        return Ok(endings);
    }
    let evidence = look(|evidence| {
        let open = endings.iter().filter(|ending| ending.outcome.is_none());
        evidence.witnesses(open.map(|ending| &ending.suspect))
    })?;
    let now = Instant::now();
    for ending in endings.iter_mut().filter(open) {
        ending.step(&evidence, now);
    }
    Ok(endings)
}

/// Looks at the host's processes, and asks those of them that are chosen then.
pub(crate) fn look(witnesses: impl FnOnce(&Evidence) -> Vec<u32>) -> io::Result<Evidence> {
    let mut evidence = Evidence {
        table: Table::read()?,
        epoch: table::epoch()?,
        own_group: getpgrp().as_raw_pid().unsigned_abs(),
        claims: HashMap::new(),
    };
    evidence.claims = table::claims(&witnesses(&evidence));
    Ok(evidence)
}

/// Signals a group that was proved to be ours. One that ended meanwhile needs
/// no signal.
pub(crate) fn signal(group: u32, signal: Signal) -> io::Result<()> {
    match pid(group) {
        Some(group) if group != getpgrp() => match kill_process_group(group, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        },
        Some(_) | None => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Whether a group has no member, not even one that has ended.
pub(crate) fn is_empty(group: u32) -> bool {
    pid(group).is_none_or(|group| test_kill_process_group(group) == Err(Errno::SRCH))
}

/// The number of a process that can be ours. That of the first process means
/// all processes to the kernel when it is a group's.
pub(crate) fn pid(number: u32) -> Option<Pid> {
    let number = i32::try_from(number).ok().filter(|number| *number > 1)?;
    Pid::from_raw(number)
}
