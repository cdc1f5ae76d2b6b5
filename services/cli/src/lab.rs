//! `lab`: a simulated usbmuxd with phones on it, for a gateway that runs
//! elsewhere or for any other usbmux client.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use fleetgate_simulator::{Lab as Simulation, Phone, Scenario};

use crate::logs;
use crate::output::{columns, line, pairs};
use crate::signals::Stop;

/// Run a simulated usbmuxd with phones on it.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  fleetgate lab --phones 50 --unix /tmp/usbmuxd
  USBMUXD_SOCKET_ADDRESS=/tmp/usbmuxd FLEETGATE_RUNNER__PORT=8100 fleetgate serve")]
pub(crate) struct Lab {
    /// Serve usbmux on this socket
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// Serve usbmux on this TCP address; without --unix and --tcp, a free port
    /// of 127.0.0.1 is taken
    #[arg(long, value_name = "ADDR")]
    tcp: Option<SocketAddr>,
    /// The phones, their state and their faults, as TOML
    #[arg(long, value_name = "FILE", conflicts_with = "phones")]
    scenario: Option<PathBuf>,
    /// So many plain phones
    #[arg(long, value_name = "N", default_value = "3")]
    phones: u32,
    /// Serve the HTTP API that plants faults and reports effects
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

impl Lab {
    /// Serves until it is told to stop.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::start(&self.log, false)?;
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        let scenario = self.scenario()?;
        let ports: BTreeSet<_> = scenario.phones.iter().map(|phone| phone.port).collect();
        let lab = Simulation::start(scenario);

        let mut places = Vec::new();
        if let Some(path) = &self.unix {
            lab.serve_unix(path)
                .await
                .with_context(|| format!("cannot serve {}", path.display()))?;
            places.push(path.display().to_string());
        }
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        if let Some(address) = self.tcp.or(self.unix.is_none().then_some(free)) {
            let address = lab
                .serve_tcp(address)
                .await
                .with_context(|| format!("cannot serve {address}"))?;
            places.push(address.to_string());
        }
        let control = match self.control {
            Some(address) => {
                let address = lab
                    .serve_control(address)
                    .await
                    .with_context(|| format!("cannot serve {address}"))?;
                Some(format!("http://{address}"))
            }
            None => None,
        };
        line(&describe(
            &lab.phones(),
            &places,
            control.as_deref(),
            &ports,
        ))?;
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
            None => Scenario::fleet(self.phones),
        };
        Ok(match self.time_scale {
            Some(scale) => scenario.scaled(scale),
            None => scenario,
        })
    }
}

/// What there is, and how to connect to it.
fn describe(
    phones: &[Phone],
    places: &[String],
    control: Option<&str>,
    ports: &BTreeSet<u16>,
) -> String {
    let rows = phones.iter().map(|phone| {
        let port = phone
            .report()
            .runner
            .map_or_else(|| "-".to_owned(), |runner| runner.port.to_string());
        [phone.udid().to_string(), phone.name().to_owned(), port]
    });
    let facts = pairs(
        0,
        [
            ("usbmuxd", Some(places.join(", "))),
            ("control", control.map(str::to_owned)),
        ],
    );
    let port = ports.first().filter(|_| ports.len() == 1);
    let port = port
        .map(|port| format!("FLEETGATE_RUNNER__PORT={port} "))
        .unwrap_or_default();
    let place = places.first().map(String::as_str).unwrap_or_default();
    format!(
        "{}\n{facts}\nConnect a gateway with\n\n  FLEETGATE_USBMUXD__ADDRESS={place} {port}fleetgate serve\n",
        columns(["UDID", "NAME", "RUNNER PORT"], rows)
    )
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if scale.is_finite() && scale > 0.0 {
        Ok(scale)
    } else {
        Err("must be positive".to_owned())
    }
}
