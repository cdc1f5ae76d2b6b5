//! `lease release` and `lease revoke`: the end of one's own lease, and of
//! somebody else's.

use clap::Args;
use fleetgate_proto::v1::{RevokeLeaseRequest, RevokeMode};

use super::{release, show_one};
use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};

/// Give a lease back.
#[derive(Debug, Args)]
#[command(after_help = "\
What waits under it ends as NOT_SENT, what is in flight runs to its verdict, and
then its phones are free. One that has ended stays as it is.

Example:
  fleetgate lease release 01a22d50-49b9-70be-a97e-ede946db8a00")]
pub(super) struct Release {
    /// The lease's id
    lease: String,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Release {
    /// Gives it back.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        show_one(context, release(&client, &self.lease).await?)
    }
}

/// Take somebody's lease away.
#[derive(Debug, Args)]
#[command(after_help = "\
What is in flight runs to its verdict; with --now its runner is ended and
launched again, and its fate is unknown.

Example:
  fleetgate lease revoke 01a22d50-49b9-70be-a97e-ede946db8a00 --reason 'rack moves'")]
pub(super) struct Revoke {
    /// The lease's id
    lease: String,
    /// Why, for its owner and for the record
    #[arg(long)]
    reason: String,
    /// End what is in flight too
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Revoke {
    /// Takes it away.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let mode = if self.now {
            RevokeMode::Now
        } else {
            RevokeMode::Drain
        };
        let request = RevokeLeaseRequest {
            lease_id: self.lease,
            reason: self.reason,
            mode: mode.into(),
        };
        let client = Client::connect(context).await?;
        let reply = client.leases().revoke_lease(client.request(request)).await;
        let reply = reply.map_err(|status| client.rejected(&status, Asked::act()))?;
        show_one(context, reply.into_inner().lease.unwrap_or_default())
    }
}
