//! `lease run` where a person sits: Ctrl-C, and a line of progress.

use crate::bench::{Bench, DEVICE};
use crate::lease_run::{UP, lease_run};
use crate::terminal::Terminal;

const CTRL_C: &str = "\x03";

#[tokio::test]
async fn ctrl_c_reaches_the_command_once_and_a_second_one_kills_it() {
    let bench = Bench::start().await;
    let mut terminal = Terminal::open();
    let deaf = format!("trap 'echo heard' INT; {UP}");
    let run = lease_run(&bench.server, &["--device", DEVICE], &["sh", "-c", &deaf]);
    let mut child = terminal.take(&run).spawn().unwrap();
    terminal.until("up", 1).await;
    terminal.press(CTRL_C);
    terminal.until("another signal kills it", 1).await;
    terminal.until("heard", 1).await;
    assert_eq!(terminal.shown().matches("heard").count(), 1);
    terminal.press(CTRL_C);
    assert_eq!(child.wait().await.unwrap().code(), Some(137));
    bench.end().await;
}

#[tokio::test]
async fn a_command_at_a_terminal_can_read_from_it() {
    let bench = Bench::start().await;
    let mut terminal = Terminal::open();
    let script = "echo up; read line; echo \"got $line\"";
    let run = lease_run(&bench.server, &["--device", DEVICE], &["sh", "-c", script]);
    let mut child = terminal.take(&run).spawn().unwrap();
    terminal.until("up", 1).await;
    terminal.press("words\n");
    terminal.until("got words", 1).await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    bench.end().await;
}

#[tokio::test]
async fn a_wait_is_one_line_that_is_written_over() {
    let bench = Bench::start().await;
    let held = bench
        .ask(&["lease", "create", "--device", DEVICE, "-o", "json"])
        .await
        .json();
    let mut terminal = Terminal::open();
    let run = lease_run(&bench.server, &["--device", DEVICE], &["true"]);
    let mut child = terminal.take(&run).spawn().unwrap();
    // Twice, with how long it has been, and cut to the terminal.
    terminal.until("\rwaiting for the lease", 2).await;
    let id = held["lease_id"].as_str().unwrap();
    bench.ask(&["lease", "release", id]).await;
    terminal.until("is granted", 1).await;
    assert_eq!(child.wait().await.unwrap().code(), Some(0));
    let shown = terminal.shown();
    let (waits, _) = shown.split_once("is granted").unwrap();
    assert!(waits.contains("\r\x1b[K"), "it is taken away: {waits:?}");
    let waits = waits.split("\r\x1b[K").next().unwrap();
    assert!(!waits.contains('\n'), "{waits:?}");
    bench.end().await;
}
