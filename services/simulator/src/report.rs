//! What can be seen of a phone from outside: its effects first of all.
//!
//! A reply says what a runner claims; these say what really happened. Tests
//! assert on them and the control API serves them as JSON. Typed text is in no
//! log here: of it, only the screen knows more than the length.

use std::time::Duration;

use fleetgate_runner::{CommandId, CommandKind, RunnerCode, RunnerState};
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::launch::LaunchFault;
use crate::lockdown::Lockdown;
use crate::ui::ScreenSummary;

/// How a phone hangs on its usbmuxd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// By cable: the only way to its runner.
    Usb,
    /// Over Wi-Fi: listed, and refuses the runner's port.
    Network,
}

/// Something that a command did to a phone. One per execution of a mutation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObservedEffect {
    /// Counts the phone's effects, from 1.
    pub seq: u64,
    /// The command's id, if it had one.
    pub command_id: Option<CommandId>,
    /// Which command.
    pub kind: CommandKind,
    /// What it did, in words.
    pub what: String,
    /// Real time since the lab started.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
}

/// A request that a runner read, whatever became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Arrival {
    /// The command's id, if it had one.
    pub command_id: Option<CommandId>,
    /// Which command.
    pub kind: CommandKind,
    /// How many commands the runner had in hand when it came.
    pub beside: usize,
    /// Real time since the lab started.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
}

/// A command that came to the head of a runner's queue and was turned away
/// without having run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decline {
    /// The command's id, if it had one.
    pub command_id: Option<CommandId>,
    /// Which command.
    pub kind: CommandKind,
    /// `RUNNER_BUSY` or `RUNNER_WEDGED`.
    pub code: RunnerCode,
    /// Real time since the lab started.
    #[serde(with = "humantime_serde")]
    pub at: Duration,
}

/// How often usbmuxd was asked for a connection to a phone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Connects {
    /// By the id of its cable.
    pub usb: u64,
    /// By the id of its network twin.
    pub network: u64,
    /// How many of both did not become a pipe.
    pub refused: u64,
    /// To lockdown's port, which the others do not count.
    pub lockdown: u64,
}

/// The runner that is up on a phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunnerReport {
    /// The port that it listens on.
    pub port: u16,
    /// The launch that it belongs to; none if it was there by itself.
    pub launch: Option<u64>,
    /// What its `status` says.
    pub state: RunnerState,
    /// The phone's time since it started.
    #[serde(with = "humantime_serde")]
    pub uptime: Duration,
    /// Issues muted since it started.
    pub suppressed_issues: u64,
    /// Failures recorded since it started.
    pub recorded_failures: u64,
}

/// Everything that can be seen of a phone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhoneReport {
    /// Its UDID.
    pub udid: String,
    /// Its name.
    pub name: String,
    /// Its model.
    pub model: String,
    /// Its version of iOS.
    pub os_version: String,
    /// The transports that it hangs on.
    pub plugged: Vec<Transport>,
    /// Whether it has paired with this host.
    pub trusted: bool,
    /// How its lockdown answers.
    pub lockdown: Lockdown,
    /// Whether its screen is locked.
    pub locked: bool,
    /// Its runner; none if none is up.
    pub runner: Option<RunnerReport>,
    /// How many runners have been started on it.
    pub incarnations: u64,
    /// The launch that is under way, counted from 1; its runner may be up.
    pub launch: Option<u64>,
    /// How many launches there have been.
    pub launches: u64,
    /// Commands that its runner took and has not yet answered.
    pub in_flight: usize,
    /// The most of them that there ever were at once.
    pub max_in_flight: usize,
    /// Duplicates that attached to a command in flight.
    pub coalesced: u64,
    /// How often an app was brought to the front by a command.
    pub refronts: u64,
    /// The connections asked for.
    pub connects: Connects,
    /// All effects ever; [`PhoneReport::effects`] holds the latest of them.
    pub effects_total: u64,
    /// The latest effects, oldest first.
    pub effects: Vec<ObservedEffect>,
    /// The latest requests read, oldest first.
    pub arrivals: Vec<Arrival>,
    /// The latest commands turned away, oldest first.
    pub declines: Vec<Decline>,
    /// The faults that still wait.
    pub faults: Vec<Fault>,
    /// Those that wait for a launch.
    pub launch_faults: Vec<LaunchFault>,
    /// What its screen shows.
    pub screen: ScreenSummary,
}

impl PhoneReport {
    /// How many times the command with this id had its effect.
    pub fn effects_of(&self, id: &CommandId) -> usize {
        self.effects
            .iter()
            .filter(|effect| effect.command_id.as_ref() == Some(id))
            .count()
    }

    /// How many requests of this kind were read.
    pub fn arrivals_of(&self, kind: CommandKind) -> usize {
        self.arrivals
            .iter()
            .filter(|arrival| arrival.kind == kind)
            .count()
    }
}
