//! Elsewhere, which is macOS: the words of `ps`.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_began_when_it_always_began() {
        let me = std::process::id();
        let began = start(me).unwrap();
        assert!(began.is_some());
        assert_eq!(start(me).unwrap(), began);
        assert_eq!(start(4_194_305).unwrap(), None);
        assert_eq!((epoch().unwrap(), space()), (epoch().unwrap(), space()));
        assert!(std::fs::exists(PLACE).unwrap());
    }
}
