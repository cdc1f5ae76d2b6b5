//! Whether the process that wrote a record still lives.
//!
//! A process is told from another that has its number by when it began. On
//! Linux that is counted in ticks since the boot; the boot and the number space
//! that it is seen in are part of it. Elsewhere `ps` says it to the second.
//! Neither changes while the process lives, whatever happens to the clock.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::IdentityError;

/// When a process began, in words that only ever are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessStart {
    /// Which host counted: a home may be that of several.
    host: String,
    /// What it counted from.
    epoch: String,
    /// Which numbers of processes it saw: in another container the same
    /// number is another process.
    space: String,
    /// What it counted.
    at: String,
}

/// What can be known of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    Lives,
    Ended,
    /// It is, or was, where this process cannot see it.
    OutOfSight,
}

impl ProcessStart {
    /// Of the process that asks.
    pub fn of_this_process() -> Result<Self, IdentityError> {
        let path = PathBuf::from(source::PLACE);
        let here = Here::look().map_err(IdentityError::file("read", &path))?;
        let at = source::start(std::process::id());
        let at = at.map_err(IdentityError::file("read", &path))?;
        let gone = || IdentityError::Content {
            path,
            reason: "this process is not there".to_owned(),
        };
        Ok(Self {
            host: here.host,
            epoch: here.epoch,
            space: here.space,
            at: at.ok_or_else(gone)?,
        })
    }

    /// Whether the process of this number that began then still lives.
    pub(super) fn life(&self, pid: u32) -> Life {
        let Ok(here) = Here::look() else {
            return Life::OutOfSight;
        };
        if self.host != here.host {
            return Life::OutOfSight;
        }
        if self.epoch != here.epoch {
            return Life::Ended;
        }
        if self.space != here.space {
            return Life::OutOfSight;
        }
        match source::start(pid) {
            Ok(Some(at)) if at == self.at => Life::Lives,
            Ok(_) => Life::Ended,
            Err(_) => Life::OutOfSight,
        }
    }
}

/// Where this process looks from.
struct Here {
    host: String,
    epoch: String,
    space: String,
}

impl Here {
    fn look() -> std::io::Result<Self> {
        let system = rustix::system::uname();
        Ok(Self {
            host: system.nodename().to_string_lossy().into_owned(),
            epoch: source::epoch()?,
            space: source::space(),
        })
    }
}

#[cfg(target_os = "linux")]
mod source {
    use std::fs;
    use std::io::{self, ErrorKind};

    use rustix::io::Errno;

    pub(super) const PLACE: &str = "/proc/self/stat";

    pub(super) fn epoch() -> io::Result<String> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        Ok(boot.trim().to_owned())
    }

    pub(super) fn space() -> String {
        let space = fs::read_link("/proc/self/ns/pid");
        space.map_or_else(|_| String::new(), |space| space.display().to_string())
    }

    pub(super) fn start(pid: u32) -> io::Result<Option<String>> {
        match fs::read(format!("/proc/{pid}/stat")) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads `pid (name) state … threads 0 start …`. The name may hold
    /// anything, parentheses too. A process that has ended and that only its
    /// parent still remembers is none.
    pub(super) fn parse(text: &[u8]) -> io::Result<Option<String>> {
        let fields = || {
            let after = text.iter().rposition(|byte| *byte == b')')? + 1;
            let fields = str::from_utf8(text.get(after..)?).ok()?;
            let fields: Vec<_> = fields.split_ascii_whitespace().collect();
            let threads: u32 = fields.get(17)?.parse().ok()?;
            // The first thread may end before the others.
            let ended = matches!(*fields.first()?, "Z" | "X" | "x") && threads <= 1;
            let start = *fields.get(19)?;
            Some((!ended).then(|| start.to_owned()))
        };
        fields().ok_or_else(|| io::Error::from(ErrorKind::InvalidData))
    }
}

#[cfg(not(target_os = "linux"))]
mod source {
    use std::io;
    use std::process::{Command, Stdio};

    pub(super) const PLACE: &str = "/bin/ps";

    #[expect(clippy::unnecessary_wraps, reason = "it may fail elsewhere")]
    pub(super) fn epoch() -> io::Result<String> {
        // A start is a date.
        Ok("ps".to_owned())
    }

    pub(super) fn space() -> String {
        String::new()
    }

    pub(super) fn start(pid: u32) -> io::Result<Option<String>> {
        let listed = Command::new(PLACE)
            .args(["-p", &pid.to_string(), "-o", "stat=", "-o", "lstart="])
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let mut words = listed.split_ascii_whitespace();
        let Some(state) = words.next().filter(|state| !state.starts_with('Z')) else {
            return Ok(None);
        };
        let start = words.collect::<Vec<_>>().join(" ");
        Ok((!state.is_empty() && !start.is_empty()).then_some(start))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;

    fn start(text: &str) -> Option<String> {
        source::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_name_may_hold_what_it_likes() {
        let text = "7 (a) Z 1 9) b) S 1 42 42 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 3 0 987654 0 0";
        assert_eq!(start(text).as_deref(), Some("987654"));
    }

    #[test]
    fn a_process_that_only_its_parent_remembers_has_ended() {
        let zombie = |threads: u32| {
            start(&format!(
                "7 (a) Z 1 42 42 0 -1 0 1 0 0 0 1 1 0 0 20 0 {threads} 0 9 0 0"
            ))
        };
        assert_eq!(zombie(1), None);
        assert_eq!(zombie(2).as_deref(), Some("9"));
    }

    #[test]
    fn a_line_of_another_form_is_an_error() {
        for text in [
            "",
            "7 (a",
            "7 (a) S 1 2",
            "7 (a) S 1 1 42 0 -1 0 1 0 0 0 1 1 0 0 20 0 x 0 9",
        ] {
            assert!(source::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn this_process_lives() {
        let start = ProcessStart::of_this_process().unwrap();
        assert_eq!(start.life(std::process::id()), Life::Lives);
        assert_eq!(start.life(u32::MAX), Life::Ended);
    }
}
