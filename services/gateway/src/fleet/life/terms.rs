//! What a life is told, and what it says.

use std::time::Duration;

use fleetgate_device::MuxDeviceId;
use fleetgate_runner::RunnerStatus;
use fleetgate_session::Condition;

use super::words::{Flaw, Reason, State};

/// How a phone's runner comes up, as far as its life is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Nobody knows where it is.
    Unknown,
    /// Somebody else sees to it.
    Static { port: u16 },
    /// A command is run, which may take so long until the runner answers.
    Command {
        /// Tells this command from any other.
        identity: u64,
        start_timeout: Duration,
    },
}

/// Where a phone hangs by cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Which usbmuxd.
    pub(crate) host: usize,
    /// The generation of its connection in which the phone was announced.
    pub(crate) generation: u64,
    /// The phone's number in it.
    pub(crate) number: Option<MuxDeviceId>,
    /// This is what was known last.
    pub(crate) stale: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// It is there, or is not.
    Presence(Option<Seen>),
    /// Its process did something.
    Process(Process),
    /// The question of this epoch was answered, or was not.
    Answer { epoch: u64, heard: Heard },
    /// The session knows how the runner fares.
    Condition(Condition),
    /// The session did not reach it.
    Unreachable,
    /// Nothing is in flight on the lane.
    Idle,
    /// An operator wants it recycled.
    Recycle { force: bool, reason: String },
    /// Its runner comes up in another way from now on.
    Plan(Plan),
    /// Nothing is to be launched any more, and what was launched is to end.
    Close,
    /// Time has passed.
    Tick,
}

/// What a launched process did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Process {
    Started,
    NotStarted(String),
    Listening(u16),
    ListenerFailed(String),
    Exited(String),
    /// It has ended, as was asked for, with all that it had started.
    Stopped,
}

/// What a question came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Heard {
    /// The runner's status.
    Status(RunnerStatus),
    /// The runner answered, with something else.
    SomethingElse,
    /// It did not.
    Silence(String),
    /// It could not be asked: not by its own fault.
    NoWay(String),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Launch a process, and tell of it. It has none.
    Start,
    /// End the process however far it is, and tell when it has.
    Stop,
    /// Ask the runner for its status; any earlier question is void.
    Ask {
        epoch: u64,
        /// It is coming up, and has little time for each answer.
        readiness: bool,
    },
    /// Put on record that it is left alone, or is no more.
    Quarantine(Option<String>),
}

/// It went through something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) reason: Reason,
    pub(crate) detail: Option<String>,
}

/// All that follows from one input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) acts: Vec<Act>,
    pub(crate) moves: Vec<Move>,
    /// The alarm about drift was raised or has ended.
    pub(crate) alarm: Option<Drift>,
    /// A launch has failed.
    pub(crate) flaw: Option<(Flaw, String)>,
    /// The runner has come up.
    pub(crate) is_up: bool,
}

/// What became of the alarm about a runner that drifts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Drift {
    /// It was raised, with these words.
    Raised(String),
    Ended,
}

/// When nothing is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idleness {
    /// While commands wait: what is in flight is to end.
    Held,
    /// Of itself, with nobody waiting.
    Natural,
}
