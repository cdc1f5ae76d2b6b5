//! What a caller hands in and what it gets back when all went well.

use std::time::Duration;

use fleetgate_runner::{Command, CommandId, CommandKind, Effect, Fate, Point, Reply};
use tokio::time::Instant;

use crate::leave::Leave;
use crate::origin::Origin;

/// One command for one device.
#[derive(Debug, Clone)]
pub struct Job {
    /// What it is known by, here, in the ledger and on the phone. A job with the
    /// id of one that has not ended joins it, if it asks for the same; the id of
    /// a mutation that has ended is refused by the ledger.
    pub command_id: CommandId,
    /// What to do.
    pub command: Command<Point>,
    /// When its caller stops waiting, the wait for a turn included.
    pub deadline: Option<Instant>,
    /// Who asked, for the record.
    pub origin: Origin,
    /// By whose leave it is sent. For a caller that joins a command it is the
    /// first's that counts, but that each who shares a snapshot has its own.
    pub leave: Leave,
}

/// The facts about one command that go with every answer, good or bad.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// Which command. For a caller that shares another's snapshot: the other's.
    pub command_id: CommandId,
    /// What kind of command.
    pub kind: CommandKind,
    /// What became of it.
    pub fate: Fate,
    /// What it did to the device.
    pub effect: Effect,
    /// The runner brought the app to the front, be it only for the viewport
    /// that was read first. False where the journal is all that is known of a
    /// failure: it does not hold this.
    pub reactivated: bool,
    /// The runner's doubt about a success.
    pub warning: Option<String>,
    /// How often it was tried, from 0. Status requests made to recover its
    /// reply do not count.
    pub attempts: u32,
    /// The answer comes from the runner's journal, the reply having been lost.
    pub recovered: bool,
    /// How long it waited for its turn.
    pub queue_wait: Duration,
    /// From its turn's begin to its verdict: connections, attempts, the pauses
    /// between them and recovery. Reading a viewport first is not in it; that
    /// is a command of its own.
    pub device_time: Duration,
}

/// A command that the runner carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    /// The facts.
    pub receipt: Receipt,
    /// The runner's reply; [`Reply::Done`] without a message if that is lost
    /// ([`Fate::CompletedResultLost`]).
    pub reply: Reply,
}
