//! `cordon` and `uncordon`: phones out of service and back in it.

use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::Args;
use fleetgate_proto::v1::{CordonDeviceRequest, UncordonDeviceRequest};

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::exit::Misuse;
use crate::verbs::devices::show_one;
use crate::when;

/// Take a phone out of service.
#[derive(Debug, Args)]
#[command(after_help = "\
New commands that change the phone are refused; what waits already is carried
out, and it can still be looked at.

Example:
  fleetgate cordon anna --reason 'new battery' --for 2h")]
pub(crate) struct Cordon {
    /// UDID or alias
    device: String,
    /// Why, for those who wonder
    #[arg(long)]
    reason: String,
    /// How long; without this and --until, until it is uncordoned
    #[arg(long = "for", value_name = "DURATION", value_parser = when::parse_duration, conflicts_with = "until")]
    lasts: Option<Duration>,
    /// Until then: a time in UTC (2026-11-30T12:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = when::parse_coming)]
    until: Option<SystemTime>,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// Put a phone into service again.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate uncordon anna")]
pub(crate) struct Uncordon {
    /// UDID or alias
    device: String,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Cordon {
    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let request = CordonDeviceRequest {
            until: self.until()?.map(prost_types::Timestamp::from),
            device: self.device,
            reason: self.reason,
        };
        let client = Client::connect(context).await?;
        let reply = client.fleet().cordon_device(client.request(request)).await;
        let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
        let device = reply.into_inner().device;
        show_one(
            context,
            device.context("the gateway answered without a phone")?,
        )
    }

    fn until(&self) -> Result<Option<SystemTime>, Misuse> {
        let Some(lasts) = self.lasts else {
            return Ok(self.until);
        };
        let until = SystemTime::now().checked_add(lasts);
        until
            .map(Some)
            .ok_or_else(|| Misuse("longer than a clock can tell".to_owned()))
    }
}

impl Uncordon {
    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let request = UncordonDeviceRequest {
            device: self.device,
        };
        let client = Client::connect(context).await?;
        let reply = client
            .fleet()
            .uncordon_device(client.request(request))
            .await;
        let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
        let device = reply.into_inner().device;
        show_one(
            context,
            device.context("the gateway answered without a phone")?,
        )
    }
}
