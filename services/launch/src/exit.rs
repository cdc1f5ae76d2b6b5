//! How a process ended, as its parent is told.

use std::fmt;
use std::io;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It has ended, and nobody can say how.
    Untold {
        /// Why: an error number of the system, if it gave one.
        errno: Option<i32>,
    },
}

impl ExitStatus {
    /// Of an end for which the kernel gives a status or a signal.
    pub(crate) fn of(code: Option<i32>, signal: Option<i32>) -> Self {
        match (code, signal) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Untold { errno: None },
        }
    }

    /// Of an end that could not be asked about.
    pub(crate) fn untold(error: &io::Error) -> Self {
        Self::Untold {
            errno: error.raw_os_error(),
        }
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Code(code) => write!(f, "exited with status {code}"),
            Self::Signal(signal) => match signal_name(signal) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {signal}"),
            },
            Self::Untold { errno: Some(errno) } => {
                let error = io::Error::from_raw_os_error(errno);
                write!(f, "ended, and how cannot be told: {error}")
            }
            Self::Untold { errno: None } => f.write_str("ended, and how cannot be told"),
        }
    }
}

/// The names of those that have the same number everywhere.
fn signal_name(signal: i32) -> Option<&'static str> {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_in_words() {
        let told = [
            ExitStatus::of(Some(65), None),
            ExitStatus::of(None, Some(11)),
            ExitStatus::of(None, Some(64)),
            ExitStatus::of(None, None),
            ExitStatus::untold(&io::Error::other("no number")),
        ];
        assert_eq!(
            told.map(|status| status.to_string()),
            [
                "exited with status 65",
                "ended by SIGSEGV",
                "ended by signal 64",
                "ended, and how cannot be told",
                "ended, and how cannot be told",
            ]
        );
        let untold = ExitStatus::untold(&io::Error::from_raw_os_error(10)).to_string();
        assert!(
            untold.starts_with("ended, and how cannot be told: "),
            "{untold}"
        );
    }
}
