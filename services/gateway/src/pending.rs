//! Commands that are under way: from their admission to their end.
//!
//! A mutation gets its row at its turn and a read gets one at its end. Until
//! then a command that waits would look as if it had never been, so it is
//! noted here, in memory. The note also says what exactly was asked, so that a
//! second call with the same id is told from another command; to the letter,
//! which the ledger cannot. After a crash nothing is noted, and rightly: a
//! mutation without a row was not sent.
//!
//! ```text
//!   admit ──► noted, by as many callers as ask ──► a fate on record, or the end
//!                                                  without one ──► gone
//! ```
//!
//! Invariant: every note goes, whether its callers stay or not. A session ends
//! every mutation that it has let in with a record ([`crate::recorder`]). It
//! may drop a read that nobody waits for, and lets snapshots share a record, so
//! that the note of a read goes with its callers, and so does that of a
//! mutation that was not handed over yet. The answer to one that was is waited for
//! although its caller leaves ([`crate::core`]), so that it is heard if it was not
//! let in. What a panic leaves goes with age.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fleetgate_runner::{BundleId, Command, CommandId, CommandKind, Point, Udid};
use fleetgate_session::{Failed, Failure, Success};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use crate::convert::{Asked, Content, asked, types_other_text};

#[cfg(test)]
mod tests;

/// Longer than any command waits and runs.
const MAX_AGE: Duration = Duration::from_hours(24);

/// How many notes there are before the old ones are looked for.
const SWEEP_AT: usize = 4096;

/// One command that is under way.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// For which device.
    pub(crate) device: Udid,
    /// Since when.
    pub(crate) admitted: SystemTime,
    command: Arc<Command<Point>>,
    /// The fields of the request, as they go on record.
    pub(crate) asked: Map<String, Value>,
    since: Instant,
    /// Tells the note from a later one of the same id.
    serial: u64,
    /// Callers that wait.
    holders: usize,
    /// The first caller is there, or left without an answer: what the others
    /// are answered does not end the command.
    owned: bool,
    /// The command will end with a record, whether its callers stay or not.
    recorded: bool,
}

impl Note {
    /// Which command.
    pub(crate) fn kind(&self) -> CommandKind {
        self.command.kind()
    }

    /// The app that it names.
    pub(crate) fn app_bundle_id(&self) -> Option<&BundleId> {
        self.command.bundle_id()
    }

    fn differing(&self, device: &Udid, command: &Command<Point>) -> Vec<String> {
        let fields = asked(command);
        let theirs = Content {
            device,
            kind: command.kind(),
            app_bundle_id: command.bundle_id(),
            asked: &fields,
        };
        let ours = Content {
            device: &self.device,
            kind: self.kind(),
            app_bundle_id: self.app_bundle_id(),
            asked: &self.asked,
        };
        let mut differing = ours.differing(&theirs);
        let text = "text".to_owned();
        if types_other_text(&self.command, command) && !differing.contains(&text) {
            differing.push(text);
        }
        differing
    }
}

/// The commands that are under way. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    notes: Mutex<Notes>,
    moved: Notify,
}

#[derive(Debug, Default)]
struct Notes {
    by_id: HashMap<CommandId, Note>,
    serial: u64,
    /// How many the last look for old ones left.
    kept: usize,
}

impl Notes {
    fn add(&mut self, command_id: &CommandId, note: Note) {
        if self.by_id.len() >= SWEEP_AT.max(2 * self.kept) {
            self.by_id
                .retain(|_, kept| note.since - kept.since < MAX_AGE);
            self.kept = self.by_id.len();
        }
        self.by_id.insert(command_id.clone(), note);
    }
}

/// Another command with the same id is under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    /// The fields in which the two differ.
    pub(crate) fields: Vec<String>,
}

impl Pending {
    /// Notes a command that is about to be handed to its device's session, or
    /// joins the same command if it is under way.
    pub(crate) fn admit(&self, device: &Udid, asked: &Asked) -> Result<Admitted, Other> {
        let Asked {
            device: _,
            command_id,
            named: _,
            command,
            lease: _,
        } = asked;
        let mut notes = self.lock();
        if let Some(note) = notes.by_id.get_mut(command_id) {
            let fields = note.differing(device, command);
            if !fields.is_empty() {
                return Err(Other { fields });
            }
            note.holders += 1;
            // Whoever was first has been told the end, and those who joined are
            // about to be: what is asked for now is asked for anew.
            let first = !note.owned;
            if first {
                note.owned = true;
                note.recorded = false;
            }
            return Ok(Admitted::new(self, command_id, note, first));
        }
        notes.serial += 1;
        let note = Note {
            device: device.clone(),
            admitted: SystemTime::now(),
            command: Arc::new(command.clone()),
            asked: crate::convert::asked(command),
            since: Instant::now(),
            serial: notes.serial,
            holders: 1,
            owned: true,
            recorded: false,
        };
        let admitted = Admitted::new(self, command_id, &note, true);
        notes.add(command_id, note);
        Ok(admitted)
    }

    /// What is noted of a command.
    pub(crate) fn get(&self, command_id: &CommandId) -> Option<Note> {
        self.lock().by_id.get(command_id).cloned()
    }

    /// The command has ended.
    pub(crate) fn forget(&self, command_id: &CommandId) {
        self.lock().by_id.remove(command_id);
        self.0.moved.notify_waiters();
    }

    /// The next time that any command here is handed to its session, loses a
    /// caller or ends.
    pub(crate) fn moved(&self) -> Notified<'_> {
        self.0.moved.notified()
    }

    /// [`Pending::forget`] for when the guard is dropped.
    pub(crate) fn ending(&self, command_id: &CommandId) -> Ending {
        Ending {
            pending: self.clone(),
            command_id: command_id.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        // No use panics half-way, so that poisoned notes are whole.
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets a command when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the note"]
pub(crate) struct Ending {
    pending: Pending,
    command_id: CommandId,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.pending.forget(&self.command_id);
    }
}

/// What a caller knows of a command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It left without an answer.
    Untold,
    /// Its answer was that the command goes on.
    GoesOn,
    /// Its answer was the end, of the command or of its own part in it; or it
    /// left before its part began.
    Told,
}

/// One caller's part in a note.
#[derive(Debug)]
#[must_use = "a note that nobody takes away stays"]
pub(crate) struct Admitted {
    pending: Pending,
    command_id: CommandId,
    serial: u64,
    first: bool,
    end: End,
}

impl Admitted {
    fn new(pending: &Pending, command_id: &CommandId, note: &Note, first: bool) -> Self {
        Self {
            pending: pending.clone(),
            command_id: command_id.clone(),
            serial: note.serial,
            first,
            end: End::Told,
        }
    }

    /// True for whoever asked first of those who ask now.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// The command is not handed to a session: it has ended, or must not be.
    /// Dropping this is the same, for a caller that leaves meanwhile.
    pub(crate) fn withdrawn(self) {
        drop(self);
    }

    /// The command is about to be handed to a session, which ends a mutation
    /// with a record, whether its callers stay or not.
    pub(crate) fn handed_over(&mut self) {
        self.end = End::Untold;
        let mut notes = self.pending.lock();
        if let Some(note) = notes.by_id.get_mut(&self.command_id)
            && note.serial == self.serial
        {
            note.recorded |= note.command.is_mutation();
        }
        drop(notes);
        self.pending.0.moved.notify_waiters();
    }

    /// The session has answered.
    pub(crate) fn answered(mut self, answer: &Result<Success, Failed>) {
        self.end = match answer {
            // A receipt with another id is that of a snapshot that was shared.
            Err(Failed {
                failure: Failure::DeadlineExceeded,
                receipt,
            }) if receipt.command_id == self.command_id => End::GoesOn,
            Ok(_) | Err(_) => End::Told,
        };
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.pending.lock().leave(self);
        self.pending.0.moved.notify_waiters();
    }
}

impl Notes {
    fn leave(&mut self, admitted: &Admitted) {
        let Some(note) = self.by_id.get_mut(&admitted.command_id) else {
            return;
        };
        if note.serial != admitted.serial {
            return;
        }
        note.holders -= 1;
        let told_the_end = match admitted.end {
            End::Untold => false,
            End::GoesOn => {
                note.recorded = true;
                false
            }
            End::Told => {
                note.owned &= !admitted.first;
                !note.owned
            }
        };
        if note.holders == 0 && (told_the_end || !note.recorded) {
            self.by_id.remove(&admitted.command_id);
        }
    }
}
