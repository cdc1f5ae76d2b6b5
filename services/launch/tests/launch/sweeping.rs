//! What an earlier gateway left, and what only looks like it.

use std::fs;
use std::time::Duration;

use fleetgate_launch::Swept;
use fleetgate_runner::Udid;
use serde_json::{Value, json};

use crate::support::{Bystander, Place, device, lives, soon, write_record};

const LAUNCH: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// What `ps` and /proc say of a process, as a launcher writes it down: taken
/// from the record of a process that this launcher started.
async fn epoch(place: &Place) -> String {
    let launcher = place.open();
    let running = launcher
        .start(&device(), &place.script("exec sleep 600"))
        .await
        .unwrap();
    let text = fs::read_to_string(place.record(&device())).unwrap();
    soon(running.stop()).await;
    let record: Value = serde_json::from_str(&text).unwrap();
    record["process"]["epoch"].as_str().unwrap().to_owned()
}

/// When a process began, in the words of this host.
fn start(pid: u32) -> String {
    if cfg!(target_os = "linux") {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields = stat.rsplit(')').next().unwrap().split_ascii_whitespace();
        return fields.into_iter().nth(19).unwrap().to_owned();
    }
    let output = std::process::Command::new("/bin/ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .envs([("LC_ALL", "C"), ("TZ", "UTC")])
        .output()
        .unwrap();
    let words = String::from_utf8(output.stdout).unwrap();
    words.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn record(process: &Value) -> Value {
    json!({
        "version": 1, "launch": LAUNCH, "device": device(), "program": "xcodebuild",
        "stop_grace_ms": 5000, "process": process,
    })
}

fn process(pid: u32, epoch: &str, start: &str) -> Value {
    json!({ "pid": pid, "epoch": epoch, "start": start })
}

#[tokio::test]
async fn nothing_on_record_is_nothing_to_do() {
    let place = Place::new();
    let launcher = place.open();
    assert_eq!(launcher.sweep(&device()).await.unwrap(), Swept::Nothing);
    let all = launcher.sweep_all().await.unwrap();
    assert!(all.devices.is_empty() && all.failed.is_empty() && all.strange.is_empty());
}

#[tokio::test]
async fn a_runner_of_this_launcher_is_no_orphan() {
    let place = Place::new();
    let launcher = place.open();
    let running = launcher
        .start(&device(), &place.script("exec sleep 600"))
        .await
        .unwrap();
    assert_eq!(launcher.sweep(&device()).await.unwrap(), Swept::Ours);
    assert_eq!(
        launcher.sweep_all().await.unwrap().devices[&device()],
        Swept::Ours
    );
    assert!(lives(running.pid()));
    soon(running.stop()).await;
}

#[tokio::test]
async fn a_process_that_only_has_the_recorded_number_is_left_alone() {
    let place = Place::new();
    let epoch = epoch(&place).await;
    let mut bystander = Bystander::start(&[]);
    let mut claimant = Bystander::start(&[("FLEETGATE_LAUNCH_ID", "another")]);
    let pid = bystander.pid();
    let mut cases = vec![
        (process(pid, &epoch, "1"), Swept::Foreign { pid }),
        // It has the number and the start, but in another boot.
        (
            process(pid, "another boot", &start(pid)),
            Swept::Foreign { pid },
        ),
    ];
    if cfg!(target_os = "linux") {
        // It has all of it, and says that it is of another launch.
        let pid = claimant.pid();
        let record = process(pid, &epoch, &start(pid));
        cases.push((record, Swept::Foreign { pid }));
    }
    for (process, expected) in cases {
        write_record(&place.record(&device()), &record(&process));
        let launcher = place.open();
        assert_eq!(launcher.sweep(&device()).await.unwrap(), expected);
        assert!(!place.record(&device()).exists());
        // Nor is it in the way of a launch.
        write_record(&place.record(&device()), &record(&process));
        let running = launcher
            .start(&device(), &place.script("exec sleep 600"))
            .await
            .unwrap();
        soon(running.stop()).await;
        assert_eq!(bystander.ended(), None);
        assert_eq!(claimant.ended(), None);
    }
}

#[tokio::test]
async fn a_process_that_merely_is_in_the_recorded_group_is_left_alone() {
    use std::os::unix::process::CommandExt;

    let place = Place::new();
    let epoch = epoch(&place).await;
    // A group whose leader is gone, and in it somebody that nothing proves ours.
    let shell = std::process::Command::new("sh")
        .args(["-c", "sleep 600 >/dev/null 2>&1 & echo $!"])
        .process_group(0)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let group = shell.id();
    let output = shell.wait_with_output().unwrap();
    let member: u32 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    write_record(
        &place.record(&device()),
        &record(&process(group, &epoch, "1")),
    );
    let swept = place.open().sweep(&device()).await.unwrap();
    assert_eq!(swept, Swept::Unproven { pids: vec![member] });
    assert!(lives(member));
    let member = rustix::process::Pid::from_raw(member.try_into().unwrap()).unwrap();
    rustix::process::kill_process(member, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn this_process_is_never_an_orphan_whatever_is_on_record() {
    let place = Place::new();
    let epoch = epoch(&place).await;
    let group = rustix::process::getpgrp().as_raw_pid().unsigned_abs();
    for pid in [std::process::id(), group] {
        // Whoever began this group may have ended.
        let began = if lives(pid) {
            start(pid)
        } else {
            "1".to_owned()
        };
        write_record(
            &place.record(&device()),
            &record(&process(pid, &epoch, &began)),
        );
        let swept = place.open().sweep(&device()).await.unwrap();
        assert!(
            matches!(swept, Swept::Foreign { .. } | Swept::Gone),
            "{swept:?}"
        );
    }
}

#[tokio::test]
async fn a_launch_that_was_never_completed_on_record_is_found_by_what_it_says() {
    let place = Place::new();
    let mut orphan = Bystander::start(&[("FLEETGATE_LAUNCH_ID", LAUNCH)]);
    let mut bystander = Bystander::start(&[("FLEETGATE_LAUNCH_ID", "another")]);
    write_record(&place.record(&device()), &record(&Value::Null));
    let swept = soon(place.open().sweep(&device())).await.unwrap();
    let pid = orphan.pid();
    assert_eq!(swept, Swept::Ended { pid, killed: false });
    assert!(orphan.ended().is_some());
    assert_eq!(bystander.ended(), None);
    assert!(!place.record(&device()).exists());
}

#[tokio::test]
async fn a_record_that_cannot_be_read_is_kept_aside_and_is_in_nobodys_way() {
    let place = Place::new();
    let mut bystander = Bystander::start(&[]);
    let whole = record(&process(bystander.pid(), "e", "1")).to_string();
    let half = &whole[..whole.len() - 2];
    let path = place.record(&device());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, half).unwrap();
    let other = Udid::from_parts(1, 2);
    fs::create_dir(place.record(&other)).unwrap();
    fs::write(path.with_file_name("notes.txt"), "").unwrap();

    let launcher = place.open();
    let all = launcher.sweep_all().await.unwrap();
    let Swept::Unreadable { kept } = &all.devices[&device()] else {
        panic!("{all:?}");
    };
    assert_eq!(fs::read_to_string(kept).unwrap(), half);
    assert!(matches!(all.devices[&other], Swept::Unreadable { .. }));
    assert_eq!(all.strange, [path.with_file_name("notes.txt")]);
    assert_eq!(bystander.ended(), None);

    fs::write(&path, half).unwrap();
    let running = launcher
        .start(&device(), &place.script("exec sleep 600"))
        .await
        .unwrap();
    soon(running.stop()).await;
}

#[tokio::test]
async fn many_orphans_are_ended_at_the_same_time() {
    let place = Place::new();
    let epoch = epoch(&place).await;
    let mut orphans: Vec<_> = (0..20)
        .map(|_| Bystander::start(&[("FLEETGATE_LAUNCH_ID", LAUNCH)]))
        .collect();
    let mut devices = Vec::new();
    for (number, orphan) in (0..).zip(&orphans) {
        let device = Udid::from_parts(7, number);
        let mut record = record(&process(orphan.pid(), &epoch, &start(orphan.pid())));
        record["device"] = json!(device);
        write_record(&place.record(&device), &record);
        devices.push(device);
    }
    let begun = tokio::time::Instant::now();
    let all = soon(place.open().sweep_all()).await.unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    for (device, orphan) in devices.iter().zip(&mut orphans) {
        let pid = orphan.pid();
        assert_eq!(all.devices[device], Swept::Ended { pid, killed: false });
        assert!(orphan.ended().is_some());
    }
}
