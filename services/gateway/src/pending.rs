//! Commands that were admitted and of which the ledger has no row yet.
//!
//! A mutation gets its row at its turn and a read gets one at its end. Until
//! then a command that waits would look as if it had never been, so it is
//! noted here, in memory, from its admission to its first row. After a crash
//! nothing is noted, and rightly: a mutation without a row was not sent.
//!
//! ```text
//!   admit ──► noted ──► first row, or the end without one ──► gone
//! ```
//!
//! Invariant: every note goes, whether its caller stays or not. A session ends
//! every mutation that it has let in with a record ([`crate::recorder`]). It
//! may drop a read that nobody waits for, and lets snapshots share a record, so
//! that the note of a read goes with its caller. What is left is the mutation
//! that was not let in and whose caller left before it was told so: its note
//! goes with age.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fleetgate_runner::{BundleId, CommandId, CommandKind, Udid};
use fleetgate_session::{Failed, Failure, Success};

use tokio::time::Instant;

use crate::convert::Asked;

/// Longer than any command waits and runs.
const MAX_AGE: Duration = Duration::from_hours(24);

/// How many notes there are before the old ones are looked for.
const SWEEP_AT: usize = 4096;

/// One command without a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// For which device.
    pub(crate) device: Udid,
    /// Which command.
    pub(crate) kind: CommandKind,
    /// The app that it names.
    pub(crate) app_bundle_id: Option<BundleId>,
    /// Since when.
    pub(crate) admitted: SystemTime,
    since: Instant,
}

/// The commands that are known here only. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pending(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    notes: HashMap<CommandId, Note>,
    /// How many the last look for old ones left.
    kept: usize,
}

impl Notes {
    fn add(&mut self, command_id: CommandId, note: Note) {
        if self.notes.len() >= SWEEP_AT.max(2 * self.kept) {
            self.notes
                .retain(|_, kept| note.since - kept.since < MAX_AGE);
            self.kept = self.notes.len();
        }
        // Who uses an id a second time is refused in a moment, and the first
        // is not to be forgotten for that.
        self.notes.entry(command_id).or_insert(note);
    }
}

impl Pending {
    /// Notes a command that is about to be handed to its device's session.
    pub(crate) fn admit(&self, device: &Udid, asked: &Asked) -> Admitted {
        let note = Note {
            device: device.clone(),
            kind: asked.command.kind(),
            app_bundle_id: asked.command.bundle_id().cloned(),
            admitted: SystemTime::now(),
            since: Instant::now(),
        };
        let goes_on = note.kind.is_mutation();
        self.lock().add(asked.command_id.clone(), note);
        Admitted {
            pending: self.clone(),
            command_id: asked.command_id.clone(),
            goes_on,
        }
    }

    /// What is noted of a command.
    pub(crate) fn get(&self, command_id: &CommandId) -> Option<Note> {
        self.lock().notes.get(command_id).cloned()
    }

    /// The command has a row, or has ended and will have none.
    pub(crate) fn forget(&self, command_id: &CommandId) {
        self.lock().notes.remove(command_id);
    }

    /// [`Pending::forget`] for when the guard is dropped.
    pub(crate) fn ending(&self, command_id: &CommandId) -> Admitted {
        Admitted {
            pending: self.clone(),
            command_id: command_id.clone(),
            goes_on: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        // No use panics half-way, so that poisoned notes are whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The caller's part in a note.
#[derive(Debug)]
#[must_use = "a note that nobody takes away stays"]
pub(crate) struct Admitted {
    pending: Pending,
    command_id: CommandId,
    /// True if the session will end the command with a record of this id,
    /// whether its caller stays or not.
    goes_on: bool,
}

impl Admitted {
    /// The session has answered: the command has ended, unless it goes on
    /// without its caller.
    pub(crate) fn answered(mut self, answer: &Result<Success, Failed>) {
        self.goes_on = match answer {
            // A receipt with another id is that of a snapshot that was shared.
            Err(Failed {
                failure: Failure::DeadlineExceeded,
                receipt,
            }) => receipt.command_id == self.command_id,
            Ok(_) | Err(_) => false,
        };
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if !self.goes_on {
            self.pending.forget(&self.command_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_runner::{Command, DeviceCommand, Effect, Fate};
    use fleetgate_session::Receipt;

    use super::*;

    fn device() -> Udid {
        "00008110-000978540290401E".parse().unwrap()
    }

    fn asked(command: DeviceCommand) -> Asked {
        let (device, command_id) = ("phone".to_owned(), id("c-1"));
        Asked {
            device,
            command_id,
            command: Command::Device(command),
        }
    }

    fn id(text: &str) -> CommandId {
        text.parse().unwrap()
    }

    #[expect(clippy::result_large_err, reason = "what a session answers")]
    fn failed(command_id: &str, failure: Failure) -> Result<Success, Failed> {
        let receipt = Receipt {
            command_id: id(command_id),
            kind: CommandKind::Shutdown,
            fate: Fate::NotSent,
            effect: Effect::None,
            reactivated: false,
            warning: None,
            attempts: 0,
            recovered: false,
            queue_wait: Duration::ZERO,
            device_time: Duration::ZERO,
        };
        Err(Failed { receipt, failure })
    }

    fn is_noted(pending: &Pending) -> bool {
        pending.get(&id("c-1")).is_some()
    }

    #[test]
    fn a_mutation_stays_noted_when_its_caller_leaves_and_until_it_has_a_row() {
        let pending = Pending::default();
        drop(pending.admit(&device(), &asked(DeviceCommand::Shutdown)));
        assert!(is_noted(&pending));
        pending.forget(&id("c-1"));
        assert!(!is_noted(&pending));
    }

    #[test]
    fn the_note_of_a_read_goes_with_its_caller() {
        let pending = Pending::default();
        let admitted = pending.admit(&device(), &asked(DeviceCommand::Screenshot));
        assert!(is_noted(&pending));
        drop(admitted);
        assert!(!is_noted(&pending));
    }

    #[test]
    fn an_answer_ends_the_note_unless_the_command_goes_on() {
        let pending = Pending::default();
        let admit = || pending.admit(&device(), &asked(DeviceCommand::Screenshot));
        admit().answered(&failed("c-1", Failure::LaneFull { limit: 1 }));
        assert!(!is_noted(&pending));
        admit().answered(&failed("another", Failure::DeadlineExceeded));
        assert!(!is_noted(&pending));
        admit().answered(&failed("c-1", Failure::DeadlineExceeded));
        assert!(is_noted(&pending));
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_took_away_goes_with_age() {
        let pending = Pending::default();
        let admit = |number: usize| {
            let asked = Asked {
                command_id: id(&format!("c-{number}")),
                ..asked(DeviceCommand::Shutdown)
            };
            drop(pending.admit(&device(), &asked));
        };
        (0..SWEEP_AT).for_each(admit);
        tokio::time::advance(MAX_AGE).await;
        admit(SWEEP_AT);
        assert_eq!(pending.lock().notes.len(), 1);
    }
}
