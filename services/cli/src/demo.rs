//! `demo`: a lab of three phones and a gateway in one process, and a tour of
//! what they can do.
//!
//! With `--once` the exit code is the proof: 0 only if every step had its
//! effect.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use fleetgate_proto::v1::DeviceState;
use fleetgate_simulator::ui::DEMO_BUNDLE;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::client::{Client, Context, Server, running};
use crate::logs;
use crate::output::{line, note, pairs};
use crate::rejected::Rejected;
use crate::report::in_words;
use crate::signals::Stop;
use crate::verbs::devices;

mod screen;
mod stand;
mod story;
#[cfg(test)]
mod tests;
mod tour;

use stand::Stand;
use tour::Tour;

/// Where a gateway usually listens: clients find it there without being told.
const USUAL_PORT: u16 = 7700;

/// How long the phones may take to come up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often to look whether they have.
const GLANCE: Duration = Duration::from_millis(20);

/// How long any answer may take during the tour.
const ANSWER: Duration = Duration::from_secs(60);

/// Run a gateway with three simulated phones and show what it can do.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --listen and --port the gateway takes port 7700, where clients look for
it, or any free one if that is taken.

Examples:
  fleetgate demo
  fleetgate demo --once --keep /tmp/demo")]
pub(crate) struct Demo {
    /// End after the tour: with 0 if every step had its effect
    #[arg(long)]
    once: bool,
    /// Where the gateway listens; port 0 takes any free one
    #[arg(long, value_name = "ADDR", conflicts_with = "port")]
    listen: Option<SocketAddr>,
    /// The same, as a port of 127.0.0.1
    #[arg(long)]
    port: Option<u16>,
    /// Keep the ledger and the picture in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// What is logged, to stderr
    #[arg(
        long,
        value_name = "FILTER",
        env = "FLEETGATE_LOG",
        default_value = "error"
    )]
    log: String,
}

impl Demo {
    /// Shows it.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::start(&self.log, false)?;
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        let stand = Stand::start(self.address()?, self.keep).await?;
        introduce(&stand)?;
        let server = format!("http://{}", stand.address())
            .parse()
            .map_err(|error| anyhow!("{error}"))?;
        let context = Context::known(server, Some(ANSWER));

        let toured = tokio::select! {
            toured = tour(&context, &stand) => toured,
            () = stop.asked() => Err(anyhow!("interrupted")),
        };
        if toured.is_ok() && !self.once {
            stay(&context.server, &stand)?;
            tokio::select! {
                () = stop.asked() => {}
                () = stand.drain_requested() => {}
            }
        }
        // A step that failed is told rather than an end that did.
        toured.and(stand.end(&mut stop).await)
    }

    fn address(&self) -> anyhow::Result<SocketAddr> {
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if let Some(address) = self.listen.or(self.port.map(local)) {
            return Ok(address);
        }
        if TcpListener::bind(local(USUAL_PORT)).is_ok() {
            return Ok(local(USUAL_PORT));
        }
        line(&format!(
            "Port {USUAL_PORT} is taken, so the gateway takes any free one."
        ))?;
        Ok(local(0))
    }
}

fn introduce(stand: &Stand) -> anyhow::Result<()> {
    let stays = if stand.is_kept() {
        ""
    } else {
        " (gone at the end; --keep DIR keeps it)"
    };
    line("Three simulated phones and a gateway, in this process:")?;
    line("")?;
    Ok(line(&pairs(
        2,
        [
            ("gateway", Some(format!("http://{}", stand.address()))),
            (
                "ledger",
                Some(format!("{}{stays}", stand.ledger().display())),
            ),
        ],
    ))?)
}

/// The tour; a failure is told in full here and names its step.
async fn tour(context: &Context, stand: &Stand) -> anyhow::Result<()> {
    let client = Client::connect(context).await?;
    timeout(PATIENCE, phones_are_up(&client, stand.phones()))
        .await
        .with_context(|| {
            format!(
                "the phones were not up within {}",
                humantime::format_duration(PATIENCE)
            )
        })??;
    match Tour::new(&client, stand).play().await {
        Ok(()) => Ok(line("\nEvery step had its effect.")?),
        Err(error) => {
            if let Some(rejected) = error.downcast_ref::<Rejected>() {
                note(rejected.text().trim_end());
            }
            bail!("{}", in_words(&error))
        }
    }
}

async fn phones_are_up(client: &Client, expected: usize) -> anyhow::Result<()> {
    let mut glances = interval(GLANCE);
    glances.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        glances.tick().await;
        let devices = devices::list(client).await?;
        let up = devices
            .iter()
            .filter(|device| device.state() == DeviceState::Ready)
            .count();
        if up == expected {
            return Ok(());
        }
    }
}

/// Says how to go on, in words that can be pasted.
fn stay(server: &Server, stand: &Stand) -> anyhow::Result<()> {
    let (alias, address) = (stand.alias(), stand.address());
    let fleetgate = std::env::args()
        .next()
        .unwrap_or_else(|| "fleetgate".to_owned());
    line("\nThe gateway stays up until Ctrl-C. In another terminal:")?;
    line("")?;
    // A client finds the one gateway of this host by itself.
    if !running().is_ok_and(|found| found.len() == 1) {
        line(&format!("  export FLEETGATE_SERVER={server}"))?;
    }
    for verb in [
        "devices",
        &format!("tree {alias} --app {DEMO_BUNDLE}"),
        &format!("tap {alias} --app {DEMO_BUNDLE} --at-normalized 0.5,0.3"),
        &format!("screenshot {alias} -o screen.png"),
        "history --since 5m",
    ] {
        line(&format!("  {fleetgate} {verb}"))?;
    }
    let Some(record) = stand.record() else {
        return Ok(());
    };
    Ok(line(&format!(
        "\nor, with any other gRPC client, which needs the token:\n\n  \
         grpcurl -plaintext -H \"authorization: Bearer $(jq -r .token {})\" {address} list",
        record.display()
    ))?)
}
