//! A lab of two phones and a gateway in front of it, and the binary to ask it.

use std::ffi::OsStr;
use std::process::Stdio;

use fleetgate_gateway::config::{Alias, DeviceConfig, Devices, Listen, RunnerPort};
use fleetgate_gateway::{Config, Gateway, Overrides};
use fleetgate_simulator::{Fault, Lab, Phone, Scenario};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
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

/// The binary, free of what the environment might tell it.
pub(crate) fn fleetgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetgate"));
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("FLEETGATE_"))
    {
        command.env_remove(name);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs the binary to its end.
pub(crate) async fn run<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>, stdin: &str) -> Said {
    let mut child = fleetgate()
        .args(args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
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

impl Bench {
    /// Starts the lab and the gateway, and waits until the phones are ready.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("usbmuxd");
        let scenario = Scenario::fleet(2).scaled(TIME_SCALE);
        let first = &scenario.phones[0];
        let device = DeviceConfig {
            alias: Some(Alias::try_from(DEVICE.to_owned()).unwrap()),
            ..DeviceConfig::new(first.udid.clone())
        };
        let mut config = Config::default();
        config.server.listen =
            Listen::try_from(std::net::SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        config.usbmuxd.address = Some(socket.to_string_lossy().parse().unwrap());
        config.ledger.path = directory.path().join("ledger.db");
        config.runner.port = Some(RunnerPort::try_from(first.port).unwrap());
        config.device = Devices::try_from(vec![device]).unwrap();

        let lab = Lab::start(scenario);
        lab.serve_unix(&socket).await.unwrap();
        let gateway = Gateway::start(config, Overrides::default()).await.unwrap();
        let server = format!("http://{}", gateway.local_addr());
        let bench = Self {
            directory,
            server,
            lab,
            gateway,
        };
        while bench
            .ask(&["devices"])
            .await
            .text()
            .matches(" ready ")
            .count()
            < 2
        {}
        bench
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
