//! A runner's process while it is ours: what it says, and how it is stopped.
//!
//! ```text
//! running ── next(): Listening, ListenerFailed, ...
//!    │
//!    ├─ ends by itself ──► next(): the rest of the log, then Exited
//!    │                        │
//!    └────────────────────────┴─ stop(): SIGTERM, grace, SIGKILL ──► gone
//! ```
//!
//! A leader's end is not its group's: what it started may live on, and is ended
//! by `stop` all the same.

use std::io;
use std::num::NonZeroU16;
use std::time::Duration;

use fleetgate_runner::Udid;
use rustix::process::Signal;
use tokio::signal::unix;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use crate::ending::{self, Ending, KILL_PATIENCE, Outcome};
use crate::error::LaunchError;
use crate::exit::ExitStatus;
use crate::follow::{Follow, Pace};
use crate::launcher::Slot;
use crate::leader::Leader;
use crate::proof::{Suspect, Verdict, identity};

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
        /// What it says of that: bounded, and without control characters.
        error: String,
    },
    /// The process has ended; nothing else follows.
    Exited {
        /// How.
        status: ExitStatus,
    },
}

/// What became of a process that was stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How the process ended; `None` if it is still there.
    pub status: Option<ExitStatus>,
    /// Whether SIGTERM was not enough.
    pub killed: bool,
    /// Members of its group that live in spite of SIGKILL, or may not be
    /// signalled: as a rule none. The next sweep tries again.
    pub outlived: Vec<u32>,
}

/// The owner of a runner's process and its group.
///
/// Dropping it kills the group at once.
#[derive(Debug)]
pub struct Running {
    leader: Leader,
    suspect: Suspect,
    grace: Duration,
    follow: Follow,
    pace: Pace,
    /// When the log is looked at next.
    look_at: Instant,
    /// Says that some child of this process has ended.
    children: unix::Signal,
    ended: Option<ExitStatus>,
    /// Given back last: until then nobody else deals with this phone.
    slot: Slot,
}

impl Running {
    /// Takes over a process that runs its program from now on.
    pub(crate) fn new(
        leader: Leader,
        suspect: Suspect,
        grace: Duration,
        follow: Follow,
        children: unix::Signal,
        slot: Slot,
    ) -> Self {
        Self {
            leader,
            suspect,
            grace,
            follow,
            pace: Pace::new(),
            look_at: Instant::now(),
            children,
            ended: None,
            slot,
        }
    }

    /// The number of the process, which is its group's too.
    pub fn pid(&self) -> u32 {
        self.leader.pid()
    }

    pub(crate) fn device(&self) -> &Udid {
        self.slot.device()
    }

    /// What happens next. Once the process has ended, that again and again.
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> RunnerEvent {
        loop {
            if let Some(event) = self.follow.said() {
                self.pace.note(&event);
                return event;
            }
            if let Some(status) = self.ended {
                return RunnerEvent::Exited { status };
            }
            // Looked at before the log: what it wrote until its end is there.
            let ended = self.leader.ended();
            let news = self.follow.has_news();
            if news || ended.is_some() {
                self.follow.read().await;
            }
            if ended.is_some() {
                self.follow.end();
                self.ended = ended;
                continue;
            }
            let now = Instant::now();
            if news || now >= self.look_at {
                self.look_at = now + self.pace.after(news);
            }
            if self.follow.has_said() {
                continue;
            }
            tokio::select! {
                _ = self.children.recv() => {}
                () = sleep_until(self.look_at) => {}
            }
        }
    }

    /// Ends the group: SIGTERM, and SIGKILL if its grace passes. Returns when
    /// every member is gone.
    ///
    /// What the kernel itself cannot end is waited for no longer than ten
    /// seconds. If the future is dropped, the group is killed.
    pub async fn stop(self) -> Stopped {
        let Self {
            mut leader,
            suspect,
            grace,
            slot,
            ..
        } = self;
        let group = leader.pid();
        let asked = Instant::now();
        signal(&mut leader, Signal::TERM);
        let mut status = timeout(grace, leader.wait()).await.ok();
        let mut killed = None;
        if status.is_none() {
            tracing::warn!(device.id = %slot.device(), pid = group, "SIGTERM was not enough");
            killed = Some(Instant::now());
            signal(&mut leader, Signal::KILL);
            status = timeout(KILL_PATIENCE, leader.wait()).await.ok();
        }
        if status.is_none() {
            return Stopped {
                status,
                killed: true,
                outlived: vec![group],
            };
        }
        let mut stopped = Stopped {
            status,
            killed: killed.is_some(),
            outlived: Vec::new(),
        };
        if !ending::is_empty(group) {
            let ending = Ending {
                asked: Some(asked),
                killed,
                ..Ending::new(suspect, grace)
            };
            finish(ending, leader.was_reaped(), &mut stopped).await;
        }
        if stopped.outlived.is_empty() {
            slot.forget();
        }
        tracing::info!(
            device.id = %slot.device(), pid = group,
            status = stopped.status.map(tracing::field::display),
            killed = stopped.killed, outlived = ?stopped.outlived, "runner process stopped"
        );
        stopped
    }
}

/// The leader is not reaped, so that its group needs no other proof.
fn signal(leader: &mut Leader, signal: Signal) {
    if let Err(error) = leader.signal(signal) {
        tracing::error!(pid = leader.pid(), %error, "a runner's group cannot be signalled");
    }
}

/// Ends what is left of a group whose leader has just been reaped.
///
/// If it was reaped here, its number was ours until a moment ago, and a number
/// is not given away again so soon: who is in the group now is ours.
async fn finish(ending: Ending, certain: bool, stopped: &mut Stopped) {
    let group = ending.suspect.group;
    let mut guard = LastResort(Some(ending.suspect.clone()));
    let ended = async {
        let ending = if certain {
            let known = spawn_blocking(move || with_members(ending)).await?;
            known.map_err(LaunchError::Processes)?
        } else {
            ending
        };
        ending::end(vec![ending]).await
    };
    match ended.await {
        Ok(endings) => {
            for ending in endings {
                stopped.killed |= ending.killed.is_some();
                match ending.outcome {
                    Some(Outcome::Outlived(pids) | Outcome::Unproven(pids)) => {
                        stopped.outlived.extend(pids);
                    }
                    Some(Outcome::Gone | Outcome::Ended { .. } | Outcome::Foreign) | None => {}
                }
            }
            guard.0 = None;
        }
        Err(error) => {
            tracing::error!(group, %error, "what a runner left cannot be ended");
            stopped.outlived.push(group);
        }
    }
}

fn with_members(mut ending: Ending) -> io::Result<Ending> {
    let evidence = ending::look(|_| Vec::new())?;
    let members = evidence.table.living(ending.suspect.group).map(identity);
    ending.suspect.known.extend(members);
    Ok(ending)
}

/// Kills what is left of a group if nobody waits for its end any more.
struct LastResort(Option<Suspect>);

impl Drop for LastResort {
    fn drop(&mut self) {
        let Some(mut suspect) = self.0.take() else {
            return;
        };
        let Ok(evidence) = ending::look(|evidence| evidence.witnesses([&suspect])) else {
            return;
        };
        if let Verdict::Ours(pids) = evidence.judge(&mut suspect) {
            tracing::warn!(?pids, "killing what a runner left");
            ending::signal(suspect.group, Signal::KILL).ok();
        }
    }
}
