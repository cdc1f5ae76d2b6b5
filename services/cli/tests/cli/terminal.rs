//! `devices --watch` on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::bench::{Bench, DEVICE, fleetgate};

const COLUMNS: u16 = 70;
const ROWS: u16 = 12;

/// A terminal: what it was sent so far, and the end for a program.
pub(crate) struct Terminal {
    sent: watch::Receiver<String>,
    /// Where a person types.
    keys: File,
    end: OwnedFd,
    _reader: JoinSet<()>,
}

impl Terminal {
    pub(crate) fn open() -> Self {
        let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&near).unwrap();
        unlockpt(&near).unwrap();
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&near, size).unwrap();
        let name = ptsname(&near, Vec::new()).unwrap();
        let end = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
        let near = File::from(near);
        let keys = near.try_clone().unwrap();
        let (sender, sent) = watch::channel(String::new());
        let mut reader = JoinSet::new();
        reader.spawn_blocking(move || {
            let mut near = near;
            let mut buffer = [0; 4096];
            loop {
                match near.read(&mut buffer) {
                    // A terminal whose last program has closed it says so by an error.
                    Ok(0) | Err(_) => return,
                    Ok(read) => {
                        let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                        sender.send_modify(|sent| sent.push_str(&text));
                    }
                }
            }
        });
        Self {
            sent,
            keys,
            end,
            _reader: reader,
        }
    }

    /// Types.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// What was sent so far.
    pub(crate) fn shown(&self) -> String {
        self.sent.borrow().clone()
    }

    /// A program whose input and output it is. It is the one that the program's
    /// signals come from, too.
    pub(crate) fn take(&self, program: &Command) -> Command {
        let program = program.as_std();
        let mut command = Command::new("setsid");
        command
            .arg("--ctty")
            .arg(program.get_program())
            .args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let end = || Stdio::from(self.end.try_clone().unwrap());
        command.stdin(end()).stdout(end()).stderr(end());
        command.kill_on_drop(true);
        command
    }

    /// Waits until what was sent has this in it so often.
    pub(crate) async fn until(&mut self, text: &str, times: usize) {
        let shown = self
            .sent
            .wait_for(|sent| sent.matches(text).count() >= times);
        shown.await.unwrap();
    }

    /// All that was sent, once the program has ended.
    async fn rest(mut self) -> String {
        drop(self.end);
        while self.sent.changed().await.is_ok() {}
        let sent = self.sent.borrow();
        sent.clone()
    }
}

#[tokio::test]
async fn a_watch_draws_on_the_terminal_and_gives_it_back() {
    let bench = Bench::start().await;
    let mut terminal = Terminal::open();
    let mut child = fleetgate()
        .args(["--server", &bench.server, "devices", "--watch", "--events"])
        .env("TERM", "xterm")
        .stdout(Stdio::from(terminal.end.try_clone().unwrap()))
        .spawn()
        .unwrap();
    terminal.until("ready", 2).await;
    bench.phone().detach();
    terminal.until("detached", 2).await;
    let pid = child.id().unwrap().to_string();
    let kill = Command::new("kill").args(["-INT", &pid]).status().await;
    assert!(kill.unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));

    let sent = terminal.rest().await;
    let (enter, leave) = ("\u{1b}[?1049h\u{1b}[?25l", "\u{1b}[?25h\u{1b}[?1049l");
    assert!(sent.starts_with(enter), "{sent:?}");
    assert_eq!(sent.matches(leave).count(), 1, "{sent:?}");
    let (drawn, left) = sent.split_once(leave).unwrap();
    for line in drawn
        .split("\u{1b}[H")
        .flat_map(|frame| frame.split("\u{1b}[K"))
    {
        let line = line.trim_matches(['\r', '\n']);
        if !line.contains('\u{1b}') {
            assert!(line.chars().count() <= usize::from(COLUMNS), "{line:?}");
        }
    }
    // What stood there last stays, without anything that a terminal obeys.
    assert!(!left.contains('\u{1b}'), "{left:?}");
    assert!(
        left.contains(DEVICE) && left.contains("detached"),
        "{left:?}"
    );
    assert!(left.lines().count() <= usize::from(ROWS), "{left:?}");
    bench.end().await;
}
