//! The real binary with a place of its own: a configuration, a ledger, and a
//! lab whose usbmuxd is a unix socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::binary::{self, Running};
use crate::soon;

/// A directory for a gateway of the real binary.
#[derive(Debug)]
pub struct Place {
    dir: TempDir,
}

/// What a run of the binary said, and how it ended.
#[derive(Debug)]
pub struct Said {
    /// The exit code.
    pub code: i32,
    /// Standard output as it came.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: String,
}

impl Said {
    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).expect("text")
    }

    /// Standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = output;
        Self {
            code: status.code().expect("it ended by itself"),
            stdout,
            stderr: String::from_utf8(stderr).expect("text"),
        }
    }
}

/// Runs a command that ends, with this on its standard input.
pub async fn run(command: &mut Command, stdin: &str) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut pipe = child.stdin.take().expect("standard input is piped");
    // Whoever does not read it has ended, and says why.
    drop(pipe.write_all(stdin.as_bytes()).await);
    drop(pipe);
    let output = soon("the end of the process", child.wait_with_output()).await;
    output.expect("an output").into()
}

impl Place {
    /// A place in which nothing runs yet.
    pub fn new() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        Self { dir }
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where its lab's usbmuxd is to be.
    pub fn usbmuxd(&self) -> PathBuf {
        self.path("usbmuxd")
    }

    /// `fleetgate serve` on the ledger at `ledger`, with these lines besides.
    /// It asks phones nothing of itself, lets everybody do everything, and as
    /// often as they like, unless these say so.
    pub fn serve_on(&self, ledger: &Path, more: &str) -> Command {
        let unless_said: String = [
            ("[health]", "probe_interval = '0s'\nfacts = false"),
            ("[auth]", "anonymous = 'admin'"),
            (
                "[limits]",
                "calls_per_second = 1000000\ncall_burst = 1000000\n\
                 max_queued_commands = 1000000\nmax_open_leases = 1000000",
            ),
        ]
        .into_iter()
        .filter(|(section, _)| !more.contains(section))
        .map(|(section, keys)| [section, "\n", keys, "\n"].concat())
        .collect();
        let text = format!(
            "{more}\n\
             {unless_said}\
             [ledger]\npath = '{}'\n\
             [usbmuxd]\naddress = '{}'\n\
             [runner]\nport = {}\n\
             [log]\nfilter = \"warn\"\n",
            ledger.display(),
            self.usbmuxd().display(),
            fleetgate_simulator::scenario::DEFAULT_PORT,
        );
        self.serve_with(&text)
    }

    /// Where its gateways publish themselves.
    pub fn runtime_dir(&self) -> PathBuf {
        self.path("run")
    }

    /// Where its gateways' tokens are.
    pub fn tokens(&self) -> PathBuf {
        self.path("tokens.toml")
    }

    /// `fleetgate serve` with this configuration, on any free port.
    pub fn serve_with(&self, text: &str) -> Command {
        let config = self.path("fleetgate.toml");
        fs::write(&config, text).expect("a configuration file");
        let mut command = binary::command();
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .env("FLEETGATE_SERVER__LISTEN", "127.0.0.1:0")
            .env("FLEETGATE_AUTH__TOKENS", self.tokens())
            .env("FLEETGATE_RUNTIME_DIR", self.runtime_dir());
        command
    }

    /// Starts a gateway on the place's own ledger and waits until it listens.
    pub async fn serve(&self) -> Server {
        let mut command = self.serve_on(&self.path("ledger.db"), "");
        Server::start(&mut command).await
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// A gateway in a process of its own.
#[derive(Debug)]
pub struct Server {
    /// The process.
    pub running: Running,
    /// Where it listens.
    pub url: String,
}

impl Server {
    /// Starts a gateway and waits until it listens.
    pub async fn start(command: &mut Command) -> Self {
        let mut running = Running::start(command);
        let line = running.line_with("listening on ").await;
        let url = line.rsplit(' ').next().expect("an address").to_owned();
        Self { running, url }
    }

    /// Runs a verb against it.
    pub async fn ask(&self, args: &[&str]) -> Said {
        self.ask_with(args, "").await
    }

    /// Runs a verb against it, with this on its standard input.
    pub async fn ask_with(&self, args: &[&str], stdin: &str) -> Said {
        let mut command = binary::command();
        command.env("FLEETGATE_SERVER", &self.url).args(args);
        run(&mut command, stdin).await
    }

    /// Ends it as a service manager would, and gives its exit code.
    pub async fn end(mut self) -> Option<i32> {
        self.running.terminate().await;
        let ended = soon("the end", self.running.child.wait()).await;
        ended.expect("a status").code()
    }
}
