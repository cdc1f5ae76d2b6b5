//! The real binary as a child process.
//!
//! `tests/run` builds it first; a missing binary is an error that says so, not
//! a skipped test.

use std::path::PathBuf;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::soon;

/// Where the binary is: `FLEETGATE_BIN`, or beside the tests.
pub fn path() -> PathBuf {
    if let Some(path) = std::env::var_os("FLEETGATE_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("the test's own path");
    let path = test
        .ancestors()
        .nth(2)
        .map(|target| target.join("fleetgate"));
    let path = path.filter(|path| path.exists());
    path.expect("no fleetgate binary: run `cargo build --workspace --bins` first, or tests/run")
}

/// The binary with an environment of its own.
pub fn command() -> Command {
    let mut command = Command::new(path());
    let foreign = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in
        foreign.filter(|name| name.starts_with("FLEETGATE_") || name.starts_with("USBMUXD_"))
    {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// A process that goes on, and what it prints.
#[derive(Debug)]
pub struct Running {
    /// The process.
    pub child: Child,
    /// What it prints to standard output.
    pub lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Starts a process whose standard output is read by [`Running::line_with`].
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = child.stdout.take().expect("standard output is piped");
        Self {
            child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// The next line that contains `part`.
    pub async fn line_with(&mut self, part: &str) -> String {
        soon(&format!("a line with '{part}'"), async {
            while let Some(line) = self.lines.next_line().await.expect("readable output") {
                if line.contains(part) {
                    return line;
                }
            }
            panic!("the process ended without a line with '{part}'");
        })
        .await
    }

    /// Sends SIGTERM, as a service manager would.
    pub async fn terminate(&self) {
        let pid = self.child.id().expect("still running");
        let kill = Command::new("kill")
            .arg("-TERM")
            .arg(pid.to_string())
            .status();
        assert!(kill.await.expect("kill runs").success());
    }
}
