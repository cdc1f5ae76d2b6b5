//! Those who wait for a command, those who are not let in, and those who come
//! out again before it has ended.

use fleetgate_runner::Point;
use tokio::time::Instant;

use crate::leave::Leave;
use crate::turn::Turn;

/// Somebody who waits for a command.
#[derive(Debug)]
pub(crate) struct Caller<W> {
    /// Until when.
    pub(crate) deadline: Option<Instant>,
    /// Where the answer goes.
    pub(crate) to: W,
}

/// A caller could not be let in.
#[derive(Debug)]
pub(crate) struct Refused<W> {
    /// Its command.
    pub(crate) turn: Turn<Point>,
    /// Where the refusal goes.
    pub(crate) to: W,
    /// Why.
    pub(crate) why: Refusal,
}

/// Why a caller was not let in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Too many wait.
    Full,
    /// Its id is another command's, which differs in these fields.
    Conflict(Vec<&'static str>),
}

/// The callers whose deadline has passed.
#[derive(Debug)]
pub(crate) struct Expired<W> {
    /// Whose command had not started, and will not for their sake.
    pub(crate) waiting: Vec<Cut<W>>,
    /// Whose command goes on.
    pub(crate) running: Vec<(Turn<Point>, W)>,
}

/// A caller whose command has not started.
#[derive(Debug)]
pub(crate) struct Cut<W> {
    /// The command.
    pub(crate) turn: Turn<Point>,
    /// Where the answer goes.
    pub(crate) to: W,
    /// True if nobody waits for the command any more: it has left the queue.
    pub(crate) last: bool,
}

/// A caller that was let in.
#[derive(Debug)]
pub(super) struct Waiter<W> {
    /// Until when it waits.
    pub(super) deadline: Option<Instant>,
    /// Where the answer goes.
    pub(super) to: W,
    /// By whose leave the command may be sent for its sake.
    pub(super) leave: Leave,
}

impl<W> Waiter<W> {
    /// `caller`, with `leave` for what it waits for.
    pub(super) fn new(caller: Caller<W>, leave: Leave) -> Self {
        let Caller { deadline, to } = caller;
        Self {
            deadline,
            to,
            leave,
        }
    }
}
