//! `lab`: a simulated usbmuxd with phones on it, for a gateway that runs
//! elsewhere or for any other usbmux client.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use fleetgate_simulator::{Lab as Simulation, Scenario};

use self::hint::Places;
use crate::output::line;
use crate::signals::Stop;
use crate::{descriptors, logs};

mod hint;
mod runner;

/// Run a simulated usbmuxd with phones on it.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Example:
  fleetgate lab --phones 50 --unix /tmp/usbmuxd
  USBMUXD_SOCKET_ADDRESS=/tmp/usbmuxd FLEETGATE_RUNNER__PORT=8100 fleetgate serve"
)]
pub(crate) struct Lab {
    #[command(subcommand)]
    verb: Option<LabVerb>,
    /// Serve usbmux on this socket
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Serve usbmux on this TCP address; without --unix and --tcp, a free port
    /// of 127.0.0.1 is taken
    #[arg(long, value_name = "ADDR")]
    tcp: Option<SocketAddr>,
    /// The phones, their state and their faults, as TOML
    #[arg(long, value_name = "FILE", conflicts_with_all = ["phones", "first"])]
    scenario: Option<PathBuf>,
    /// So many plain phones
    #[arg(long, value_name = "N", default_value = "3")]
    phones: u32,
    /// The number of the first of them: labs that stand side by side must not
    /// have the same phones
    #[arg(long, value_name = "N", default_value = "1")]
    first: u32,
    /// Start the phones without runners, for whoever launches them
    #[arg(long)]
    no_runners: bool,
    /// Serve the HTTP API that plants faults, reports effects and launches
    /// runners; with --no-runners and without this, a free port of 127.0.0.1 is
    /// taken
    #[arg(long, value_name = "ADDR")]
    control: Option<SocketAddr>,
    /// How long a phone's second takes, in seconds: 0.1 is ten times as fast
    #[arg(long, value_name = "SCALE", value_parser = scale)]
    time_scale: Option<f64>,
    /// What is logged, to stderr
    #[arg(
        long,
        value_name = "FILTER",
        env = "FLEETGATE_LOG",
        default_value = "info"
    )]
    log: String,
}

/// What else can be done in a lab.
#[derive(Debug, Subcommand)]
enum LabVerb {
    /// Launch the runner of a phone of a lab, in the place of xcodebuild
    Runner(Box<runner::Runner>),
}

impl Lab {
    /// Serves until it is told to stop, or does what else is asked for.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.verb {
            Some(LabVerb::Runner(runner)) => runner.run().await,
            None => self.serve().await,
        }
    }

    async fn serve(self) -> anyhow::Result<()> {
        logs::start(&self.log, false)?;
        descriptors::raise_limit();
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        let scenario = self.scenario()?;
        let lab = Simulation::start(scenario);

        let mut places = Places {
            program: program(),
            ..Places::default()
        };
        if let Some(path) = &self.unix {
            lab.serve_unix(path)
                .await
                .with_context(|| format!("cannot serve {}", path.display()))?;
            places.usbmuxd.push(path.display().to_string());
        }
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        if let Some(address) = self.tcp.or(self.unix.is_none().then_some(free)) {
            let address = lab
                .serve_tcp(address)
                .await
                .with_context(|| format!("cannot serve {address}"))?;
            places.usbmuxd.push(address.to_string());
        }
        if let Some(address) = self.control.or(self.no_runners.then_some(free)) {
            let address = lab
                .serve_control(address)
                .await
                .with_context(|| format!("cannot serve {address}"))?;
            places.control = Some(format!("http://{address}"));
        }
        line(&hint::describe(&lab.phones(), &places))?;
        stop.asked().await;
        tokio::select! {
            () = lab.shutdown() => Ok(()),
            () = stop.asked() => bail!("ended at once by a second signal"),
        }
    }

    fn scenario(&self) -> anyhow::Result<Scenario> {
        let scenario = match &self.scenario {
            Some(path) => {
                Scenario::load(path).with_context(|| format!("scenario {}", path.display()))?
            }
            None => Scenario::fleet_from(self.first, self.phones),
        };
        let scenario = match self.time_scale {
            Some(scale) => scenario.scaled(scale),
            None => scenario,
        };
        Ok(if self.no_runners {
            scenario.without_runners()
        } else {
            scenario
        })
    }
}

/// This program, as somebody else can run it.
fn program() -> String {
    let path = std::env::current_exe().map(|path| path.display().to_string());
    path.unwrap_or_else(|_| "fleetgate".to_owned())
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if scale.is_finite() && scale > 0.0 {
        Ok(scale)
    } else {
        Err("must be positive".to_owned())
    }
}
