//! The verbs that stay: what they print, and how they end.

use std::process::Stdio;
use std::time::Duration;

use fleetgate_simulator::{Injection, Lab, Scenario};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

use crate::bench::{APP, fleetgate, run};

pub(crate) type Output = Lines<BufReader<ChildStdout>>;

pub(crate) fn spawn(args: &[&str]) -> (Child, Output) {
    let mut child = fleetgate()
        .args(args)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

/// The first line that has this in it.
pub(crate) async fn line_with(lines: &mut Output, text: &str) -> String {
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains(text) {
            return line;
        }
    }
    panic!("it ended without saying {text:?}");
}

pub(crate) async fn signal(child: &Child, name: &str) {
    let pid = child.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args([name, &pid])
            .status()
            .await
            .unwrap()
            .success()
    );
}

/// The word after a text.
pub(crate) fn after<'a>(line: &'a str, text: &str) -> &'a str {
    line.split(text)
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap()
}

#[tokio::test]
async fn a_gateway_says_where_it_listens_and_ends_in_peace_at_sigterm_and_sigint() {
    for name in ["-TERM", "-INT"] {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("fleetgate.toml");
        let ledger = directory.path().join("ledger.db");
        let mux = directory.path().join("nobody-listens-here");
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[ledger]\npath = {ledger:?}\n[usbmuxd]\naddress = {mux:?}\n"
        );
        std::fs::write(&config, text).unwrap();
        let (mut child, mut lines) = spawn(&["serve", "--config", config.to_str().unwrap()]);
        let said = line_with(&mut lines, "listening on ").await;
        let devices = run(["--server", after(&said, "listening on "), "devices"], "").await;
        assert_eq!(devices.text(), "no devices\n", "{}", devices.stderr);
        signal(&child, name).await;
        assert_eq!(child.wait().await.unwrap().code(), Some(0), "{name}");
    }
}

#[tokio::test]
async fn a_gateway_that_is_drained_ends_in_peace() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = fleetgate()
        .arg("serve")
        .env("FLEETGATE_SERVER__LISTEN", "127.0.0.1:0")
        .env("FLEETGATE_LEDGER__PATH", directory.path().join("ledger.db"))
        .env("FLEETGATE_USBMUXD__ADDRESS", directory.path().join("mux"))
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = line_with(&mut lines, "listening on ").await;
    let server = after(&said, "listening on ");
    let drained = run(
        [
            "--server", server, "drain", "--reason", "upgrade", "-o", "json",
        ],
        "",
    )
    .await;
    assert_eq!(drained.json()["draining"], true);
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

/// What a gateway logs from its start to its end, line by line.
async fn log(filter: &str, format: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let mut child = fleetgate()
        .arg("serve")
        .env("FLEETGATE_SERVER__LISTEN", "127.0.0.1:0")
        .env("FLEETGATE_LEDGER__PATH", directory.path().join("ledger.db"))
        .env("FLEETGATE_USBMUXD__ADDRESS", directory.path().join("mux"))
        .env("FLEETGATE_LOG__FILTER", filter)
        .env("FLEETGATE_LOG__FORMAT", format)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    line_with(&mut lines, "listening on ").await;
    signal(&child, "-TERM").await;
    let stderr = child.wait_with_output().await.unwrap().stderr;
    let log = String::from_utf8(stderr).unwrap();
    log.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_gateway_logs_what_and_how_it_is_told_to() {
    let text = log("info", "text").await;
    assert!(text.iter().any(|line| line.contains("INFO")), "{text:?}");
    assert!(text.iter().all(|line| !line.starts_with('{')), "{text:?}");

    let json = log("info", "json").await;
    assert!(!json.is_empty());
    for line in &json {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["level"].is_string(), "{line}");
    }

    assert_eq!(log("off", "text").await, [] as [String; 0]);
}

#[tokio::test]
async fn a_second_signal_ends_a_gateway_that_is_still_draining() {
    let lab = Lab::start(Scenario::fleet(1));
    let usbmuxd = lab.serve_tcp(([127, 0, 0, 1], 0).into()).await.unwrap();
    let phone = lab.phones().remove(0);
    let by = Duration::from_secs(60);
    phone.fault(Injection::Slow { by });
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("fleetgate.toml");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_timeout = \"10m\"\n\
         [ledger]\npath = {:?}\n[usbmuxd]\naddress = \"{usbmuxd}\"\n[runner]\nport = 8100\n",
        directory.path().join("ledger.db")
    );
    std::fs::write(&config, text).unwrap();
    let (mut child, mut lines) = spawn(&["serve", "--config", config.to_str().unwrap()]);
    let said = line_with(&mut lines, "listening on ").await;
    let server = after(&said, "listening on ");
    while !run(["--server", server, "devices"], "")
        .await
        .text()
        .contains(" ready ")
    {}

    let udid = phone.udid().to_string();
    let tap = [
        "--server", server, "tap", &udid, "--app", APP, "--x", "1", "--y", "1",
    ];
    let mut tapping = fleetgate().args(tap).spawn().unwrap();
    phone.wait_until(|phone| phone.in_flight == 1).await;
    signal(&child, "-TERM").await;
    // It drains once it takes no more connections.
    while run(["--server", server, "devices"], "").await.code != 4 {}
    assert_eq!(
        child.try_wait().unwrap(),
        None,
        "the tap is still in flight"
    );
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(1));
    assert_eq!(
        tapping.wait().await.unwrap().code(),
        Some(6),
        "whoever tapped cannot know"
    );
    lab.shutdown().await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_named_with_its_line_once() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("fleetgate.toml");
    std::fs::write(&config, "[server]\nspeed = 1\n").unwrap();
    let said = run(["serve", "--config", config.to_str().unwrap()], "").await;
    assert_eq!(said.code, 1);
    assert!(
        said.stderr.contains("fleetgate.toml") && said.stderr.contains("line 2"),
        "{}",
        said.stderr
    );
    assert_eq!(
        said.stderr.matches("unknown field").count(),
        1,
        "{}",
        said.stderr
    );
}

#[tokio::test]
async fn a_lab_says_where_its_usbmuxd_is() {
    let (mut child, mut lines) = spawn(&["lab", "--phones", "1", "--control", "127.0.0.1:0"]);
    line_with(&mut lines, "simulated iPhone 1").await;
    let usbmuxd = line_with(&mut lines, "usbmuxd: ").await;
    TcpStream::connect(after(&usbmuxd, "usbmuxd: "))
        .await
        .unwrap();
    let control = line_with(&mut lines, "control: ").await;
    TcpStream::connect(after(&control, "http://"))
        .await
        .unwrap();
    line_with(&mut lines, "FLEETGATE_RUNNER__PORT=8100 fleetgate serve").await;
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn the_demo_ends_with_0_once_every_step_had_its_effect_and_keeps_what_it_should() {
    let kept = tempfile::tempdir().unwrap();
    let said = run(
        [
            "demo",
            "--once",
            "--port",
            "0",
            "--keep",
            kept.path().to_str().unwrap(),
        ],
        "",
    )
    .await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(
        said.text().ends_with("Every step had its effect.\n"),
        "{}",
        said.text()
    );
    let picture = std::fs::read(kept.path().join("screen.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert!(kept.path().join("ledger.db").is_file());
}

#[tokio::test]
async fn the_demo_stays_up_and_can_be_driven_until_it_is_told_to_end() {
    let kept = tempfile::tempdir().unwrap();
    let (mut child, mut lines) = spawn(&[
        "demo",
        "--listen",
        "127.0.0.1:0",
        "--keep",
        kept.path().to_str().unwrap(),
    ]);
    let gateway = line_with(&mut lines, "gateway: ").await;
    line_with(&mut lines, "stays up until Ctrl-C").await;
    let history = run(
        [
            "--server",
            after(&gateway, "gateway: "),
            "history",
            "--kind",
            "tap",
        ],
        "",
    )
    .await;
    assert!(history.text().contains("recovered"), "{}", history.text());
    // Whatever else it says, it can say it.
    while lines
        .next_line()
        .await
        .unwrap()
        .is_some_and(|line| !line.contains("grpcurl"))
    {}
    signal(&child, "-INT").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error_if_it_was_asked_for() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let said = run(["demo", "--once", "--port", &port], "").await;
    assert_eq!(said.code, 1);
    assert_eq!(said.stderr.matches("in use").count(), 1, "{}", said.stderr);
}
