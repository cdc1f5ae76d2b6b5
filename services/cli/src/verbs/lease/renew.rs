//! `lease renew`: a lease for another ttl.

use clap::Args;

use super::{get, renew, show_one};
use crate::args::ShortOutput;
use crate::client::{Client, Context};

/// Keep a lease for another ttl.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate lease renew 01a22d50-49b9-70be-a97e-ede946db8a00")]
pub(super) struct Renew {
    /// The lease's id
    #[arg(env = "FLEETGATE_LEASE")]
    lease: String,
    /// Its epoch; if that is not said, the gateway is asked for it
    #[arg(long, value_name = "N", env = "FLEETGATE_LEASE_EPOCH")]
    epoch: Option<u64>,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Renew {
    /// Renews it.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => get(&client, &self.lease).await?.epoch,
        };
        show_one(context, renew(&client, &self.lease, epoch).await?)
    }
}
