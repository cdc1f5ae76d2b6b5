//! The runner's journal: what became of the last 64 command ids.
//!
//! An id is touched when its command is accepted and when it ends; the least
//! recently touched makes way for the 65th. Starting a command and looking an
//! id up touch nothing. An id that was evicted while its command ran is back
//! when the command ends. A reply is kept only if its command retains replies
//! and the envelope is at most 16 KiB.
//!
//! Pure. Invariant: never more than [`MAX_ENTRIES`] ids.

use std::collections::HashMap;

use bytes::Bytes;
use fleetgate_runner::{CommandId, CommandKind, JournalEntry, JournalState, RunnerError};

/// How many ids the journal holds.
pub(crate) const MAX_ENTRIES: usize = 64;

/// The largest envelope that is kept.
pub(crate) const MAX_RETAINED_BYTES: usize = 16 * 1024;

#[derive(Debug)]
struct Slot {
    touched: u64,
    kind: CommandKind,
    state: JournalState,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    error: Option<RunnerError>,
    retained: Option<String>,
}

/// The journal of one runner process.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    clock: u64,
    slots: HashMap<CommandId, Slot>,
}

impl Journal {
    /// A command was taken into the queue; an older entry of its id is
    /// forgotten.
    pub(crate) fn accept(&mut self, id: &CommandId, kind: CommandKind) {
        self.put(id, kind, JournalState::Accepted, None);
    }

    /// A command came to the head of the queue.
    pub(crate) fn start(&mut self, id: &CommandId) {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.state = JournalState::Started;
        }
    }

    /// A command ended with this verdict and this envelope.
    pub(crate) fn finish(
        &mut self,
        id: &CommandId,
        kind: CommandKind,
        error: Option<RunnerError>,
        envelope: &Bytes,
    ) {
        let state = if error.is_some() {
            JournalState::Failed
        } else {
            JournalState::Completed
        };
        let retained = (kind.retains_response() && envelope.len() <= MAX_RETAINED_BYTES)
            .then(|| String::from_utf8_lossy(envelope).into_owned());
        self.put(id, kind, state, Some(Ended { error, retained }));
    }

    /// Forgets one id, as newer traffic would make it.
    pub(crate) fn evict(&mut self, id: &CommandId) {
        self.slots.remove(id);
    }

    /// What `status` with this id answers.
    pub(crate) fn look_up(&self, id: &CommandId) -> JournalEntry {
        let Some(slot) = self.slots.get(id) else {
            return JournalEntry {
                command_id: id.clone(),
                state: Some(JournalState::NotAccepted),
                command: None,
                response_ok: None,
                response_json: None,
                error: None,
            };
        };
        JournalEntry {
            command_id: id.clone(),
            state: Some(slot.state),
            command: Some(slot.kind.as_str().to_owned()),
            response_ok: slot.ended.as_ref().map(|ended| ended.error.is_none()),
            response_json: slot.ended.as_ref().and_then(|ended| ended.retained.clone()),
            error: slot.ended.as_ref().and_then(|ended| ended.error.clone()),
        }
    }

    fn put(
        &mut self,
        id: &CommandId,
        kind: CommandKind,
        state: JournalState,
        ended: Option<Ended>,
    ) {
        self.clock += 1;
        let slot = Slot {
            touched: self.clock,
            kind,
            state,
            ended,
        };
        self.slots.insert(id.clone(), slot);
        if self.slots.len() > MAX_ENTRIES
            && let Some(oldest) = self
                .slots
                .iter()
                .min_by_key(|(_, slot)| slot.touched)
                .map(|(id, _)| id.clone())
        {
            self.slots.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests;
