//! Linux: the files of /proc.

use std::collections::HashMap;
use std::fs;
use std::io::{self, ErrorKind, Read};

use rustix::io::Errno;

use super::Process;
use crate::spec::LAUNCH_ID;

/// Larger than most environments.
const ENVIRONMENT: usize = 256 << 10;

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
        Ok(_) => parse(pid, text),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Reads `pid (name) state parent group ... threads 0 start ...`. The name may
/// hold anything, parentheses too. A process that is just being reaped has no
/// group any more, and is none.
fn parse(pid: u32, text: &[u8]) -> io::Result<Option<Process>> {
    let fields = || {
        let after = text.iter().rposition(|byte| *byte == b')')? + 1;
        let fields = str::from_utf8(text.get(after..)?).ok()?;
        let fields: Vec<_> = fields.split_ascii_whitespace().collect();
        let state = *fields.first()?;
        let threads: u32 = fields.get(17)?.parse().ok()?;
        let group: i64 = fields.get(2)?.parse().ok()?;
        let Ok(group) = u32::try_from(group) else {
            return Some(None);
        };
        Some(Some(Process {
            pid,
            group,
            // The first thread may end before the others.
            zombie: matches!(state, "Z" | "X" | "x") && threads <= 1,
            start: (*fields.get(19)?).to_owned(),
        }))
    };
    fields().ok_or_else(|| {
        io::Error::new(
            ErrorKind::InvalidData,
            format!("/proc/{pid}/stat has another form than this program knows"),
        )
    })
}

pub(super) fn claims(pids: &[u32]) -> HashMap<u32, String> {
    let mut room = vec![0; ENVIRONMENT];
    let claims = pids.iter().filter_map(|pid| {
        let environment = environment(*pid, &mut room).ok()?;
        Some((*pid, claim_in(environment)?))
    });
    claims.collect()
}

/// The environment that a process was given. One of another user cannot be
/// read, and one that has ended has none.
///
/// It is read at once if there is room: one that is read in pieces ends with
/// any of them if the process ends meanwhile.
fn environment(pid: u32, room: &mut Vec<u8>) -> io::Result<&[u8]> {
    let mut file = fs::File::open(format!("/proc/{pid}/environ"))?;
    let mut length = 0;
    loop {
        match file.read(room.get_mut(length..).unwrap_or_default()) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if length == room.len() {
            room.resize(length * 2, 0);
        }
    }
    Ok(room.get(..length).unwrap_or_default())
}

/// The launch that an environment names. What does not end is cut off, and so
/// may be the name.
fn claim_in(environment: &[u8]) -> Option<String> {
    let (_, environment) = environment.split_last().filter(|(last, _)| **last == 0)?;
    let values = environment.split(|byte| *byte == 0).filter_map(|variable| {
        let value = variable.strip_prefix(LAUNCH_ID.as_bytes())?;
        value.strip_prefix(b"=")
    });
    let launch = values.map(String::from_utf8_lossy).next()?;
    Some(launch.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_what_it_likes() {
        let text = b"7 (a) Z 1 9) b) S 1 42 42 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 3 0 987654 0 0";
        let process = parse(7, text).unwrap().unwrap();
        assert_eq!((process.pid, process.group), (7, 42));
        assert_eq!(process.start, "987654");
        assert!(!process.zombie);
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_lives() {
        let zombie = |threads: u32| {
            let text = format!("7 (a) Z 1 42 42 0 -1 0 1 0 0 0 1 1 0 0 20 0 {threads} 0 9 0 0");
            parse(7, text.as_bytes()).unwrap().unwrap().zombie
        };
        assert!(zombie(1));
        assert!(!zombie(2));
    }

    #[test]
    fn a_process_that_is_just_being_reaped_is_none() {
        let text = b"7 (a) X 0 -1 -1 0 -1 4228364 1 0 0 0 1 1 0 0 20 0 0 0 987654 0 0";
        assert_eq!(parse(7, text).unwrap(), None);
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
        assert_eq!(read("A=1 FLEETGATE_LAUNCH_ID=ab "), Some("ab".to_owned()));
        assert_eq!(read("A=FLEETGATE_LAUNCH_ID=ab "), None);
        assert_eq!(read("FLEETGATE_LAUNCH_IDS=ab "), None);
        assert_eq!(read("A=1 FLEETGATE_LAUNCH_ID=a"), None);
        assert_eq!(read(""), None);
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
