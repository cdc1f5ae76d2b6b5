//! `lab runner`: the runner of one phone of a lab, launched in the place of
//! `xcodebuild`.
//!
//! It decides nothing. It asks the lab to launch and does what it is told:
//! prints lines, ignores a signal, leaves a child behind, exits. The simulated
//! runner ends with the connection, and so with this process however it ends.
//!
//! Its exit codes are those of `xcodebuild`, and none of this program's own:
//! it is looked at by what would look at `xcodebuild`.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use fleetgate_simulator::{LaunchEvent, LaunchRequest, Mishap};
use tokio::time::timeout;

use self::behaviour::Behaviour;
use self::launch::{Control, Launch, NoLaunch, USAGE};
use crate::signals::Stop;

mod behaviour;
mod child;
mod destination;
mod launch;
mod print;

/// The test run failed, or nobody knows how it ended.
const TEST_FAILURE: u8 = 65;
/// It was ended by a signal.
const INTERRUPTED: u8 = 75;

/// How long the last line may take to be taken.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Launch the runner of a phone of a lab, in the place of xcodebuild.
///
/// Prints what a runner logs, and stays until the runner ends or it is ended.
/// What goes wrong can be given here, or planted in the lab for whoever launches
/// next.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes, as xcodebuild has them:
  0   the runner has shut down, or its 24 hours are over
  64  no phone is named, or what is asked for makes no sense
  65  it ended in another way
  69  the lab cannot be reached
  70  the phone is not there, does not trust the lab's host, or is locked
  75  ended by SIGTERM or SIGINT

Example:
  fleetgate lab --no-runners --control 127.0.0.1:9000
  export FLEETGATE_LAB_CONTROL=http://127.0.0.1:9000
  UDID=00008110-00F1EE7000000001
  fleetgate lab runner --udid $UDID
  fleetgate lab runner -- test-without-building -destination platform=iOS,id=$UDID")]
pub(super) struct Runner {
    /// The phone
    #[arg(long, required_unless_present = "xcodebuild")]
    udid: Option<String>,
    /// The lab's control API
    #[arg(long, value_name = "URL", env = "FLEETGATE_LAB_CONTROL")]
    control: Control,
    /// Where the runner is to listen; 0 takes any port that is free
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// What xcodebuild would be given: the phone is that of its -destination
    #[arg(last = true, value_name = "XCODEBUILD ARGUMENTS")]
    xcodebuild: Vec<String>,
    #[command(flatten)]
    behaviour: Behaviour,
}

impl Runner {
    /// Launches it and stays until it has ended. Returns only if it could not
    /// begin.
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let udid = match &self.udid {
            Some(udid) => udid.clone(),
            None => match destination::udid(&self.xcodebuild) {
                Ok(udid) => udid,
                Err(why) => {
                    print::error(&why).await;
                    exit(USAGE.into());
                }
            },
        };
        let request = LaunchRequest {
            port: self.port,
            mishaps: self.behaviour.mishaps(),
        };
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        // A signal may come before the lab's first word.
        let deaf = request.mishaps.contains(&Mishap::IgnoresSigterm);
        let deaf = AtomicBool::new(deaf);
        let interrupted = async {
            loop {
                stop.asked().await;
                if !deaf.load(Ordering::Relaxed) {
                    break;
                }
            }
        };
        let code = tokio::select! {
            biased;
            () = interrupted => None,
            code = converse(&self.control, &udid, &request, &deaf) => Some(code),
        };
        let code = if let Some(code) = code {
            code
        } else {
            let last = print::runner("ARGENT_RUNNER_STOPPED outcome=interrupted");
            // Nobody may be there to read it.
            drop(timeout(LAST_WORDS, last).await);
            INTERRUPTED
        };
        exit(code.into())
    }
}

/// Does what the lab says, to the exit code.
async fn converse(control: &Control, udid: &str, request: &LaunchRequest, deaf: &AtomicBool) -> u8 {
    print::tool("Command line invocation:").await;
    let words: Vec<_> = std::env::args().collect();
    print::tool(&format!("    {}", words.join(" "))).await;
    let mut launch = match Launch::begin(control, udid, request).await {
        Ok(launch) => launch,
        Err(NoLaunch { code, why }) => {
            print::error(&why).await;
            return code;
        }
    };
    loop {
        match launch.next().await {
            Some(LaunchEvent::Tool(line)) => print::tool(&line).await,
            Some(LaunchEvent::Error(line)) => print::error(&line).await,
            Some(LaunchEvent::Runner(line)) => print::runner(&line).await,
            Some(LaunchEvent::RunnerBegins(part)) => print::runner_begins(&part).await,
            Some(LaunchEvent::RunnerEnds(part)) => print::tool(&part).await,
            Some(LaunchEvent::IgnoreSigterm) => deaf.store(true, Ordering::Relaxed),
            Some(LaunchEvent::LeaveChild) => match child::leave().await {
                Ok(pid) => print::tool(&format!("note: child {pid} stays behind")).await,
                Err(error) => print::error(&format!("no child: {error}")).await,
            },
            Some(LaunchEvent::Exit(code)) => return code,
            None => {
                print::error("the lab is gone, and the runner with it").await;
                return TEST_FAILURE;
            }
        }
    }
}
