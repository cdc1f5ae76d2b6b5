//! Lines as `xcodebuild` and a runner behind it print them.
//!
//! A reader that went away is not an error: a runner goes on without one. One
//! that does not read holds the lines up, and not the signals: what is written
//! is written on another thread.

use std::io::{self, Write};
use std::time::SystemTime;

use tokio::task::spawn_blocking;

/// The process that a runner is on its phone, in front of what it logs.
const NAME: &str = "ArgentRunnerUITests-Runner";

/// A line of `xcodebuild`'s, or the rest of one that was begun.
pub(super) async fn tool(line: &str) {
    write(io::stdout(), format!("{line}\n")).await;
}

/// Something that is wrong.
pub(super) async fn error(line: &str) {
    write(io::stderr(), format!("xcodebuild: error: {line}\n")).await;
}

/// A line that the runner logs.
pub(super) async fn runner(line: &str) {
    write(io::stdout(), format!("{}{line}\n", logged())).await;
}

/// The first part of such a line.
pub(super) async fn runner_begins(part: &str) {
    write(io::stdout(), format!("{}{part}", logged())).await;
}

/// What a logging system puts before a line.
fn logged() -> String {
    let now = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
    let now = now.replace('T', " ");
    let pid = std::process::id();
    format!("{} {NAME}[{pid}:1] ", now.trim_end_matches('Z'))
}

async fn write(mut to: impl Write + Send + 'static, text: String) {
    let written = spawn_blocking(move || to.write_all(text.as_bytes()).and_then(|()| to.flush()));
    let _gone = written.await;
}
