//! Who waits for a device, who is next, and who shares. Pure: no task, no
//! clock, no channel; a caller is whatever `W` is.
//!
//! ```text
//!            push                    start                 finish
//!   caller ───────► waiting (FIFO) ─────────► running ───────────────► answered
//!      │               │    ▲                 │    ▲
//!      │ full, or      │    ├── same snapshot ┼────┤  share
//!      │ an id of      │    └── same id ──────┼────┘  attach
//!      │ another       │ deadline, or         │ deadline
//!      │               │ leave withdrawn      │
//!      ▼               ▼                      ▼
//!   refused       answered, never sent    answered; the command goes on
//! ```
//!
//! Invariants:
//!
//! - One command runs at a time, and commands start in the order they came,
//!   but for reads while [`Gate::Reads`] is all that may start.
//! - An id is in here once. A caller that brings it again waits for the command
//!   that is here, if it asks for the same. Whoever stops waiting first is not
//!   told that the command will not be sent, if it may be for another.
//! - A caller shares another's snapshot only if it is of the same app, and
//!   nothing that changes the screen by intent or may bring another app to the
//!   front was queued after it.
//! - A mutation is sent by the leave of whoever asked for it first, and a read
//!   that is shared by that of anybody who still waits for it. A command keeps
//!   the leave that it started by until it has ended.
//! - Every caller that was let in comes out once: from [`Queue::finish`],
//!   [`Queue::expire`], [`Queue::withdraw`] or [`Queue::drain`]; or is gone and
//!   was only waiting for a read.

use std::collections::VecDeque;
use std::mem;

use fleetgate_runner::{AppAction, AppCommand, BundleId, Command, CommandId, CommandKind, Point};
use tokio::time::Instant;

use crate::attach::differing;
use crate::leave::{Leave, Withdrawn};
use crate::turn::Turn;

mod caller;

pub(crate) use caller::{Caller, Cut, Expired, Refusal, Refused};

use caller::Waiter;

/// The commands of one device that have not ended.
#[derive(Debug)]
pub(crate) struct Queue<W> {
    capacity: usize,
    waiting: VecDeque<Entry<W>>,
    running: Option<Entry<W>>,
}

#[derive(Debug)]
struct Entry<W> {
    turn: Turn<Point>,
    callers: Vec<Waiter<W>>,
}

/// What may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Whatever is next.
    Open,
    /// Reads only, past the mutations that wait.
    Reads,
    /// Nothing.
    Shut,
}

impl Gate {
    fn lets(self, kind: CommandKind) -> bool {
        match self {
            Self::Open => true,
            Self::Reads => !kind.is_mutation(),
            Self::Shut => false,
        }
    }
}

impl<W> Queue<W> {
    /// Lets `capacity` commands wait, and as many callers share one.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            waiting: VecDeque::new(),
            running: None,
        }
    }

    /// Lets a caller in: to the command that has its id, to an equal snapshot,
    /// or behind all others.
    pub(crate) fn push(
        &mut self,
        turn: Turn<Point>,
        caller: Caller<W>,
    ) -> Result<(), Box<Refused<W>>> {
        let capacity = self.capacity;
        let refused = |turn, caller: Caller<W>, why| {
            let to = caller.to;
            Err(Box::new(Refused { turn, to, why }))
        };
        let shared = if self.holds(&turn.command_id) {
            self.named(&turn.command_id)
        } else {
            self.shareable(&turn)
        };
        if let Some(entry) = shared {
            let fields = differing(&entry.turn.command, &turn.command);
            if !fields.is_empty() {
                return refused(turn, caller, Refusal::Conflict(fields));
            }
            if entry.callers.len() >= capacity {
                return refused(turn, caller, Refusal::Full);
            }
            entry.turn.patience.extend(caller.deadline);
            let leave = if entry.turn.command.is_mutation() {
                entry.turn.leave.clone()
            } else {
                turn.leave
            };
            entry.callers.push(Waiter::new(caller, leave));
            return Ok(());
        }
        if self.waiting.len() >= capacity {
            return refused(turn, caller, Refusal::Full);
        }
        self.waiting.push_back(Entry {
            callers: vec![Waiter::new(caller, turn.leave.clone())],
            turn,
        });
        Ok(())
    }

    /// True if somebody may have to be refused for want of room.
    pub(crate) fn is_crowded(&self) -> bool {
        let mut waiting = self.waiting.iter();
        self.waiting.len() >= self.capacity
            || waiting.any(|entry| entry.callers.len() >= self.capacity)
    }

    /// Forgets who waited for a read and is gone, and the reads that nobody
    /// waits for any more. While nothing starts they would pile up.
    pub(crate) fn make_room(&mut self, gone: impl Fn(&W) -> bool) {
        self.waiting.retain_mut(|Entry { turn, callers }| {
            if turn.command.is_mutation() {
                return true;
            }
            callers.retain(|caller| !gone(&caller.to));
            !callers.is_empty()
        });
    }

    /// True if a command with this id waits or runs. A snapshot that is shared
    /// has the id of whoever asked for it first.
    pub(crate) fn holds(&self, id: &CommandId) -> bool {
        let mut entries = self.waiting.iter().chain(&self.running);
        entries.any(|entry| entry.turn.command_id == *id)
    }

    /// The command with this id.
    fn named(&mut self, id: &CommandId) -> Option<&mut Entry<W>> {
        let mut entries = self.waiting.iter_mut().chain(self.running.as_mut());
        entries.find(|entry| entry.turn.command_id == *id)
    }

    /// The newest command that `turn` may share.
    fn shareable(&mut self, turn: &Turn<Point>) -> Option<&mut Entry<W>> {
        let app = snapshot_of(&turn.command)?;
        let newest_first = self.waiting.iter_mut().rev().chain(self.running.as_mut());
        for entry in newest_first {
            if snapshot_of(&entry.turn.command) == Some(app) {
                return Some(entry);
            }
            if entry.turn.command.kind().may_change_screen() {
                return None;
            }
        }
        None
    }

    /// Starts the next command that may, unless one runs. A read whose callers
    /// are all gone is dropped instead; a mutation has been asked for and is
    /// not.
    pub(crate) fn start(
        &mut self,
        now: Instant,
        gate: Gate,
        gone: impl Fn(&W) -> bool,
    ) -> Option<Turn<Point>> {
        if self.running.is_some() {
            return None;
        }
        let wanted = |entry: &Entry<W>| {
            entry.turn.command.is_mutation() || !entry.callers.iter().all(|caller| gone(&caller.to))
        };
        let Entry { turn, callers } = std::iter::from_fn(|| self.take_next(gate)).find(wanted)?;
        let turn = turn.begin(now);
        self.running = Some(Entry {
            turn: turn.clone(),
            callers,
        });
        Some(turn)
    }

    fn take_next(&mut self, gate: Gate) -> Option<Entry<W>> {
        let mut kinds = self.waiting.iter().map(|entry| entry.turn.command.kind());
        let at = kinds.position(|kind| gate.lets(kind))?;
        self.waiting.remove(at)
    }

    /// The running command has ended; those who still wait for it.
    pub(crate) fn finish(&mut self) -> impl Iterator<Item = W> + use<W> {
        self.running
            .take()
            .into_iter()
            .flat_map(|entry| entry.callers)
            .map(|caller| caller.to)
    }

    /// The callers whose deadline is not after `now`. A command that nobody
    /// waits for any more leaves the queue with the last of them.
    pub(crate) fn expire(&mut self, now: Instant) -> Expired<W> {
        let mut expired = Expired {
            waiting: Vec::new(),
            running: Vec::new(),
        };
        self.waiting.retain_mut(|entry| {
            let cut = cut_off(&mut entry.callers, now);
            let left = !entry.callers.is_empty();
            if left && entry.turn.command.is_mutation() {
                // For the callers that are left it will still be sent, under
                // the same id: nobody may be told that it will not.
                let going_on = cut.into_iter().map(|to| (entry.turn.clone(), to));
                expired.running.extend(going_on);
                return true;
            }
            let count = cut.len();
            expired
                .waiting
                .extend(cut.into_iter().enumerate().map(|(at, to)| Cut {
                    turn: entry.turn.clone(),
                    to,
                    last: !left && at + 1 == count,
                }));
            left
        });
        if let Some(entry) = &mut self.running {
            let cut = cut_off(&mut entry.callers, now);
            expired
                .running
                .extend(cut.into_iter().map(|to| (entry.turn.clone(), to)));
        }
        expired
    }

    /// When [`expire`](Self::expire) will next have something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let entries = self.waiting.iter().chain(&self.running);
        entries
            .flat_map(|entry| &entry.callers)
            .filter_map(|caller| caller.deadline)
            .min()
    }

    /// Takes out everything that has not started.
    pub(crate) fn drain(&mut self) -> Vec<Cut<W>> {
        let mut cut = Vec::new();
        for Entry { turn, callers } in self.waiting.drain(..) {
            let count = callers.len();
            cut.extend(callers.into_iter().enumerate().map(|(at, caller)| Cut {
                turn: turn.clone(),
                to: caller.to,
                last: at + 1 == count,
            }));
        }
        cut
    }

    /// The callers whose leave has been withdrawn before their command started.
    /// One that nobody has leave for leaves the queue with the last of them.
    pub(crate) fn withdraw(&mut self) -> Vec<(Cut<W>, Withdrawn)> {
        let mut cut = Vec::new();
        self.waiting.retain_mut(|Entry { turn, callers }| {
            if !leaves_of(turn, callers).any(Leave::is_withdrawn) {
                return true;
            }
            let first = cut.len();
            for caller in mem::take(callers) {
                match caller.leave.withdrawn() {
                    Some(withdrawn) => {
                        let (turn, to) = (turn.clone(), caller.to);
                        let last = false;
                        cut.push((Cut { turn, to, last }, withdrawn));
                    }
                    None => callers.push(caller),
                }
            }
            match (callers.first(), cut[first..].last_mut()) {
                (Some(caller), _) => turn.leave = caller.leave.clone(),
                (None, Some((cut, _))) => cut.last = true,
                (None, None) => {}
            }
            !callers.is_empty()
        });
        cut
    }

    /// The leaves by which what has not started may.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = &Leave> {
        let entries = self.waiting.iter();
        entries.flat_map(|entry| leaves_of(&entry.turn, &entry.callers))
    }

    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The command that runs.
    pub(crate) fn running(&self) -> Option<&Turn<Point>> {
        self.running.as_ref().map(|entry| &entry.turn)
    }
}

/// A command's own leave, which may be that of somebody who has left, and those
/// of its callers.
fn leaves_of<'a, W>(
    turn: &'a Turn<Point>,
    callers: &'a [Waiter<W>],
) -> impl Iterator<Item = &'a Leave> + use<'a, W> {
    std::iter::once(&turn.leave).chain(callers.iter().map(|caller| &caller.leave))
}

/// Takes out the callers whose deadline is not after `now`.
fn cut_off<W>(callers: &mut Vec<Waiter<W>>, now: Instant) -> Vec<W> {
    let late = |caller: &mut Waiter<W>| caller.deadline.is_some_and(|deadline| deadline <= now);
    callers
        .extract_if(.., late)
        .map(|caller| caller.to)
        .collect()
}

/// The app, if the command is a snapshot.
fn snapshot_of(command: &Command<Point>) -> Option<&BundleId> {
    match command {
        Command::App(AppCommand { bundle_id, action }) => match action {
            AppAction::Snapshot => Some(bundle_id),
            AppAction::Viewport
            | AppAction::Tap { .. }
            | AppAction::LongPress { .. }
            | AppAction::Drag { .. }
            | AppAction::Type { .. }
            | AppAction::KeyboardReturn
            | AppAction::KeyboardDelete => None,
        },
        Command::Device(_) => None,
    }
}

#[cfg(test)]
mod tests;
