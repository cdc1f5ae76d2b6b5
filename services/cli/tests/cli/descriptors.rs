//! How many files the verbs that stay may have open.

use std::process::Stdio;

use tokio::process::Command;

use crate::processes::{after, line_with, signal};

#[tokio::test]
async fn the_soft_limit_of_open_files_is_raised_to_the_hard_one() {
    let mut child = Command::new("/bin/sh")
        .args([
            "-c",
            "ulimit -Sn 100; ulimit -Hn 200; exec \"$0\" lab --phones 1",
        ])
        .arg(env!("CARGO_BIN_EXE_fleetgate"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(stdout));
    line_with(&mut lines, "usbmuxd: ").await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id().unwrap())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    assert_eq!(after(files.unwrap(), "Max open files"), "200", "{limits}");
    signal(&child, "-TERM").await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
}
