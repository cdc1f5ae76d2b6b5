//! The command of a `lease run` as a process.
//!
//! It gets a process group of its own, so that whatever it starts is told what
//! it is told. Not on a terminal: a group in the background may not read from
//! it. There the command is in this process's group and has Ctrl-C from the
//! terminal itself, so that it is not passed on a second time.
//!
//! Invariant: no signal is sent once the process has been waited for, when its
//! number may be somebody else's.

use std::io::{self, IsTerminal};
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};
use rustix::termios::tcgetpgrp;
use tokio::process::Child;

use crate::exit::NotStarted;

/// A command that runs.
#[derive(Debug)]
pub(super) struct Command {
    child: Child,
    shares_terminal: bool,
}

impl Command {
    /// Starts it.
    pub(super) fn start(
        argv: &[String],
        variables: &[(&'static str, String)],
    ) -> Result<Self, NotStarted> {
        let not_started = |why| NotStarted {
            program: argv.first().cloned().unwrap_or_default(),
            why,
        };
        let (program, arguments) = argv
            .split_first()
            .ok_or_else(|| not_started(io::ErrorKind::NotFound.into()))?;
        let shares_terminal = is_in_front_of_a_terminal();
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .kill_on_drop(true);
        if !shares_terminal {
            command.process_group(0);
        }
        Ok(Self {
            child: command.spawn().map_err(not_started)?,
            shares_terminal,
        })
    }

    /// Waits for its end.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Passes a signal on that came to this process, unless it came to the
    /// command as well.
    pub(super) fn pass_on(&self, signal: Signal) {
        let is_the_terminals = signal == Signal::INT || signal == Signal::HUP;
        if !(self.shares_terminal && is_the_terminals) {
            self.send(signal);
        }
    }

    /// Sends it a signal.
    pub(super) fn send(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            return;
        };
        // One that has just ended needs none.
        let _gone = if self.shares_terminal {
            kill_process(pid, signal)
        } else {
            kill_process_group(pid, signal)
        };
    }
}

fn is_in_front_of_a_terminal() -> bool {
    let stdin = io::stdin();
    stdin.is_terminal() && tcgetpgrp(&stdin).is_ok_and(|front| front == getpgrp())
}
