//! A launcher in a directory of its own, scripts to run, and looks at what runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use fleetgate_launch::{ExitStatus, LaunchSpec, Launcher, RunnerEvent, Running};
use fleetgate_runner::Udid;
use tempfile::TempDir;
use tokio::time::timeout;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The result of a future that must come soon.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("within its time")
}

/// Waits until something is so.
pub(crate) async fn until(mut so: impl FnMut() -> bool) {
    soon(async {
        while !so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A directory for a launcher, and files for scripts.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn launches(&self) -> PathBuf {
        self.directory.path().join("runners")
    }

    pub(crate) fn open(&self) -> Launcher {
        Launcher::open(self.launches()).unwrap()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn record(&self, device: &Udid) -> PathBuf {
        self.launches()
            .join("records")
            .join(format!("{device}.json"))
    }

    /// What a script runs as: it finds the directory of its files in `$HERE`,
    /// and the placeholders in `$1` to `$3`.
    pub(crate) fn script(&self, text: &str) -> LaunchSpec {
        let text = text.replace('{', "{{").replace('}', "}}");
        let argv = [
            "/bin/sh",
            "-c",
            &text,
            "script",
            "{udid}",
            "{log}",
            "{result_bundle}",
        ];
        let mut spec = LaunchSpec::new(argv);
        let here = self.directory.path().to_str().unwrap();
        spec.env.insert("HERE".to_owned(), here.to_owned());
        spec.stop_grace = Duration::from_secs(20);
        spec
    }

    /// The words of a file that a script writes, once it has written a line.
    pub(crate) async fn written(&self, name: &str) -> String {
        let path = self.file(name);
        let text = || fs::read_to_string(&path).unwrap_or_default();
        until(|| text().ends_with('\n')).await;
        text().trim().to_owned()
    }

    /// A process's number that a script writes.
    pub(crate) async fn pid(&self, name: &str) -> u32 {
        self.written(name).await.parse().unwrap()
    }

    /// The processes that have this directory in their arguments or, where that
    /// can be seen, in their environment.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let output = Command::new("ps")
            .args(["axeww", "-o", "pid=", "-o", "stat=", "-o", "command="])
            .output()
            .unwrap();
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let here = self.directory.path().to_str().unwrap();
        let found = listed.lines().filter(|line| line.contains(here));
        let found = found.filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let pid = words.next()?.parse().ok()?;
            (!words.next()?.starts_with('Z')).then_some(pid)
        });
        found.collect()
    }
}

pub(crate) fn device() -> Udid {
    Udid::from_parts(0x8110, 0x1)
}

/// Whether a process runs: an ended one that nobody has asked about does not.
pub(crate) fn lives(pid: u32) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    let state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

pub(crate) fn listening(port: u16) -> RunnerEvent {
    RunnerEvent::Listening {
        port: port.try_into().unwrap(),
    }
}

pub(crate) fn exited(code: i32) -> RunnerEvent {
    RunnerEvent::Exited {
        status: ExitStatus::Code(code),
    }
}

/// All that a process says until its end.
pub(crate) async fn story(running: &mut Running) -> Vec<RunnerEvent> {
    let mut events = Vec::new();
    soon(async {
        loop {
            let event = running.next().await;
            let last = matches!(event, RunnerEvent::Exited { .. });
            events.push(event);
            if last {
                return;
            }
        }
    })
    .await;
    events
}

/// A process that has nothing to do with any launcher, in a group of its own.
pub(crate) struct Bystander(std::process::Child);

impl Bystander {
    pub(crate) fn start(env: &[(&str, &str)]) -> Self {
        use std::os::unix::process::CommandExt;

        let mut command = Command::new("sleep");
        command.arg("600").process_group(0);
        command.envs(env.iter().copied());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.0.try_wait().unwrap()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Writes a record as an earlier gateway would have.
pub(crate) fn write_record(path: &Path, record: &serde_json::Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, record.to_string()).unwrap();
}

/// No process at all.
pub(crate) const NOBODY: [u32; 0] = [];
