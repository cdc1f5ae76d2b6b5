//! `devices --watch` where stdout is no terminal.

use std::process::Stdio;

use fleetgate_identity::Role;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use crate::bench::{APP, Bench, DEVICE, fleetgate};
use crate::pipe::Pipe;

/// A watcher and what it says.
struct Watcher {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
    noted: Lines<BufReader<ChildStderr>>,
}

impl Watcher {
    fn start(server: &str, more: &[&str]) -> Self {
        let mut child = fleetgate()
            .args(["--server", server, "devices", "--watch"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            said: BufReader::new(child.stdout.take().unwrap()).lines(),
            noted: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
        }
    }

    async fn line(&mut self) -> String {
        let line = self.said.next_line().await.unwrap();
        line.expect("the watch ended")
    }

    async fn json(&mut self) -> Value {
        serde_json::from_str(&self.line().await).unwrap()
    }

    /// The lines up to the first for which this holds, and that one.
    async fn until(&mut self, mut seen: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            lines.push(self.json().await);
            if lines.last().is_some_and(&mut seen) {
                return lines;
            }
        }
    }

    /// Waits for a note that has this in it.
    async fn noted(&mut self, text: &str) {
        while !self
            .noted
            .next_line()
            .await
            .unwrap()
            .expect("the watch ended")
            .contains(text)
        {}
    }

    /// Ends it as Ctrl-C does.
    async fn interrupted(mut self) -> Option<i32> {
        let pid = self.child.id().unwrap().to_string();
        let kill = Command::new("kill").args(["-INT", &pid]).status().await;
        assert!(kill.unwrap().success());
        self.child.wait().await.unwrap().code()
    }
}

fn is_synced(line: &Value) -> bool {
    line["event"] == "synced"
}

fn went_to<'a>(state: &'a str, udid: &'a str) -> impl Fn(&Value) -> bool + use<'a> {
    move |line| line["transition"]["to"] == state && line["device"]["udid"] == udid
}

#[tokio::test]
async fn a_watch_tells_the_fleet_as_it_is_and_then_what_happens_to_it() {
    let bench = Bench::start().await;
    let udid = bench.phone().udid().to_string();
    let mut watcher = Watcher::start(&bench.server, &["-o", "json"]);
    let fleet = watcher.until(is_synced).await;
    let of_phones: Vec<_> = fleet
        .iter()
        .filter(|line| line["event"] == "device")
        .collect();
    assert_eq!(of_phones.len(), 2);
    assert_eq!(of_phones[0]["device"]["alias"], DEVICE);
    assert_eq!(
        (&of_phones[0]["snapshot"], &of_phones[0]["device"]["state"]),
        (&Value::from(true), &Value::from("ready"))
    );
    assert!(
        fleet
            .iter()
            .any(|line| line["event"] == "host" && line["host"]["connected"] == true)
    );

    bench.phone().detach();
    let told = watcher.until(went_to("detached", &udid)).await;
    let gone = told.last().unwrap();
    assert_eq!(gone["transition"]["reason"], "UNPLUGGED");
    assert_eq!(gone["device"]["state"], "detached");
    bench.phone().attach();
    watcher.until(went_to("ready", &udid)).await;
    assert_eq!(watcher.interrupted().await, Some(0));
    bench.end().await;
}

#[tokio::test]
async fn fates_of_commands_are_told_if_they_are_asked_for() {
    let bench = Bench::start().await;
    let mut watcher = Watcher::start(&bench.server, &["--events"]);
    while !watcher.line().await.contains("synced") {}
    let tap = [
        "tap",
        DEVICE,
        "--app",
        APP,
        "--x",
        "200",
        "--y",
        "20",
        "--command-id",
        "tap-1",
    ];
    bench.ask(&tap).await;
    let told = loop {
        let told = watcher.line().await;
        if told.contains("  command  ") {
            break told;
        }
    };
    assert!(
        told.contains("  tap-1  tap  completed, effect applied"),
        "{told}"
    );
    assert_eq!(watcher.interrupted().await, Some(0));
    bench.end().await;
}

#[tokio::test]
async fn a_watch_goes_on_where_it_was_when_its_connection_is_lost() {
    let bench = Bench::start().await;
    let udid = bench.phone().udid().to_string();
    let pipe = Pipe::to(&bench.server).await;
    let token = bench.token_of("watcher", Role::Viewer).await;
    let mut watcher = Watcher::start(&pipe.server, &["-o", "json", "--token-file", &token]);
    watcher.until(is_synced).await;

    pipe.cut();
    bench.phone().detach();
    watcher.noted("the connection was lost").await;
    watcher.noted("connected again").await;
    let told = watcher.until(went_to("detached", &udid)).await;
    for line in told {
        assert_eq!(line.get("snapshot"), None, "{line}");
        assert_ne!(line["event"], "gap", "{line}");
    }
    assert_eq!(watcher.interrupted().await, Some(0));
    bench.end().await;
}

#[tokio::test]
async fn another_gateway_is_a_gap_and_the_fleet_as_it_is() {
    let bench = Bench::start().await;
    let pipe = Pipe::to(&bench.server).await;
    let token = bench.token_of("watcher", Role::Viewer).await;
    let mut watcher = Watcher::start(&pipe.server, &["-o", "json", "--token-file", &token]);
    watcher.until(is_synced).await;

    let bench = bench.restarted().await;
    pipe.lead_to(&bench.server);
    watcher.until(|line| line["event"] == "gap").await;
    watcher.noted("events are missing").await;
    let fleet = watcher.until(is_synced).await;
    let snapshot = fleet.iter().filter(|line| line["snapshot"] == true);
    let phones = snapshot.filter(|line| line["event"] == "device").count();
    assert_eq!(phones, 2);
    assert_eq!(watcher.interrupted().await, Some(0));
    bench.end().await;
}

#[tokio::test]
async fn a_watch_ends_when_its_time_is_up_or_nobody_reads() {
    let bench = Bench::start().await;
    let said = bench
        .ask(&["--timeout", "300ms", "devices", "--watch"])
        .await;
    assert_eq!(said.code, 4, "{}", said.stderr);
    assert!(said.text().contains("synced"), "{}", said.text());
    assert!(said.stderr.contains("DEADLINE_EXCEEDED"), "{}", said.stderr);

    let mut watcher = Watcher::start(&bench.server, &[]);
    while !watcher.line().await.contains("synced") {}
    drop(watcher.said);
    bench.phone().detach();
    assert_eq!(watcher.child.wait().await.unwrap().code(), Some(0));
    bench.end().await;
}
