//! The words for what a phone is and goes through: the API's and the ledger's.

use std::fmt;

use fleetgate_proto::v1 as pb;

/// What a phone is, as the API has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Detached,
    Attached,
    Reconciling,
    Draining,
    Wedged,
    Launching,
    Ready,
    Recycling,
    Quarantined,
}

impl From<State> for pb::DeviceState {
    fn from(state: State) -> Self {
        match state {
            State::Detached => Self::Detached,
            State::Attached => Self::Attached,
            State::Reconciling => Self::Reconciling,
            State::Draining => Self::Draining,
            State::Wedged => Self::Wedged,
            State::Launching => Self::Launching,
            State::Ready => Self::Ready,
            State::Recycling => Self::Recycling,
            State::Quarantined => Self::Quarantined,
        }
    }
}

/// Why it is that, or what it went through. The codes are stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Plugged,
    Unplugged,
    Replugged,
    HostLost,
    HostBack,
    RunnerUnknown,
    RunnerReady,
    RunnerUnreachable,
    RunnerDied,
    RunnerRestarted,
    RunnerWedged,
    RunnerBusy,
    RunnerFree,
    RunnerAge,
    RunnerDrift,
    Launching,
    LaunchFailed,
    RecycleRequested,
    Quarantined,
    QuarantineLeft,
    FateLookedInto,
    FateSettled,
}

impl Reason {
    /// The code.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Plugged => "PLUGGED",
            Self::Unplugged => "UNPLUGGED",
            Self::Replugged => "REPLUGGED",
            Self::HostLost => "HOST_LOST",
            Self::HostBack => "HOST_BACK",
            Self::RunnerUnknown => "RUNNER_UNKNOWN",
            Self::RunnerReady => "RUNNER_READY",
            Self::RunnerUnreachable => "RUNNER_UNREACHABLE",
            Self::RunnerDied => "RUNNER_DIED",
            Self::RunnerRestarted => "RUNNER_RESTARTED",
            Self::RunnerWedged => "RUNNER_WEDGED",
            Self::RunnerBusy => "RUNNER_BUSY",
            Self::RunnerFree => "RUNNER_FREE",
            Self::RunnerAge => "RUNNER_AGE",
            Self::RunnerDrift => "RUNNER_DRIFT",
            Self::Launching => "LAUNCHING",
            Self::LaunchFailed => "LAUNCH_FAILED",
            Self::RecycleRequested => "RECYCLE_REQUESTED",
            Self::Quarantined => "QUARANTINED",
            Self::QuarantineLeft => "QUARANTINE_LEFT",
            Self::FateLookedInto => "FATE_LOOKED_INTO",
            Self::FateSettled => "FATE_SETTLED",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a launch failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The runner said that it cannot listen.
    ListenerFailed,
    /// Its process ended.
    Exited,
    /// It did not say where it listens in time.
    StartTimeout,
    /// The process could not be started.
    NotStarted,
    /// It said where it listens, and did not answer there in time.
    NotReady,
}

impl Flaw {
    /// The code.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ListenerFailed => "LISTENER_FAILED",
            Self::Exited => "EXITED",
            Self::StartTimeout => "START_TIMEOUT",
            Self::NotStarted => "NOT_STARTED",
            Self::NotReady => "NOT_READY",
        }
    }
}
