//! The exit codes, which scripts rely on: they never change their meaning.
//!
//! This is the only place that turns an outcome into a number.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

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
}

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
        }
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
