//! Elsewhere, which is macOS: the words of `ps`.
//!
//! `ps` is part of every such host, and its user interface has not changed in
//! decades. macOS shows no environment of programs that are its own; then the
//! number and the second in which it began are what a process is known by.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::process::{Command, Stdio};

use super::Process;
use crate::spec::LAUNCH_ID;

const PS: &str = "/bin/ps";

/// How a process's environment is asked for: it follows the command.
#[cfg(not(target_os = "linux"))]
const ENVIRONMENT: &[&str] = &["-E", "-ww"];
#[cfg(target_os = "linux")]
const ENVIRONMENT: &[&str] = &["eww"];

/// So many are asked for at once: an argument list has its limits.
const AT_ONCE: usize = 500;

#[expect(
    clippy::unnecessary_wraps,
    reason = "the other source of this may fail"
)]
pub(super) fn epoch() -> io::Result<String> {
    // A start is a date.
    Ok("ps".to_owned())
}

pub(super) fn all() -> io::Result<Vec<Process>> {
    processes(&ps(&["-A"], &["pid=", "pgid=", "stat=", "lstart="])?)
}

pub(super) fn one(pid: u32) -> io::Result<Option<Process>> {
    let listed = ps(
        &["-p", &pid.to_string()],
        &["pid=", "pgid=", "stat=", "lstart="],
    )?;
    Ok(processes(&listed)?.pop())
}

pub(super) fn claims(pids: &[u32]) -> HashMap<u32, String> {
    let mut claims = HashMap::new();
    for pids in pids.chunks(AT_ONCE) {
        let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
        let pids = pids.join(",");
        let which = [ENVIRONMENT, &["-p", &pids]].concat();
        match ps(&which, &["pid=", "command="]) {
            Ok(listed) => claims.extend(listed.lines().filter_map(claim)),
            Err(error) => {
                tracing::warn!(%error, "what processes say of their launch cannot be read");
            }
        }
    }
    claims
}

/// Runs `ps`, in a language and a time zone that stay the same. That it finds
/// nothing is told by its status, which is no failure.
fn ps(which: &[&str], columns: &[&str]) -> io::Result<String> {
    let mut command = Command::new(PS);
    command.args(which);
    for column in columns {
        command.args(["-o", column]);
    }
    let output = command
        .env_clear()
        .envs([("LC_ALL", "C"), ("TZ", "UTC")])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() && !output.stderr.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{PS}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn processes(listed: &str) -> io::Result<Vec<Process>> {
    let listed = listed.lines().filter(|line| !line.trim().is_empty());
    listed
        .map(|line| {
            process(line).ok_or_else(|| {
                let text = format!("{PS} says what this program does not understand: {line:?}");
                io::Error::new(ErrorKind::InvalidData, text)
            })
        })
        .collect()
}

/// Reads `pid group state Mon Jan  5 10:00:00 2026`.
fn process(line: &str) -> Option<Process> {
    let mut words = line.split_ascii_whitespace();
    let (pid, group) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let zombie = words.next()?.starts_with('Z');
    let start: Vec<_> = words.collect();
    (start.len() == 5).then(|| Process {
        pid,
        group,
        zombie,
        start: start.join(" "),
    })
}

/// Reads `pid command and its arguments NAME=value ...`.
fn claim(line: &str) -> Option<(u32, String)> {
    let (pid, rest) = line.trim_start().split_once(' ')?;
    let mut values = rest.split_ascii_whitespace().filter_map(|word| {
        let value = word.strip_prefix(LAUNCH_ID)?;
        value.strip_prefix('=')
    });
    let launch = values.next_back()?.to_owned();
    Some((pid.parse().ok()?, launch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_macos_are_read() {
        let listed = "    1     1 Ss   Thu Jan  1 00:00:07 2026\n\
                        812   811 Z+   Mon Dec 22 23:59:59 2025\n";
        let processes = processes(listed).unwrap();
        let facts: Vec<_> = processes
            .iter()
            .map(|process| (process.pid, process.group, process.zombie, &*process.start))
            .collect();
        assert_eq!(
            facts,
            [
                (1, 1, false, "Thu Jan 1 00:00:07 2026"),
                (812, 811, true, "Mon Dec 22 23:59:59 2025"),
            ]
        );
    }

    #[test]
    fn a_line_of_another_form_is_an_error_that_shows_it() {
        for line in [
            "1 1 Ss Thu Jan 1 00:00:07",
            "x 1 Ss Thu Jan 1 00:00:07 2026",
        ] {
            let error = processes(line).unwrap_err();
            assert!(error.to_string().contains(line));
        }
    }

    #[test]
    fn a_launch_is_read_from_the_words_after_a_command() {
        let line = "  812 xcodebuild test HOME=/Users/x FLEETGATE_LAUNCH_ID=ab A=b";
        assert_eq!(claim(line), Some((812, "ab".to_owned())));
        assert_eq!(claim("812 xcodebuild FLEETGATE_LAUNCH_IDS=ab"), None);
    }

    #[test]
    fn this_process_is_found_alone_and_among_all() {
        let me = std::process::id();
        let alone = one(me).unwrap().unwrap();
        assert!(!alone.zombie);
        let all = all().unwrap();
        assert!(all.contains(&alone));
        assert_eq!(one(i32::MAX.unsigned_abs()).unwrap(), None);
        assert_eq!(epoch().unwrap(), "ps");
    }

    #[test]
    fn a_child_is_known_by_its_launch() {
        let mut child = Command::new("sleep")
            .arg("60")
            .env(LAUNCH_ID, "cafe")
            .spawn()
            .unwrap();
        let claims = claims(&[child.id(), i32::MAX.unsigned_abs()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(claims[&child.id()], "cafe");
        assert_eq!(claims.len(), 1);
    }
}
