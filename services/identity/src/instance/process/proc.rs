//! Linux: the files of /proc.

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
fn parse(text: &[u8]) -> io::Result<Option<String>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn start(text: &str) -> Option<String> {
        parse(text.as_bytes()).unwrap()
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
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
