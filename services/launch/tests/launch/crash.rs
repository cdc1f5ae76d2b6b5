//! Owners that are killed, at any moment, and what the next launcher finds.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fleetgate_launch::{LaunchSpec, Launcher, RunnerEvent, Swept};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Place, device, lives, soon, until};

const DIRECTORY: &str = "FLEETGATE_TEST_DIRECTORY";
const SCRIPT: &str = "FLEETGATE_TEST_SCRIPT";
const HERE: &str = "FLEETGATE_TEST_HERE";

/// Nothing by itself: run by the tests below as a process that launches, and
/// that is killed.
#[tokio::test]
async fn owner() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let launcher = Launcher::open(PathBuf::from(directory)).unwrap();
    let mut spec = LaunchSpec::new(["/bin/sh", "-c", &std::env::var(SCRIPT).unwrap()]);
    spec.env
        .insert("HERE".to_owned(), std::env::var(HERE).unwrap());
    spec.stop_grace = Duration::from_millis(300);
    println!("\nready");
    std::io::stdout().flush().unwrap();
    loop {
        let mut running = launcher.start(&device(), &spec).await.unwrap();
        while !matches!(running.next().await, RunnerEvent::Exited { .. }) {}
        running.stop().await;
    }
}

/// A process that owns a launcher.
struct Owner(Child);

impl Owner {
    fn start(place: &Place, script: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::owner", "--nocapture"])
            .env(DIRECTORY, place.launches())
            .env(SCRIPT, script)
            .env(HERE, place.file(""))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ready = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .any(|line| line.unwrap() == "ready");
        assert!(ready, "the owner should have begun");
        Self(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.kill();
    }
}

fn kill(pid: u32) {
    kill_process(
        Pid::from_raw(pid.try_into().unwrap()).unwrap(),
        Signal::KILL,
    )
    .unwrap();
}

/// A runner with a member, both of which take SIGTERM as their end.
const OBEDIENT: &str = "sleep 600 & echo $! > $HERE/member; echo $$ > $HERE/leader; wait";

#[tokio::test]
async fn what_a_killed_gateway_left_is_ended_by_the_next_one() {
    let place = Place::new();
    let mut owner = Owner::start(&place, OBEDIENT);
    let (leader, member) = (place.pid("leader").await, place.pid("member").await);
    owner.kill();
    assert!(lives(leader) && lives(member));
    let launcher = place.open();
    let all = soon(launcher.sweep_all()).await.unwrap();
    let ended = Swept::Ended {
        pid: leader,
        killed: false,
    };
    assert_eq!(all.devices[&device()], ended);
    assert!(!lives(leader) && !lives(member));
    assert_eq!(launcher.sweep(&device()).await.unwrap(), Swept::Nothing);
}

#[tokio::test]
async fn a_launch_ends_what_a_killed_gateway_left_before_it_begins() {
    let place = Place::new();
    let mut owner = Owner::start(&place, OBEDIENT);
    let (leader, member) = (place.pid("leader").await, place.pid("member").await);
    owner.kill();
    let spec = place.script("exec sleep 600");
    let running = soon(place.open().start(&device(), &spec)).await.unwrap();
    assert!(!lives(leader) && !lives(member));
    soon(running.stop()).await;
}

#[tokio::test]
async fn what_ignores_sigterm_is_killed_when_its_recorded_grace_has_passed() {
    let place = Place::new();
    let script = "trap '' TERM; echo $$ > $HERE/leader; while :; do sleep 600; done";
    let mut owner = Owner::start(&place, script);
    let leader = place.pid("leader").await;
    owner.kill();
    let swept = soon(place.open().sweep(&device())).await.unwrap();
    assert_eq!(
        swept,
        Swept::Ended {
            pid: leader,
            killed: true
        }
    );
    assert!(!lives(leader));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn members_are_found_although_both_their_leader_and_their_gateway_are_gone() {
    let place = Place::new();
    let mut owner = Owner::start(&place, OBEDIENT);
    let (leader, member) = (place.pid("leader").await, place.pid("member").await);
    owner.kill();
    kill(leader);
    until(|| !lives(leader)).await;
    assert!(lives(member));
    let swept = soon(place.open().sweep(&device())).await.unwrap();
    assert_eq!(
        swept,
        Swept::Ended {
            pid: leader,
            killed: false
        }
    );
    assert!(!lives(member));
}

#[tokio::test]
async fn what_ended_after_its_gateway_is_gone() {
    let place = Place::new();
    let mut owner = Owner::start(&place, OBEDIENT);
    let (leader, member) = (place.pid("leader").await, place.pid("member").await);
    owner.kill();
    kill(leader);
    kill(member);
    until(|| !lives(leader) && !lives(member)).await;
    let swept = soon(place.open().sweep(&device())).await.unwrap();
    assert_eq!(swept, Swept::Gone);
}

#[tokio::test]
async fn a_runner_has_no_variable_of_its_gateways() {
    let place = Place::new();
    let script = "env | grep -c FLEETGATE_TEST > $HERE/inherited; exec sleep 600";
    let mut owner = Owner::start(&place, script);
    assert_eq!(place.written("inherited").await, "0");
    owner.kill();
    soon(place.open().sweep(&device())).await.unwrap();
}

#[tokio::test]
async fn no_moment_at_which_a_gateway_is_killed_leaves_a_process_that_is_not_found() {
    let place = Place::new();
    for step in 0..40 {
        // It launches again and again, each time for a moment.
        let mut owner = Owner::start(&place, "sleep 600 & sleep 0.002");
        tokio::time::sleep(Duration::from_micros(step * 917 % 30_000)).await;
        owner.kill();
        let all = soon(place.open().sweep_all()).await.unwrap();
        assert!(all.failed.is_empty() && all.strange.is_empty(), "{all:?}");
        // A process that still waited at its gate ends by itself.
        until(|| place.processes().is_empty()).await;
    }
}
