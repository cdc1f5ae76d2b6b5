//! Whether the process that wrote a record still lives.
//!
//! A process is told from another that has its number by when it began. On
//! Linux that is counted in ticks since the boot; the boot and the number space
//! that it is seen in are part of it. Elsewhere `ps` says it to the second.
//! Neither changes while the process lives, whatever happens to the clock.

#[cfg(target_os = "linux")]
mod proc;
// Compiled for its tests, too: it is what runs where the phones are.
#[cfg(any(not(target_os = "linux"), test))]
mod ps;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::IdentityError;

#[cfg(target_os = "linux")]
use proc as source;
#[cfg(not(target_os = "linux"))]
use ps as source;

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
        // A host may get another name while it runs; what it counts from then
        // says that it is the same.
        let unseen = if self.host == here.host {
            Life::Ended
        } else {
            Life::OutOfSight
        };
        if self.epoch != here.epoch {
            return unseen;
        }
        if self.space != here.space {
            return Life::OutOfSight;
        }
        match source::start(pid) {
            Ok(Some(at)) if at == self.at => Life::Lives,
            Ok(_) => unseen,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives() {
        let start = ProcessStart::of_this_process().unwrap();
        assert_eq!(start.life(std::process::id()), Life::Lives);
        assert_eq!(start.life(u32::MAX), Life::Ended);
    }
}
