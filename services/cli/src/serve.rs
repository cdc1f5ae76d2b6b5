//! `serve`: a gateway, until it is told to stop.
//!
//! The first SIGINT or SIGTERM drains it, and so does a call of `DrainGateway`:
//! open calls end, no new ones are taken. The configuration caps how long that
//! may take; a signal while it drains ends it at once.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use fleetgate_gateway::config::LogFormat;
use fleetgate_gateway::{Config, Gateway, Overrides};
use tracing::{debug, info};

use crate::output::line;
use crate::signals::Stop;
use crate::{descriptors, logs};

/// Run a gateway.
#[derive(Debug, Args)]
#[command(after_help = "\
Every key of the configuration can be overridden by a variable, such as
FLEETGATE_SERVER__LISTEN for listen of [server]. Logs go to stderr. SIGINT and
SIGTERM drain the gateway, and so does DrainGateway; a further signal ends it
at once.

Who calls has to say so, on this host too. Programs of the same user find a token
in a record that is made at the start and removed at the end; others are given
one by `fleetgate token create`. Where others than this host can reach it, it
does not start without TLS and a way to know callers by.

Examples:
  fleetgate serve
  FLEETGATE_RUNNER__PORT=8100 fleetgate serve --config /etc/fleetgate.toml")]
pub(crate) struct Serve {
    /// The configuration; without it, the defaults and the environment count
    #[arg(long, env = "FLEETGATE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Serve {
    /// Serves.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let config = Config::load(self.config.as_deref())?;
        let json = match config.log.format {
            LogFormat::Text => false,
            LogFormat::Json => true,
        };
        logs::start(&config.log.filter, json)?;
        descriptors::raise_limit();
        let mut stop = Stop::listen().context("cannot listen to signals")?;
        let scheme = if config.tls.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        let gateway = Gateway::start(config, Overrides::default()).await?;
        line(&format!("listening on {scheme}://{}", gateway.local_addr()))?;
        if let Some(record) = gateway.record() {
            line(&format!(
                "clients of this user need no flags: they find it, and a token, in {}",
                record.display()
            ))?;
        }
        tokio::select! {
            () = stop.asked() => info!("draining; a second signal ends the gateway at once"),
            () = gateway.drain_requested() => {
                info!("draining; a signal ends the gateway at once");
            }
        }
        let has_failed = gateway.has_failed();
        drain(gateway, &mut stop).await?;
        if has_failed {
            // For whoever starts it again when it fails.
            bail!("a part of the gateway has broken off; started again it goes on with its leases");
        }
        Ok(())
    }
}

/// Ends a gateway, in peace unless a signal interferes.
pub(crate) async fn drain(gateway: Gateway, stop: &mut Stop) -> anyhow::Result<()> {
    tokio::select! {
        drained = gateway.shutdown() => {
            // Either way every fate is on record; the gateway has logged the rest.
            debug!(?drained, "ended");
            Ok(())
        }
        () = stop.asked() => bail!("ended at once by a signal while draining"),
    }
}
