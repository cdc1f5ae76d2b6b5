//! `lab runner`: what stands in for `xcodebuild`, as a process among others.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use fleetgate_simulator::{Lab, LaunchFault, Mishap, Phone, Scenario};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::bench::{Said, fleetgate, run};
use crate::processes::{Output, after, line_with, signal, spawn};

/// What `xcodebuild` is called with, as it is documented.
const XCODEBUILD: &str = "test-without-building \
    -only-testing ArgentRunnerUITests/ArgentRunnerSession/testServeCommands \
    -parallel-testing-enabled NO -test-timeouts-enabled NO -collect-test-diagnostics never \
    -maximum-concurrent-test-device-destinations 1 -destination-timeout 20 \
    -resultBundlePath /tmp/r -xctestrun /tmp/x -derivedDataPath /tmp/d \
    -destination platform=iOS,id=";

/// A lab of one phone without a runner, and its control API.
struct Rack {
    lab: Lab,
    control: SocketAddr,
}

impl Rack {
    async fn new() -> Self {
        let scenario = Scenario::fleet(1).without_runners().scaled(0.1);
        let lab = Lab::start(scenario);
        let control = lab.serve_control(([127, 0, 0, 1], 0).into()).await.unwrap();
        Self { lab, control }
    }

    fn phone(&self) -> Phone {
        self.lab.phones().remove(0)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = fleetgate();
        let control = format!("http://{}", self.control);
        command.args(["lab", "runner"]).args(args);
        command.env("FLEETGATE_LAB_CONTROL", control);
        command
    }

    fn spawn(&self, args: &[&str]) -> (Child, Output) {
        let udid = self.phone().udid().to_string();
        let mut command = self.command(&["--udid", &udid]);
        command.args(args).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        (child, lines)
    }

    /// A run to its end.
    async fn run(&self, args: &[&str]) -> Said {
        let output = self.command(args).output().await.unwrap();
        Said {
            code: output.status.code().unwrap(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The runner is gone, and its launch.
    async fn over(&self) {
        let gone = |phone: &fleetgate_simulator::PhoneReport| {
            phone.launch.is_none() && phone.runner.is_none()
        };
        self.phone().wait_until(gone).await;
    }
}

async fn port(lines: &mut Output) -> u16 {
    let line = line_with(lines, "ARGENT_RUNNER_LISTENING port=").await;
    line_with(lines, "ARGENT_RUNNER_SERVING").await;
    after(&line, "port=").parse().unwrap()
}

#[tokio::test]
async fn the_documented_command_line_brings_a_runner_up_and_sigterm_takes_it_down() {
    let rack = Rack::new().await;
    let udid = rack.phone().udid().to_string();
    let line = format!("-- {XCODEBUILD}{udid}");
    let words: Vec<_> = line.split_whitespace().collect();
    let mut child = rack.command(&words).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    line_with(&mut lines, "-destination-timeout 20").await;
    let starting = line_with(&mut lines, "ARGENT_RUNNER_STARTING requestedPort=0").await;
    let (date, rest) = starting.split_once(' ').unwrap();
    assert_eq!(date.len(), "2026-11-30".len(), "{starting}");
    assert!(rest.contains("-Runner["), "{starting}");
    let port = port(&mut lines).await;
    let report = rack.phone().report();
    assert_eq!(report.runner.unwrap().port, port);

    signal(&child, "-TERM").await;
    line_with(&mut lines, "ARGENT_RUNNER_STOPPED outcome=interrupted").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(75));
    rack.over().await;
}

#[tokio::test]
async fn a_runner_does_not_outlive_the_process_whatever_ends_it() {
    let rack = Rack::new().await;
    let (mut child, mut lines) = rack.spawn(&[]);
    port(&mut lines).await;
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    rack.over().await;
}

#[tokio::test]
async fn the_process_ends_with_its_runner() {
    let rack = Rack::new().await;
    for (end, code) in [
        ((|phone| phone.kill_runner()) as fn(&Phone), 65),
        (|phone| phone.detach(), 65),
    ] {
        rack.phone().attach();
        let (mut child, mut lines) = rack.spawn(&[]);
        port(&mut lines).await;
        end(&rack.phone());
        assert_eq!(child.wait().await.unwrap().code(), Some(code));
        rack.over().await;
    }
    rack.phone().attach();
    let (mut child, mut lines) = rack.spawn(&["--uptime", "23h 59m 55s"]);
    line_with(&mut lines, "ARGENT_RUNNER_STOPPED outcome=expired").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_lab_that_ends_is_the_end_of_its_runners() {
    let rack = Rack::new().await;
    let (mut child, mut lines) = rack.spawn(&[]);
    port(&mut lines).await;
    rack.lab.shutdown().await;
    assert_eq!(child.wait().await.unwrap().code(), Some(65));
}

#[tokio::test]
async fn the_exit_code_says_why_there_is_no_runner() {
    let rack = Rack::new().await;
    let phone = rack.phone();
    let udid = phone.udid().to_string();
    phone.launch_fault(Mishap::Exits {
        code: 66,
        message: "no such test".to_owned(),
    });
    let said = rack.run(&["--udid", &udid]).await;
    assert_eq!(said.code, 66);
    assert!(said.stderr.contains("no such test"), "{}", said.stderr);

    phone.set_locked(true);
    let said = rack.run(&["--udid", &udid]).await;
    assert_eq!(said.code, 70);
    assert!(said.stderr.contains("unlock it"), "{}", said.stderr);

    let nobody = rack.run(&["--udid", "00008110-000978540290401E"]).await;
    assert_eq!(nobody.code, 70, "{}", nobody.stderr);
    assert_eq!(rack.run(&["--udid", "../lab"]).await.code, 64);
    assert_eq!(rack.run(&["--", "build"]).await.code, 64);

    // A port that was free a moment ago.
    let address = rack.control.to_string();
    rack.lab.shutdown().await;
    let said = run(
        ["lab", "runner", "--control", &address, "--udid", &udid],
        "",
    )
    .await;
    assert_eq!(said.code, 69, "{}", said.stderr);
}

#[tokio::test]
async fn a_runner_that_starts_again_says_where_it_listens_now() {
    let rack = Rack::new().await;
    let (mut child, mut lines) = rack.spawn(&["--port", "8100"]);
    assert_eq!(port(&mut lines).await, 8100);
    rack.phone().restart_runner(8200);
    assert_eq!(port(&mut lines).await, 8200);
    assert_eq!(child.try_wait().unwrap(), None);
    child.start_kill().unwrap();
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_goes_on() {
    let rack = Rack::new().await;
    let fault = LaunchFault::from(Mishap::IgnoresSigterm);
    rack.phone().launch_fault(fault);
    for args in [&[][..], &["--ignore-sigterm"]] {
        let (mut child, mut lines) = rack.spawn(args);
        port(&mut lines).await;
        signal(&child, "-TERM").await;
        signal(&child, "-INT").await;
        // It is told that its runner is gone only if it lives on.
        rack.phone().kill_runner();
        assert_eq!(child.wait().await.unwrap().code(), Some(65), "{args:?}");
    }
}

/// What the system says of a process.
async fn asked(pid: &str, what: &str) -> String {
    let output = Command::new("ps").args(["-o", what, "-p", pid]).output();
    let output = output.await.unwrap().stdout;
    String::from_utf8(output).unwrap().trim().to_owned()
}

#[tokio::test]
async fn a_child_that_sigterm_does_not_end_can_stay_behind_in_the_group() {
    let rack = Rack::new().await;
    let (mut child, mut lines) = rack.spawn(&["--leave-child"]);
    let left = line_with(&mut lines, "stays behind").await;
    let left = after(&left, "child ");
    port(&mut lines).await;
    let pid = child.id().unwrap().to_string();
    assert_eq!(asked(left, "pgid=").await, asked(&pid, "pgid=").await);
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(75));

    let ignored = asked(left, "ignored=").await;
    let ignored = u64::from_str_radix(&ignored, 16).unwrap();
    assert_ne!(
        ignored & (1 << 14),
        0,
        "SIGTERM, the 15th signal, is ignored"
    );
    let killed = Command::new("kill").args(["-KILL", left]).status().await;
    assert!(killed.unwrap().success(), "it was still there");
    rack.over().await;
}

#[tokio::test]
async fn a_port_can_come_in_two_writes() {
    let rack = Rack::new().await;
    let udid = rack.phone().udid().to_string();
    let mut command = rack.command(&["--udid", &udid, "--split-line", "20s"]);
    let mut child = command.spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut text = String::new();
    while !text.contains("LISTENING port=") {
        let mut chunk = [0; 4096];
        let read = stdout.read(&mut chunk).await.unwrap();
        text.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
    }
    let half = after(&text, "LISTENING port=").to_owned();
    assert!(!text.ends_with('\n'), "the line is not whole: {text}");
    let mut lines = BufReader::new(stdout).lines();
    let rest = lines.next_line().await.unwrap().unwrap();
    let port: u16 = (half + &rest).parse().unwrap();
    assert_eq!(rack.phone().report().runner.unwrap().port, port);
    child.start_kill().unwrap();
}

#[tokio::test]
async fn a_line_can_be_longer_than_anybody_expects() {
    let rack = Rack::new().await;
    let (mut child, mut lines) = rack.spawn(&["--long-line", "1048576"]);
    let line = line_with(&mut lines, "=======").await;
    assert_eq!(line.len(), 1_048_576);
    port(&mut lines).await;
    child.start_kill().unwrap();
}

#[tokio::test]
async fn what_a_lab_says_about_launching_can_be_done() {
    let (mut lab, mut lines) = spawn(&["lab", "--phones", "1", "--first", "7", "--no-runners"]);
    let listed = line_with(&mut lines, "simulated iPhone 7").await;
    let (udid, _) = listed.split_once(' ').unwrap();
    assert!(listed.ends_with('-'), "no runner: {listed}");
    let argv = line_with(&mut lines, "argv = ").await;
    let (_, argv) = argv.split_once(" = ").unwrap();
    let argv: Vec<String> = serde_json::from_str(argv).unwrap();
    let argv: Vec<_> = argv
        .iter()
        .map(|word| word.replace("{udid}", udid))
        .collect();
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut runner = command.spawn().unwrap();
    let mut log = BufReader::new(runner.stdout.take().unwrap()).lines();
    port(&mut log).await;

    signal(&lab, "-TERM").await;
    assert_eq!(lab.wait().await.unwrap().code(), Some(0));
    let end = tokio::time::timeout(Duration::from_secs(30), runner.wait());
    assert_eq!(end.await.unwrap().unwrap().code(), Some(65));
}
