//! A lab of two phones and a gateway in front of it, and the binary to ask it.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use fleetgate_gateway::{Config, Gateway, Overrides};
use fleetgate_identity::{Grant, NewToken, Role, TokenFile};
use fleetgate_simulator::{Fault, Lab, Phone, Scenario};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// The app that every simulated phone shows.
pub(crate) const APP: &str = fleetgate_simulator::ui::DEMO_BUNDLE;

/// The first phone's alias.
pub(crate) const DEVICE: &str = "anna";

/// How much faster than a real phone the lab is.
const TIME_SCALE: f64 = 0.1;

/// A gateway that can be asked.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) directory: TempDir,
    pub(crate) server: String,
    lab: Lab,
    gateway: Gateway,
}

/// The configuration of a lab whose runners are up already.
pub(crate) const STATIC: &str = "[runner]\nport = 8100\n";

/// What the binary ends with if the gateway does not let it in.
pub(crate) const DENIED: i32 = 8;

/// What the binary said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Said {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Stdout as JSON, of a run that succeeded.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{}", self.stderr);
        serde_json::from_slice(&self.stdout).unwrap()
    }
}

/// Where the gateways of these tests are on record.
pub(crate) fn runtime() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("run")
}

/// The binary, free of what the environment might tell it.
pub(crate) fn fleetgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetgate"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FLEETGATE_"))
    {
        command.env_remove(name);
    }
    command.env("FLEETGATE_RUNTIME_DIR", runtime());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs the binary to its end.
pub(crate) async fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, stdin: &str) -> Said {
    finish(fleetgate().args(args), stdin).await
}

/// Runs what has been set up to its end.
pub(crate) async fn finish(command: &mut Command, stdin: &str) -> Said {
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // A run that does not read its stdin may be gone by now.
    let _unread = input.write_all(stdin.as_bytes()).await;
    drop(input);
    let output = child.wait_with_output().await.unwrap();
    Said {
        code: output.status.code().unwrap(),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

async fn gateway(directory: &TempDir) -> Gateway {
    let file = directory.path().join("fleetgate.toml");
    let config = Config::load_with(Some(&file), []).unwrap();
    let overrides = Overrides {
        runtime_dir: Some(runtime()),
        ..Overrides::default()
    };
    Gateway::start(config, overrides).await.unwrap()
}

impl Bench {
    /// Starts the lab and the gateway, and waits until the phones are ready.
    pub(crate) async fn start() -> Self {
        Self::configured(STATIC).await
    }

    /// The same under more configuration, in which runners come up.
    pub(crate) async fn configured(more: &str) -> Self {
        let bench = Self::open(more).await;
        bench.until_table(" ready ", 2).await;
        // It is on record a moment after it is told.
        while bench
            .ask(&["history", "--export"])
            .await
            .text()
            .matches("\"to\":\"ready\"")
            .count()
            < 2
        {}
        bench
    }

    /// Starts the lab and the gateway, whatever becomes of the phones.
    pub(crate) async fn open(more: &str) -> Self {
        Self::scaled(TIME_SCALE, more).await
    }

    /// The same where a phone's second takes this long.
    pub(crate) async fn scaled(scale: f64, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let lab = Lab::start(Scenario::fleet(2).scaled(scale));
        lab.serve_unix(directory.path().join("usbmuxd"))
            .await
            .unwrap();
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[usbmuxd]\naddress = \"{}\"\n\
             [ledger]\npath = \"{}\"\n[auth]\ntokens = \"{}\"\n\
             [[device]]\nudid = \"{}\"\nalias = \"{DEVICE}\"\n{more}",
            directory.path().join("usbmuxd").display(),
            directory.path().join("ledger.db").display(),
            directory.path().join("tokens.toml").display(),
            lab.phones()[0].udid(),
        );
        std::fs::write(directory.path().join("fleetgate.toml"), text).unwrap();
        let gateway = gateway(&directory).await;
        Self {
            server: format!("http://{}", gateway.local_addr()),
            directory,
            lab,
            gateway,
        }
    }

    /// Ends the gateway and starts another, which may listen elsewhere.
    pub(crate) async fn restarted(self) -> Self {
        self.gateway.shutdown().await;
        let gateway = gateway(&self.directory).await;
        Self {
            server: format!("http://{}", gateway.local_addr()),
            gateway,
            ..self
        }
    }

    /// The file of a new token of somebody who may do this everywhere, once the
    /// gateway takes it.
    pub(crate) async fn token_of(&self, name: &str, role: Role) -> String {
        let new = NewToken {
            name: name.to_owned(),
            grants: vec![Grant::fleet_wide(role)],
            expires: None,
        };
        let tokens = TokenFile::at(self.directory.path().join("tokens.toml"));
        let (_info, secret) = tokens.create(new).unwrap();
        let path = self.directory.path().join(format!("{name}.token"));
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = file.open(&path).unwrap();
        file.write_all(secret.expose().as_bytes()).unwrap();
        let path = path.display().to_string();
        let ask = ["--token-file", &path, "devices"];
        while self.ask(&ask).await.code == DENIED {}
        path
    }

    /// The same at the same address.
    pub(crate) async fn restarted_in_place(self) -> Self {
        let file = self.directory.path().join("fleetgate.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        let port = self.server.rsplit(':').next().unwrap();
        let text = text.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
        std::fs::write(&file, text).unwrap();
        self.restarted().await
    }

    /// Waits until the table of phones has a text so often.
    pub(crate) async fn until_table(&self, text: &str, times: usize) {
        while self.ask(&["devices"]).await.text().matches(text).count() < times {}
    }

    /// The lab.
    pub(crate) fn lab(&self) -> &Lab {
        &self.lab
    }

    /// The first phone, as the lab sees it.
    pub(crate) fn phone(&self) -> Phone {
        self.lab.phones().remove(0)
    }

    /// Plants a fault in the first phone.
    pub(crate) fn plant(&self, fault: Value) {
        self.phone()
            .fault(serde_json::from_value::<Fault>(fault).unwrap());
    }

    /// Asks the gateway.
    pub(crate) async fn ask(&self, args: &[&str]) -> Said {
        self.ask_with(args, "").await
    }

    /// Asks the gateway, with something on stdin.
    pub(crate) async fn ask_with(&self, args: &[&str], stdin: &str) -> Said {
        run(["--server", &self.server].iter().chain(args), stdin).await
    }

    /// Opens the page of the first row and puts the focus into its text field.
    pub(crate) async fn focus(&self) {
        for label in ["General", "Name"] {
            let tree = self
                .ask(&["tree", DEVICE, "--app", APP, "-o", "json"])
                .await
                .json();
            let nodes = tree["nodes"].as_array().unwrap();
            let is_meant = |node: &&Value| node["label"] == label && node["type"] != "StaticText";
            let rect = &nodes.iter().find(is_meant).unwrap()["rect"];
            let middle = |start: &str, size: &str| {
                (rect[start].as_f64().unwrap() + rect[size].as_f64().unwrap() / 2.0).to_string()
            };
            let (x, y) = (middle("x", "width"), middle("y", "height"));
            self.ask(&[
                "tap", DEVICE, "--app", APP, "--x", &x, "--y", &y, "-o", "json",
            ])
            .await
            .json();
        }
    }

    /// Ends it in order, which is part of every test: nothing may hang.
    pub(crate) async fn end(self) {
        drop(self.end_and_keep().await);
    }

    /// Ends it in order and leaves what it wrote.
    pub(crate) async fn end_and_keep(self) -> TempDir {
        self.gateway.shutdown().await;
        self.lab.shutdown().await;
        self.directory
    }
}
