//! A host with gateways on it, each a process of its own, and a user whose
//! clients find them.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::bench::{Said, finish, fleetgate};
use crate::processes::{Output, after, line_with, signal};

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) directory: TempDir,
}

/// A gateway on it.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) child: Child,
    /// Where it listens.
    pub(crate) server: String,
    /// Kept open: it may yet print something.
    _lines: Output,
}

impl Host {
    /// With nothing on it.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    /// A place on it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where its gateways are on record.
    pub(crate) fn runtime(&self) -> PathBuf {
        self.path("run")
    }

    /// The records.
    pub(crate) fn records(&self) -> Vec<PathBuf> {
        let found = fs::read_dir(self.runtime()).unwrap();
        let paths = found.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|kind| kind == "json"))
            .collect()
    }

    /// The token in the only record.
    pub(crate) fn local_token(&self) -> String {
        let text = fs::read_to_string(&self.records()[0]).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        record["token"].as_str().unwrap().to_owned()
    }

    /// The binary, as this host's user runs it.
    pub(crate) fn fleetgate(&self) -> Command {
        let mut command = fleetgate();
        command.env("FLEETGATE_RUNTIME_DIR", self.runtime());
        command
    }

    /// A gateway with this in its configuration.
    pub(crate) fn serve(&self, name: &str, more: &str) -> Command {
        let config = self.path(&format!("{name}.toml"));
        let text = format!(
            "[ledger]\npath = '{}'\n[usbmuxd]\naddress = '{}'\n{more}",
            self.path(&format!("{name}.db")).display(),
            self.path("nobody-listens-here").display(),
        );
        fs::write(&config, text).unwrap();
        let mut command = self.fleetgate();
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .env("FLEETGATE_SERVER__LISTEN", "127.0.0.1:0")
            .env("FLEETGATE_AUTH__TOKENS", self.path("tokens.toml"));
        command
    }

    /// Starts it, and waits until it listens.
    pub(crate) async fn start(&self, name: &str, more: &str) -> Serving {
        Serving::start(self.serve(name, more).stderr(Stdio::null())).await
    }

    /// Runs the binary as this host's user.
    pub(crate) async fn run(&self, args: &[&str]) -> Said {
        finish(self.fleetgate().args(args), "").await
    }
}

impl Serving {
    /// Starts a gateway, and waits until clients can find it.
    pub(crate) async fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = line_with(&mut lines, "listening on ").await;
        let server = after(&said, "listening on ").to_owned();
        line_with(&mut lines, "need no flags").await;
        Self {
            child,
            server,
            _lines: lines,
        }
    }

    /// Ends it in order.
    pub(crate) async fn end(mut self) {
        signal(&self.child, "-TERM").await;
        assert_eq!(self.child.wait().await.unwrap().code(), Some(0));
    }
}
