//! `lease run`: a command that has phones to itself for as long as it runs.
//!
//! ```text
//!   wish ──► wait ──► the command runs, the lease is kept ──► given back
//!              │        │ signal: passed on; the second one kills
//!              │        └ lost: SIGTERM, SIGKILL later ──► exit code 125
//!              └ signal: taken back
//! ```
//!
//! Invariant: the lease is given back whichever way the command ends, unless it
//! was lost. If this process is killed, the lease ends by itself, and until then
//! it is the gateway that refuses others.

use std::pin::pin;
use std::time::Duration;

use clap::Args;
use fleetgate_proto::v1::Lease;
use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

use self::command::Command;
use self::keep::Keeper;
use super::acquire::{Acquire, Acquired, give_back};
use super::wish::Wish;
use crate::client::Context;
use crate::exit::{Exit, LeaseLost};
use crate::output::{clean, note};
use crate::signals::Signals;

mod command;
mod keep;

/// How long a command whose lease was lost may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// Run a command that has phones to itself.
#[derive(Debug, Args)]
#[command(after_help = "\
It waits until the lease is granted, runs the command, keeps the lease while it
runs, and gives it back. Its phones, and what a `fleetgate` within needs in order
to use them without a flag, are in the command's environment:

  FLEETGATE_DEVICE       the UDID of the first phone
  FLEETGATE_DEVICES      those of all of them, with commas in between
  FLEETGATE_LEASE        the lease, for --lease
  FLEETGATE_LEASE_EPOCH  its epoch, for --epoch
  FLEETGATE_SERVER       the gateway

A command that may take longer than the gateway's usual max_duration needs a
--max-duration: however well it is kept, the lease is lost then.

SIGINT, SIGTERM and SIGHUP are passed on to the command and all that is in its
process group; a second one kills them. On a terminal the command shares that
with this process, and has Ctrl-C from there. If the lease is lost, the command
gets SIGTERM, and SIGKILL 5 s later.

It ends as the command does: with its exit code, or 128 and the number of the
signal that ended it; with 127 or 126 if the command is not found or cannot be
run, and with 125 if the lease was lost. Before the command, the codes are those
of every verb.

Examples:
  fleetgate lease run --selector pool=ci -- pytest tests/
  fleetgate lease run --device anna -- fleetgate tap --app com.example.shop --x 10 --y 20")]
pub(super) struct Run {
    #[command(flatten)]
    wish: Wish,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl Run {
    /// Runs it.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let request = self.wish.request()?;
        let mut signals = Signals::listen()?;
        let lease = match Acquire::new(context).run(request, &mut signals).await? {
            Acquired::Granted(lease) => lease,
            Acquired::Stopped(signal) => return Ok(Exit::by_signal(signal)),
        };
        note(&clean(&format!(
            "the lease {} is granted: {}",
            lease.id,
            lease.devices.join(", ")
        )));
        let driven = drive(&self.command, context, &lease, &mut signals).await;
        let is_lost = matches!(&driven, Err(error) if error.is::<LeaseLost>());
        if !is_lost {
            give_back(&super::acquire::answering(context), &lease.id).await;
        }
        driven
    }
}

/// Runs the command to its end, and keeps the lease meanwhile.
async fn drive(
    argv: &[String],
    context: &Context,
    lease: &Lease,
    signals: &mut Signals,
) -> anyhow::Result<Exit> {
    let mut command = Command::start(argv, &environment(context, lease))?;
    let keeper = Keeper::new(context, lease);
    let mut keeping = pin!(keeper.until_lost());
    let mut lost = None;
    let mut kill_at = None;
    let mut asked = 0;
    let status = loop {
        let at = kill_at.unwrap_or_else(Instant::now);
        tokio::select! {
            status = command.ended() => break status?,
            why = &mut keeping, if lost.is_none() => {
                note(&clean(&format!("the lease is lost: {why}; the command is ended")));
                command.send(Signal::TERM);
                kill_at = Some(Instant::now() + GRACE);
                lost = Some(why);
            }
            signal = signals.next() => {
                asked += 1;
                if asked == 1 {
                    command.pass_on(signal);
                    note("waiting for the command to end; another signal kills it");
                } else {
                    command.send(Signal::KILL);
                }
            }
            () = sleep_until(at), if kill_at.is_some() => {
                command.send(Signal::KILL);
                kill_at = None;
            }
        }
    };
    match lost {
        None => Ok(Exit::of_command(status)),
        Some(why) => Err(LeaseLost(format!("the lease {} was lost: {why}", lease.id)).into()),
    }
}

/// What the command needs in order to use its phones.
fn environment(context: &Context, lease: &Lease) -> Vec<(&'static str, String)> {
    let first = lease.devices.first().cloned().unwrap_or_default();
    let mut variables = vec![
        ("FLEETGATE_DEVICE", first),
        ("FLEETGATE_DEVICES", lease.devices.join(",")),
        ("FLEETGATE_LEASE", lease.id.clone()),
        ("FLEETGATE_LEASE_EPOCH", lease.epoch.to_string()),
        ("FLEETGATE_SERVER", context.server.to_string()),
    ];
    variables.extend(context.access.variables());
    variables
}
