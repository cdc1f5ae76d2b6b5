//! Linux: the files of /proc.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind, Read};

use rustix::io::Errno;

use super::{Claim, Process};
use crate::spec::LAUNCH_ID;

pub(super) fn epoch() -> io::Result<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let boot = boot.trim();
    // In another container the same number is another process.
    match fs::read_link("/proc/self/ns/pid") {
        Ok(space) => Ok(format!("{boot} {}", space.display())),
        Err(_) => Ok(boot.to_owned()),
    }
}

pub(super) fn all() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    let mut text = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        processes.extend(read(pid, &mut text)?);
    }
    Ok(processes)
}

pub(super) fn one(pid: u32) -> io::Result<Option<Process>> {
    read(pid, &mut Vec::new())
}

/// One process; none if it ended before or while it was read.
fn read(pid: u32, text: &mut Vec<u8>) -> io::Result<Option<Process>> {
    text.clear();
    let read =
        fs::File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read_to_end(text));
    match read {
        Ok(_) => parse(pid, text).map(Some),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Reads `pid (name) state parent group ... threads 0 start ...`. The name may
/// hold anything, parentheses too.
fn parse(pid: u32, text: &[u8]) -> io::Result<Process> {
    let fields = || {
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let fields = str::from_utf8(text.get(after..)?).ok()?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let threads: u32 = fields.get(17)?.parse().ok()?;
        Some(Process {
            pid,
            group: fields.get(2)?.parse().ok()?,
            // The first thread may end before the others.
            zombie: matches!(state, "Z" | "X" | "x") && threads <= 1,
            start: (*fields.get(19)?).to_owned(),
        })
    };
    fields().ok_or_else(|| {
        io::Error::new(
            ErrorKind::InvalidData,
            format!("/proc/{pid}/stat has another form than this program knows"),
        )
    })
}

pub(super) fn claims(pids: &[u32]) -> HashMap<u32, Claim> {
    pids.iter().map(|pid| (*pid, claim(*pid))).collect()
}

/// The environment that a process was given. One of another user cannot be
/// read, and one that has ended has none.
fn claim(pid: u32) -> Claim {
    match fs::read(format!("/proc/{pid}/environ")) {
        Ok(environment) if !environment.is_empty() => claim_in(&environment),
        Ok(_) | Err(_) => Claim::Unreadable,
    }
}

fn claim_in(environment: &[u8]) -> Claim {
    let values = environment.split(|byte| *byte == 0).filter_map(|variable| {
        let value = variable.strip_prefix(LAUNCH_ID.as_bytes())?;
        value.strip_prefix(b"=")
    });
    match values.map(String::from_utf8_lossy).next() {
        Some(launch) => Claim::Launch(launch.into_owned()),
        None => Claim::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_what_it_likes() {
        let text = b"7 (a) Z 1 9) b) S 1 42 42 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 3 0 987654 0 0";
        let process = parse(7, text).unwrap();
        assert_eq!((process.pid, process.group), (7, 42));
        assert_eq!(process.start, "987654");
        assert!(!process.zombie);
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_lives() {
        let zombie = |threads: u32| {
            let text = format!("7 (a) Z 1 42 42 0 -1 0 1 0 0 0 1 1 0 0 20 0 {threads} 0 9 0 0");
            parse(7, text.as_bytes()).unwrap().zombie
        };
        assert!(zombie(1));
        assert!(!zombie(2));
    }

    #[test]
    fn a_line_of_another_form_is_an_error_that_names_it() {
        for text in [
            "",
            "7 (a",
            "7 (a) S 1 2",
            "7 (a) S 1 x 42 0 -1 0 1 0 0 0 1 1 0 0 20 0 1 0 9",
        ] {
            let error = parse(7, text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("/proc/7/stat"));
        }
    }

    #[test]
    fn a_launch_is_read_from_its_variable_and_from_no_other() {
        let read = |environment: &str| claim_in(environment.replace(' ', "\0").as_bytes());
        assert_eq!(
            read("A=1 FLEETGATE_LAUNCH_ID=ab "),
            Claim::Launch("ab".to_owned())
        );
        assert_eq!(read("A=FLEETGATE_LAUNCH_ID=ab "), Claim::Nothing);
        assert_eq!(read("FLEETGATE_LAUNCH_IDS=ab"), Claim::Nothing);
    }

    #[test]
    fn this_process_is_found_alone_and_among_all() {
        let me = std::process::id();
        let alone = one(me).unwrap().unwrap();
        assert!(!alone.zombie);
        assert!(all().unwrap().contains(&alone));
        assert_eq!(one(u32::MAX).unwrap(), None);
        assert_eq!(epoch().unwrap(), epoch().unwrap());
    }
}
