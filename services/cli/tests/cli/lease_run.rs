//! `lease run`: a command with phones of its own, to whatever end.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::bench::{APP, Bench, DEVICE, finish, fleetgate};
use crate::pipe::Pipe;
use crate::processes::{Output, line_with, signal};
use fleetgate_identity::Role;

/// What `lease run` ends with if the lease was lost.
const LOST: i32 = 125;

/// A command that says that it runs, and goes on until it is told otherwise.
pub(crate) const UP: &str = "echo up; while :; do sleep 0.05; done";

/// `lease run` before a gateway, with these options and this command.
pub(crate) fn lease_run(server: &str, options: &[&str], command: &[&str]) -> Command {
    let mut run = fleetgate();
    run.args(["--server", server, "lease", "run"])
        .args(options)
        .arg("--")
        .args(command);
    run
}

/// One that goes on, and what its command says.
struct Running {
    child: Child,
    said: Output,
    noted: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        Self {
            said: BufReader::new(child.stdout.take().unwrap()).lines(),
            noted: BufReader::new(child.stderr.take().unwrap()).lines(),
            child,
        }
    }

    /// One whose command is up.
    async fn up(server: &str, options: &[&str], script: &str) -> Self {
        let mut running = Self::start(&mut lease_run(server, options, &["sh", "-c", script]));
        line_with(&mut running.said, "up").await;
        running
    }

    /// Waits for a note that has this in it.
    async fn noted(&mut self, text: &str) -> String {
        loop {
            let line = self.noted.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended without noting {text:?}"));
            if line.contains(text) {
                return line;
            }
        }
    }

    async fn code(mut self) -> Option<i32> {
        self.child.wait().await.unwrap().code()
    }
}

/// The newest lease, once it is not on its way out any more.
async fn newest(bench: &Bench) -> Value {
    loop {
        let listed = bench
            .ask(&["lease", "ls", "--all", "-o", "json"])
            .await
            .json();
        let newest = listed["leases"][0].clone();
        if newest["state"] != "draining" {
            return newest;
        }
    }
}

async fn is_released(bench: &Bench) {
    let lease = newest(bench).await;
    assert_eq!(lease["end_reason"], "RELEASED", "{lease}");
}

#[tokio::test]
async fn a_command_has_its_phones_in_its_environment_and_is_passed_on_how_it_ends() {
    let bench = Bench::start().await;
    let script = "echo $FLEETGATE_DEVICES $FLEETGATE_DEVICE $FLEETGATE_LEASE_EPOCH; exit 42";
    let said = finish(
        &mut lease_run(&bench.server, &["--count", "2"], &["sh", "-c", script]),
        "",
    )
    .await;
    assert_eq!(said.code, 42, "{}", said.stderr);
    let phones: Vec<_> = bench
        .lab()
        .phones()
        .iter()
        .map(|phone| phone.udid().to_string())
        .collect();
    let words: Vec<_> = said.text().split_whitespace().collect();
    assert_eq!(words[0].split(',').count(), 2, "{words:?}");
    assert!(
        phones.iter().all(|udid| words[0].contains(udid)),
        "{words:?}"
    );
    assert!(words[0].starts_with(words[1]) && words[2].parse::<u64>().is_ok());
    is_released(&bench).await;
    bench.end().await;
}

#[tokio::test]
async fn a_fleetgate_within_drives_the_phone_without_a_flag() {
    let bench = Bench::start().await;
    bench.focus().await;
    let binary = env!("CARGO_BIN_EXE_fleetgate");
    let script = format!(
        "{binary} tap --app {APP} --x 1 --y 1 && {binary} type hello --app {APP} && \
         {binary} lease renew && {binary} tree --app {APP} > /dev/null"
    );
    let options = ["--device", DEVICE];
    let mut run = lease_run(&bench.server, &options, &["sh", "-c", &script]);
    let said = finish(&mut run, "").await;
    assert_eq!(said.code, 0, "{}", said.stderr);
    is_released(&bench).await;
    bench.end().await;
}

#[tokio::test]
async fn a_signal_is_passed_on_and_the_lease_is_given_back() {
    let bench = Bench::start().await;
    let polite = format!("trap 'exit 3' TERM; {UP}");
    let running = Running::up(&bench.server, &["--device", DEVICE], &polite).await;
    signal(&running.child, "-TERM").await;
    assert_eq!(running.code().await, Some(3), "the command's own code");
    is_released(&bench).await;

    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        let running = Running::up(&bench.server, &["--device", DEVICE], UP).await;
        signal(&running.child, name).await;
        assert_eq!(running.code().await, Some(code), "{name}");
        is_released(&bench).await;
    }
    bench.end().await;
}

#[tokio::test]
async fn a_second_signal_kills_a_command_that_does_not_listen() {
    let bench = Bench::start().await;
    let deaf = format!("trap '' INT; {UP}");
    let mut running = Running::up(&bench.server, &["--device", DEVICE], &deaf).await;
    signal(&running.child, "-INT").await;
    running.noted("another signal kills it").await;
    signal(&running.child, "-INT").await;
    assert_eq!(running.code().await, Some(137));
    is_released(&bench).await;
    bench.end().await;
}

#[tokio::test]
async fn all_that_the_command_has_started_is_told() {
    let bench = Bench::start().await;
    let script = format!("sh -c \"trap 'echo told; exit 0' TERM; {UP}\" & wait; wait");
    let mut running = Running::up(&bench.server, &["--device", DEVICE], &script).await;
    signal(&running.child, "-TERM").await;
    line_with(&mut running.said, "told").await;
    assert_eq!(running.code().await, Some(143));
    bench.end().await;
}

#[tokio::test]
async fn whoever_is_interrupted_while_it_waits_takes_its_wish_back() {
    let bench = Bench::start().await;
    let held = bench
        .ask(&["lease", "create", "--device", DEVICE, "-o", "json"])
        .await
        .json();
    let mut run = lease_run(&bench.server, &["--device", DEVICE], &["sh", "-c", UP]);
    let mut running = Running::start(&mut run);
    running.noted("place 1 in line").await;
    signal(&running.child, "-INT").await;
    running.noted("taken back").await;
    assert_eq!(running.code().await, Some(130));
    let wish = newest(&bench).await;
    assert_eq!(wish["state"], "cancelled", "{wish}");

    // One that waits gets the phone when it is given back.
    let mut run = lease_run(&bench.server, &["--device", DEVICE], &["true"]);
    let mut running = Running::start(&mut run);
    running.noted("place 1 in line").await;
    bench
        .ask(&["lease", "release", held["lease_id"].as_str().unwrap()])
        .await;
    running.noted("is granted").await;
    assert_eq!(running.code().await, Some(0));
    bench.end().await;
}

#[tokio::test]
async fn a_command_that_cannot_be_run_gives_the_lease_back() {
    let bench = Bench::start().await;
    let not_a_program = bench
        .directory
        .path()
        .join("ledger.db")
        .display()
        .to_string();
    for (program, code) in [("/nowhere/to/be/found", 127), (&not_a_program, 126)] {
        let said = finish(
            &mut lease_run(&bench.server, &["--device", DEVICE], &[program]),
            "",
        )
        .await;
        assert_eq!(said.code, code, "{}", said.stderr);
        assert!(said.stderr.contains(program), "{}", said.stderr);
        is_released(&bench).await;
    }
    bench.end().await;
}

#[tokio::test]
async fn a_command_whose_lease_is_lost_is_ended_and_that_is_told() {
    let bench = Bench::start().await;
    for (script, is_deaf) in [
        (UP.to_owned(), false),
        (format!("trap '' TERM; {UP}"), true),
    ] {
        let mut running = Running::up(&bench.server, &["--device", DEVICE], &script).await;
        let lease = newest(&bench).await["lease_id"]
            .as_str()
            .unwrap()
            .to_owned();
        bench
            .ask(&[
                "lease",
                "revoke",
                &lease,
                "--reason",
                "rack moves",
                "-o",
                "json",
            ])
            .await
            .json();
        let note = running.noted("the lease is lost").await;
        assert!(note.contains("rack moves"), "{note}");
        let begun = tokio::time::Instant::now();
        running.noted("was lost").await;
        assert_eq!(running.code().await, Some(LOST));
        assert_eq!(
            begun.elapsed().as_secs() >= 4,
            is_deaf,
            "{:?}",
            begun.elapsed()
        );
    }
    bench.end().await;
}

#[tokio::test]
async fn a_lease_is_kept_alive_while_its_command_runs() {
    let bench = Bench::start().await;
    let go = bench.directory.path().join("go");
    let options = ["--device", DEVICE, "--ttl", "1s"];
    let running = Running::up(&bench.server, &options, &until_there(&go)).await;
    let lease = newest(&bench).await["lease_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let expires = || async {
        let shown = bench
            .ask(&["lease", "show", &lease, "-o", "json"])
            .await
            .json();
        assert_eq!(shown["state"], "active", "{shown}");
        shown["expire_time"].as_str().unwrap().to_owned()
    };
    // Every third of the second moves it on: thrice is further than once.
    for _ in 0..4 {
        let then = expires().await;
        while expires().await == then {}
    }
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.code().await, Some(0));
    is_released(&bench).await;
    bench.end().await;
}

/// A command that ends once a file is there.
fn until_there(file: &Path) -> String {
    format!(
        "echo up; until [ -e {} ]; do sleep 0.02; done",
        file.display()
    )
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_found_by_its_request() {
    let bench = Bench::start().await;
    let token = bench.token_of("ci", Role::Operator).await;
    let pipe = Pipe::to(&bench.server).await;
    pipe.lose_answers(true);
    let options = ["--device", DEVICE, "--token-file", &token];
    let running = Running::start(&mut lease_run(&pipe.server, &options, &["true"]));
    while newest(&bench).await["state"] != "active" {}
    pipe.lose_answers(false);
    pipe.cut();
    assert_eq!(running.code().await, Some(0));
    is_released(&bench).await;
    let all = bench.ask(&["lease", "ls", "--all", "-o", "json"]).await;
    assert_eq!(all.json()["leases"].as_array().unwrap().len(), 1);
    bench.end().await;
}

#[tokio::test]
async fn a_gateway_that_starts_anew_finds_the_lease_kept() {
    let bench = Bench::start().await;
    let token = bench.token_of("ci", Role::Operator).await;
    let pipe = Pipe::to(&bench.server).await;
    let go = bench.directory.path().join("go");
    let options = ["--device", DEVICE, "--ttl", "2s", "--token-file", &token];
    let mut running = Running::up(&pipe.server, &options, &until_there(&go)).await;
    let lease = newest(&bench).await;

    pipe.lead_to("127.0.0.1:1");
    let bench = bench.restarted().await;
    running.noted("the gateway is away").await;
    pipe.lead_to(&bench.server);
    running.noted("the gateway is back").await;
    let kept = newest(&bench).await;
    assert_eq!(kept["lease_id"], lease["lease_id"]);
    assert_eq!(
        (&kept["state"], &kept["epoch"]),
        (&lease["state"], &lease["epoch"])
    );
    let then = kept["expire_time"].clone();
    while newest(&bench).await["expire_time"] == then {}
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.code().await, Some(0));
    is_released(&bench).await;
    bench.end().await;
}

#[tokio::test]
async fn a_gateway_of_this_host_is_found_again_with_its_new_token() {
    let bench = Bench::start().await;
    let go = bench.directory.path().join("go");
    let options = ["--device", DEVICE, "--ttl", "2s"];
    let running = Running::up(&bench.server, &options, &until_there(&go)).await;
    let lease = newest(&bench).await;
    let bench = bench.restarted_in_place().await;
    let then = newest(&bench).await["expire_time"].clone();
    let renewed = loop {
        let now = newest(&bench).await;
        if now["expire_time"] != then {
            break now;
        }
    };
    assert_eq!(
        (&renewed["lease_id"], &renewed["state"]),
        (&lease["lease_id"], &"active".into())
    );
    std::fs::write(&go, "").unwrap();
    assert_eq!(running.code().await, Some(0));
    is_released(&bench).await;
    bench.end().await;
}

#[tokio::test]
async fn a_holder_that_is_killed_loses_the_phone_after_its_ttl() {
    let bench = Bench::start().await;
    let pid_file: PathBuf = bench.directory.path().join("pid");
    let script = format!("echo $$ > {}; {UP}", pid_file.display());
    let options = ["--device", DEVICE, "--ttl", "1s"];
    let mut running = Running::up(&bench.server, &options, &script).await;
    running.child.kill().await.unwrap();
    let ended = loop {
        let lease = newest(&bench).await;
        if lease["state"] != "active" {
            break lease;
        }
    };
    assert_eq!(ended["end_reason"], "TTL_EXPIRED", "{ended}");
    // What it ran is not this process's any more: it is ended here.
    let orphan = std::fs::read_to_string(pid_file).unwrap();
    let killed = Command::new("kill")
        .args(["-KILL", orphan.trim()])
        .stderr(Stdio::null())
        .status();
    killed.await.unwrap();
    bench.end().await;
}
