//! What goes wrong with a launch, as data.
//!
//! | step | where it is | mishaps |
//! |---|---|---|
//! | start | before it listens | `exits`, `never_listens`, `listens_late`, `listener_failed` |
//! | line | how it says where it listens | `port_zero`, `split_line`, `long_line` |
//! | life | while it serves | `dies`, `listens_again` |
//! | age | how long it has been up | `aged` |
//! | signal | it is to end | `ignores_sigterm` |
//! | group | its process group | `leaves_child` |
//! | cable | the phone is unplugged | `stays_when_unplugged` |
//!
//! Like the faults of commands, the first that waits for a step is the one that
//! is used there, at most one per step, so that several can befall one launch
//! and two of one step befall one launch after the other.
//!
//! Invariant: a fault applies `times` times and is gone.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One mishap that waits for a launch. In a scenario file:
/// `{ times = 5, inject = "never_listens" }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFault {
    /// How many launches it befalls.
    #[serde(default = "once")]
    pub times: u32,
    /// How many launches it lets pass first.
    #[serde(default)]
    pub skip: u32,
    /// What goes wrong.
    pub inject: Mishap,
}

fn once() -> u32 {
    1
}

/// What goes wrong with a launch. Durations are the phone's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Mishap {
    /// It exits before the runner starts.
    Exits {
        /// The exit code.
        #[serde(default = "test_failure")]
        code: u8,
        /// What it says to that, on stderr.
        #[serde(default)]
        message: String,
    },
    /// It starts and says nothing more.
    NeverListens,
    /// It takes this much longer to listen.
    ListensLate {
        /// How much longer.
        #[serde(with = "humantime_serde")]
        by: Duration,
    },
    /// The listener fails, and the process stays.
    ListenerFailed {
        /// The error that it names.
        #[serde(default)]
        error: String,
    },
    /// It says port 0 before it says its port.
    PortZero,
    /// It writes the line with its port in two parts, cut within the number.
    SplitLine {
        /// The time between them.
        #[serde(with = "humantime_serde")]
        pause: Duration,
    },
    /// It prints a line of this length before it says its port.
    LongLine {
        /// The length.
        bytes: usize,
    },
    /// The runner dies when it has served for so long.
    Dies {
        /// Since it listened.
        #[serde(with = "humantime_serde")]
        after: Duration,
    },
    /// The runner starts again within the same launch, and says so.
    ListensAgain {
        /// Since it listened.
        #[serde(with = "humantime_serde")]
        after: Duration,
        /// Where; absent for any port that is free.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    },
    /// The runner has been up for so long already; its session ends at 24 h.
    Aged {
        /// For how long.
        #[serde(with = "humantime_serde")]
        uptime: Duration,
    },
    /// SIGTERM does not end the process.
    IgnoresSigterm,
    /// The process leaves a child in its group that SIGTERM does not end.
    LeavesChild,
    /// The runner goes on without its cable.
    StaysWhenUnplugged,
}

/// The code of a test run that failed.
fn test_failure() -> u8 {
    super::run::TEST_FAILURE
}

/// The point of a launch at which a mishap applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Start,
    Line,
    Life,
    Age,
    Signal,
    Group,
    Cable,
}

impl Mishap {
    pub(crate) fn step(&self) -> Step {
        match self {
            Self::Exits { .. }
            | Self::NeverListens
            | Self::ListensLate { .. }
            | Self::ListenerFailed { .. } => Step::Start,
            Self::PortZero | Self::SplitLine { .. } | Self::LongLine { .. } => Step::Line,
            Self::Dies { .. } | Self::ListensAgain { .. } => Step::Life,
            Self::Aged { .. } => Step::Age,
            Self::IgnoresSigterm => Step::Signal,
            Self::LeavesChild => Step::Group,
            Self::StaysWhenUnplugged => Step::Cable,
        }
    }
}

impl From<Mishap> for LaunchFault {
    fn from(inject: Mishap) -> Self {
        Self {
            times: 1,
            skip: 0,
            inject,
        }
    }
}

impl LaunchFault {
    /// This many times, instead of once.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self { times, ..self }
    }

    /// Only after this many launches.
    #[must_use]
    pub fn skip(self, skip: u32) -> Self {
        Self { skip, ..self }
    }

    /// Refuses a fault that could never apply.
    pub fn check(&self) -> Result<(), InvalidLaunch> {
        if self.times == 0 {
            return Err(InvalidLaunch::Never);
        }
        Ok(())
    }
}

/// Why a launch, or a fault of one, makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLaunch {
    /// It applies no times.
    #[error("`times` must be at least 1")]
    Never,
    /// Two mishaps of one step in one request.
    #[error("two mishaps befall the same step of one launch")]
    Twice,
}

impl super::LaunchRequest {
    /// Refuses a request whose mishaps exclude each other.
    pub fn check(&self) -> Result<(), InvalidLaunch> {
        let steps = self.mishaps.iter().map(Mishap::step);
        let twice = steps.enumerate().any(|(at, step)| {
            self.mishaps
                .iter()
                .skip(at + 1)
                .any(|other| other.step() == step)
        });
        if twice {
            return Err(InvalidLaunch::Twice);
        }
        Ok(())
    }
}

/// The launch faults that wait on one phone.
#[derive(Debug, Default)]
pub(crate) struct LaunchFaults {
    waiting: VecDeque<LaunchFault>,
}

impl LaunchFaults {
    pub(crate) fn push(&mut self, fault: LaunchFault) {
        if fault.times > 0 {
            self.waiting.push_back(fault);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }

    /// Those that still wait, each with what is left of it.
    pub(crate) fn waiting(&self) -> Vec<LaunchFault> {
        self.waiting.iter().cloned().collect()
    }

    /// What befalls a launch that comes to this step, if anything does.
    pub(crate) fn take(&mut self, step: Step) -> Option<Mishap> {
        let fits = |fault: &LaunchFault| fault.inject.step() == step;
        let at = self.waiting.iter().position(fits)?;
        let fault = self.waiting.get_mut(at)?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        fault.times -= 1;
        let inject = fault.inject.clone();
        if fault.times == 0 {
            self.waiting.remove(at);
        }
        Some(inject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(all: impl IntoIterator<Item = LaunchFault>) -> LaunchFaults {
        let mut faults = LaunchFaults::default();
        all.into_iter().for_each(|fault| faults.push(fault));
        faults
    }

    #[test]
    fn faults_of_one_step_befall_one_launch_after_the_other() {
        let mut faults = faults([
            LaunchFault::from(Mishap::NeverListens).times(2),
            Mishap::IgnoresSigterm.into(),
            LaunchFault::from(Mishap::ListenerFailed {
                error: String::new(),
            })
            .skip(1),
        ]);
        assert_eq!(faults.take(Step::Start), Some(Mishap::NeverListens));
        assert_eq!(faults.take(Step::Signal), Some(Mishap::IgnoresSigterm));
        assert_eq!(faults.take(Step::Signal), None);
        assert_eq!(faults.take(Step::Start), Some(Mishap::NeverListens));
        assert_eq!(faults.take(Step::Start), None);
        assert!(faults.take(Step::Start).is_some());
        assert_eq!(faults.waiting(), []);
    }

    #[test]
    fn a_request_has_one_mishap_per_step() {
        let request = |mishaps| super::super::LaunchRequest { port: 0, mishaps };
        let both = vec![Mishap::IgnoresSigterm, Mishap::LeavesChild];
        assert_eq!(request(both).check(), Ok(()));
        let twice = vec![Mishap::NeverListens, Mishap::PortZero, Mishap::NeverListens];
        assert_eq!(request(twice).check(), Err(InvalidLaunch::Twice));
    }
}
