//! The exit codes, which scripts rely on: they never change their meaning.
//!
//! This is the only place that turns an outcome into a number.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use rustix::process::Signal;

use crate::rejected::Rejected;

/// How a run of the binary ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what it was asked to.
    Done,
    /// It did not, for a reason that none of the others covers.
    Other,
    /// The request makes no sense.
    Usage,
    /// No such device or command.
    NotFound,
    /// Nothing happened: asking again is safe.
    Unavailable,
    /// The device gave a verdict against it.
    Failed,
    /// It may or may not have happened.
    FateUnknown,
    /// Something is wrong with the fleet.
    Unwell,
    /// The gateway does not know who calls, or does not let them.
    Denied,
    /// The phone is not leased to whoever asks.
    NoLease,
    /// A command was not started, or ended; its own code, or what a shell makes
    /// of the signal that ended it.
    Command(u8),
    /// The lease that a command ran under was lost.
    LeaseLost,
}

/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// The codes as `--help` tells them.
pub(crate) const HELP: &str = "\
Exit codes:
  0  done
  1  failed in some other way
  2  the request makes no sense
  3  no such device or command
  4  unavailable: nothing happened on the device, asking again is safe
  5  failed on the device
  6  fate unknown: look the command up before asking again
  7  doctor found an error
  8  not allowed: the credentials are missing, unknown or too weak
  9  no lease: it was not granted or has ended, or the phone is somebody else's

Errors go to stderr; with --output json they too are one JSON document.";

impl Exit {
    /// The number that the process ends with.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Other => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Unavailable => 4,
            Self::Failed => 5,
            Self::FateUnknown => 6,
            Self::Unwell => 7,
            Self::Denied => 8,
            Self::NoLease => 9,
            Self::Command(code) => code,
            Self::LeaseLost => 125,
        }
    }

    /// What a shell says of a command that a signal ended.
    pub(crate) fn by_signal(signal: Signal) -> Self {
        let code = BY_SIGNAL.saturating_add(signal.as_raw());
        Self::Command(u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// How a command ended.
    pub(crate) fn of_command(status: ExitStatus) -> Self {
        let signal = status
            .signal()
            .map(|signal| BY_SIGNAL.saturating_add(signal));
        let code = status.code().or(signal).unwrap_or(i32::MAX);
        Self::Command(u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// What an error ends the process with.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if let Some(rejected) = error.downcast_ref::<Rejected>() {
            rejected.exit()
        } else if error.is::<Misuse>() {
            Self::Usage
        } else if error.is::<Failed>() {
            Self::Failed
        } else if error.is::<Unwell>() {
            Self::Unwell
        } else if error.is::<NoLease>() {
            Self::NoLease
        } else if error.is::<LeaseLost>() {
            Self::LeaseLost
        } else if let Some(not_started) = error.downcast_ref::<NotStarted>() {
            Self::Command(not_started.code())
        } else {
            Self::Other
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// A request that makes no sense, found out only after the arguments were
/// parsed.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Misuse {}

/// Something that was begun and failed on the device later.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Failed {}

/// Errors among what `doctor` found; how many.
#[derive(Debug)]
pub(crate) struct Unwell(pub(crate) usize);

impl fmt::Display for Unwell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("one thing is wrong"),
            errors => write!(f, "{errors} things are wrong"),
        }
    }
}

impl Error for Unwell {}

/// A lease that was not granted.
#[derive(Debug)]
pub(crate) struct NoLease(pub(crate) String);

impl fmt::Display for NoLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for NoLease {}

/// A lease that was lost while a command ran under it.
#[derive(Debug)]
pub(crate) struct LeaseLost(pub(crate) String);

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for LeaseLost {}

/// A command that could not be started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    /// What was to be run.
    pub(crate) program: String,
    /// Why it was not.
    pub(crate) why: io::Error,
}

impl NotStarted {
    /// What a shell says of it.
    fn code(&self) -> u8 {
        if self.why.kind() == ErrorKind::NotFound {
            127
        } else {
            126
        }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot run {}", self.program)
    }
}

impl Error for NotStarted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_this_process_as_it_would_end_a_shell() {
        let ended = |raw| Exit::of_command(ExitStatus::from_raw(raw)).number();
        assert_eq!([ended(0), ended(7 << 8), ended(15)], [0, 7, 143]);
        assert_eq!(Exit::by_signal(Signal::INT).number(), 130);
    }

    #[test]
    fn a_command_that_cannot_be_started_is_told_apart_as_a_shell_does() {
        let code = |kind| {
            let error = NotStarted {
                program: "pytest".to_owned(),
                why: kind,
            };
            Exit::of(&error.into()).number()
        };
        assert_eq!(code(ErrorKind::NotFound.into()), 127);
        assert_eq!(code(ErrorKind::PermissionDenied.into()), 126);
    }
}
