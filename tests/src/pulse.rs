//! A watch over the runtime that a test runs on.
//!
//! Every limit of time in a test is a timer of its runtime, and threads that
//! wait for each other, or never yield, fire none: the test would hang without a
//! word. So a thread of its own waits for a task that comes round all the time;
//! where it does not, the process tells what its threads do, and ends.

use std::fs;
use std::io;
use std::process::{Command, Stdio, abort, id};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::patience::tell;

const EVERY: Duration = Duration::from_millis(500);

/// No machine is so slow.
const STANDSTILL: Duration = Duration::from_secs(60);

/// Who tells, of several that watch one runtime; the others wait for the end.
static TELLING: Mutex<()> = Mutex::new(());

/// Watches the current runtime for as long as it lives.
#[derive(Debug)]
pub(crate) struct Pulse {
    _beating: JoinSet<()>,
}

impl Pulse {
    /// Begins to watch.
    pub(crate) fn watch() -> Self {
        let (beat, beats) = channel();
        let mut beating = JoinSet::new();
        beating.spawn(async move {
            while beat.send(()).is_ok() {
                sleep(EVERY).await;
            }
        });
        thread::spawn(move || {
            if stands_still(&beats, STANDSTILL) {
                let _telling = TELLING.lock();
                tell(format_args!(
                    "no task of a test has run for {STANDSTILL:?}; the threads:"
                ));
                tell_threads();
                abort();
            }
        });
        Self { _beating: beating }
    }
}

/// Waits until nothing beats any more: true if that is while something should.
fn stands_still(beats: &Receiver<()>, standstill: Duration) -> bool {
    loop {
        match beats.recv_timeout(standstill) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// Tells of each thread its name, whether it runs, the time that it has had in
/// hundredths of a second, and what it waits in; and where it is, if there is a
/// debugger.
fn tell_threads() {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    for task in tasks.flatten() {
        let read = |name| fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let (stat, waits_in) = (read("stat"), read("wchan"));
        // The name, in parentheses, may hold anything.
        let (name, fields) = stat.rsplit_once(") ").unwrap_or_default();
        let fields: Vec<_> = fields.split(' ').collect();
        let field = |at| fields.get(at).copied().unwrap_or_default();
        tell(format_args!(
            "{name}) {} {}+{} {waits_in}",
            field(0),
            field(11),
            field(12)
        ));
    }
    // Not through this process, which stands still while it is looked at; and a
    // debugger may hang as well.
    let stacks = Command::new("timeout")
        .args(["120", "gdb", "-batch", "-p", &id().to_string()])
        .args(["-ex", "thread apply all backtrace 40"])
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .status();
    // There need not be one.
    drop(stacks);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_runs_nothing_is_told_from_one_that_has_ended() {
        let (beat, beats) = channel();
        beat.send(()).unwrap();
        assert!(stands_still(&beats, Duration::from_millis(1)));
        drop(beat);
        assert!(!stands_still(&beats, STANDSTILL));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_thread_that_never_yields_holds_up_every_beat() {
        let (beat, beats) = channel();
        let mut beating = JoinSet::new();
        let (begun, begins) = tokio::sync::oneshot::channel();
        let (release, released) = channel::<()>();
        beating.spawn(async move {
            begun.send(()).unwrap();
            // A lock that is never free is as this is.
            released.recv().ok();
            beat.send(()).ok();
        });
        begins.await.unwrap();
        assert!(stands_still(&beats, Duration::from_millis(1)));
        release.send(()).unwrap();
    }
}
