//! The process that leads a group, from its start to the moment when the kernel
//! may give its number away.
//!
//! ```text
//! spawned: a shell that waits at the gate ── gate opened ──► runs its program
//!            │                                                 │
//!            └─ gateway died: the gate falls shut, it ends     ▼
//!                                          ended ── wait() ──► reaped
//! ```
//!
//! Between the start of a process and the moment when it is on record, its
//! gateway can die. So it is started as a shell that waits for a word before it
//! becomes the program: it gets none when the gateway is gone. It is the same
//! process before and after, with the same number and the same start.
//!
//! Invariant: an ended leader is not reaped until its group is dealt with; as
//! long as it is not, its number and its group's cannot be another's, and a
//! signal to the group needs no other proof.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeWriter, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::ending;
use crate::exit::ExitStatus;
use crate::spec::LAUNCH_ID;

const SHELL: &str = "/bin/sh";
/// Waits for a line; then becomes the program, which has nothing to read.
const GATE: &str = r#"IFS= read -r fleetgate_gate || exit 125; exec "$@" </dev/null"#;

/// Variables of the gateway's own, which its children do not inherit.
const OURS: &[u8] = b"FLEETGATE_";

/// What is to be run.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) launch: Uuid,
    /// Absolute.
    pub(crate) path: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) env: BTreeMap<String, OsString>,
    pub(crate) directory: PathBuf,
}

/// Keeps a process from its program. When it is dropped, the process ends.
#[derive(Debug)]
pub(crate) struct Gate(PipeWriter);

impl Gate {
    /// Lets the process run its program.
    pub(crate) fn open(mut self) -> io::Result<()> {
        self.0.write_all(b"\n")
    }
}

/// A process that leads its group. Its end is its group's: dropping it kills
/// all of it.
#[derive(Debug)]
pub(crate) struct Leader {
    child: Child,
    pid: u32,
    number: Number,
}

/// Whose the number of a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    /// The leader's, running or ended.
    Ours,
    /// Nobody's: the leader was reaped here.
    Reaped,
    /// Perhaps somebody's: another part of this program has reaped the leader.
    Lost,
}

impl Leader {
    /// Starts the process before its gate.
    pub(crate) fn spawn(program: &Program, log: File) -> io::Result<(Self, Gate)> {
        let (gate, word) = io::pipe()?;
        let mut command = Command::new(SHELL);
        command
            .args(["-c", GATE, "fleetgate-launch"])
            .arg(&program.path)
            .args(&program.arguments)
            .current_dir(&program.directory);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(OURS) {
                command.env_remove(name);
            }
        }
        let child = command
            .envs(&program.env)
            .env(LAUNCH_ID, program.launch.to_string())
            .stdin(Stdio::from(gate))
            .stdout(Stdio::from(log.try_clone()?))
            .stderr(Stdio::from(log))
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().ok_or(io::ErrorKind::NotFound)?;
        let leader = Self {
            child,
            pid,
            number: Number::Ours,
        };
        Ok((leader, Gate(word)))
    }

    /// The number of the process, and of its group.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it did, without reaping it.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = ending::pid(self.pid)?;
        match waitid(WaitId::Pid(pid), options) {
            Ok(None) | Err(Errno::INTR) => None,
            Ok(Some(status)) => Some(ExitStatus::of(
                status.exit_status(),
                status.terminating_signal(),
            )),
            Err(error) => {
                self.number = Number::Lost;
                Some(ExitStatus::untold(&error.into()))
            }
        }
    }

    /// Signals the whole group.
    pub(crate) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match self.number {
            Number::Ours => match ending::signal(self.pid, signal) {
                // Some kernels refuse to signal a group in which nobody lives.
                Err(_) if self.ended().is_some() => Ok(()),
                signalled => signalled,
            },
            Number::Reaped | Number::Lost => Ok(()),
        }
    }

    /// Waits for its end, and reaps it.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        match self.child.wait().await {
            Ok(status) => {
                self.number = Number::Reaped;
                ExitStatus::of(status.code(), status.signal())
            }
            Err(error) => {
                self.number = Number::Lost;
                ExitStatus::untold(&error)
            }
        }
    }

    /// Whether its number was its own until it was reaped here.
    pub(crate) fn was_reaped(&self) -> bool {
        self.number == Number::Reaped
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Err(error) = self.signal(Signal::KILL) {
            tracing::error!(pid = self.pid, %error, "a group that nobody owns any more cannot be killed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    /// A shell that runs this, with its output in a file.
    fn spawn(directory: &Path, script: &str) -> (Leader, Gate) {
        let program = Program {
            launch: Uuid::nil(),
            path: SHELL.into(),
            arguments: vec!["-c".into(), script.into()],
            env: BTreeMap::new(),
            directory: directory.to_owned(),
        };
        let log = File::create(directory.join("log")).unwrap();
        Leader::spawn(&program, log).unwrap()
    }

    async fn end(leader: &mut Leader) -> ExitStatus {
        let end = timeout(Duration::from_secs(30), leader.wait());
        end.await.unwrap()
    }

    #[tokio::test]
    async fn a_process_whose_gate_falls_shut_ends_without_running_its_program() {
        let directory = tempfile::tempdir().unwrap();
        let (mut leader, gate) = spawn(directory.path(), "touch ran");
        assert_eq!(leader.ended(), None);
        drop(gate);
        assert_eq!(end(&mut leader).await, ExitStatus::Code(125));
        assert!(!directory.path().join("ran").exists());
        assert_eq!(fs::read(directory.path().join("log")).unwrap(), b"");
    }

    #[tokio::test]
    async fn a_process_is_the_same_one_before_and_after_its_gate() {
        let directory = tempfile::tempdir().unwrap();
        let (mut leader, gate) = spawn(directory.path(), "until [ -e go ]; do sleep 0.01; done");
        let start = |pid| crate::table::look(pid).unwrap().unwrap().start;
        let before = start(leader.pid());
        gate.open().unwrap();
        let claims = || crate::table::claims(&[leader.pid()]);
        while claims().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(claims()[&leader.pid()], Uuid::nil().to_string());
        assert_eq!(start(leader.pid()), before);
        fs::write(directory.path().join("go"), "").unwrap();
        assert_eq!(end(&mut leader).await, ExitStatus::Code(0));
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_process_has_no_file_of_its_gateways() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("kept");
        let _kept = File::create(&kept).unwrap();
        let script = "for file in /proc/$$/fd/*; do readlink $file; done";
        let (mut leader, gate) = spawn(directory.path(), script);
        gate.open().unwrap();
        end(&mut leader).await;
        let log = directory.path().join("log");
        let files = fs::read_to_string(&log).unwrap();
        let is = |file: &Path| files.lines().any(|line| Path::new(line) == file);
        assert!(is(&log) && is(Path::new("/dev/null")), "{files}");
        assert!(!is(&kept), "{files}");
    }

    #[tokio::test]
    async fn an_ended_leader_is_not_reaped_by_looking() {
        let directory = tempfile::tempdir().unwrap();
        let (mut leader, gate) = spawn(directory.path(), "exit 4");
        gate.open().unwrap();
        let ended = async {
            loop {
                if let Some(status) = leader.ended() {
                    return status;
                }
                tokio::task::yield_now().await;
            }
        };
        let ended = timeout(Duration::from_secs(30), ended).await.unwrap();
        assert_eq!(ended, ExitStatus::Code(4));
        assert!(crate::table::look(leader.pid()).unwrap().unwrap().zombie);
        assert_eq!(leader.ended(), Some(ended));
        assert_eq!(end(&mut leader).await, ended);
    }
}
