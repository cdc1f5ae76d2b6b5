//! `recycle`: a runner that is ended and launched again; with `--wait`, until
//! it is ready or has failed.

use anyhow::{Context as _, bail};
use clap::Args;
use fleetgate_proto::v1::{Device, FleetEventType, RecycleRunnerRequest};

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::follow::{Fleet, Follow, Followed};
use crate::mirror::Mirror;
use crate::verbs::devices::show_one;

mod wait;

use wait::Wait;

/// End a phone's runner and launch it again.
#[derive(Debug, Args)]
#[command(after_help = "\
Commands that wait stay in their order. A phone in quarantine leaves it. With
--wait, progress goes to stderr, and --timeout limits all of the wait; a runner
that does not come up ends with exit code 5.

Example:
  fleetgate recycle anna --reason 'new build' --wait --timeout 3m")]
pub(crate) struct Recycle {
    /// UDID or alias
    device: String,
    /// Why, for the record
    #[arg(long, default_value = "")]
    reason: String,
    /// Now, whatever is in flight, instead of when that has ended
    #[arg(long)]
    force: bool,
    /// Wait until the new runner is ready
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Recycle {
    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        if !self.wait {
            let client = Client::connect(context).await?;
            return show_one(context, self.ask(&client).await?);
        }
        // It is followed from before it begins, so that nothing is missed.
        let mut follow = Follow::start(context, Fleet::of(&[FleetEventType::Device])).await?;
        let fleet = whole(&mut follow).await?;
        let client = Client::connect(context).await?;
        let device = self.ask(&client).await?;
        let before = fleet.device(&device.udid).cloned().unwrap_or_default();
        let wait = Wait::new(before);
        show_one(context, wait.until_ready(follow, fleet).await?)
    }

    async fn ask(&self, client: &Client) -> anyhow::Result<Device> {
        let request = RecycleRunnerRequest {
            device: self.device.clone(),
            reason: self.reason.clone(),
            force: self.force,
        };
        let reply = client.fleet().recycle_runner(client.request(request)).await;
        let reply = reply.map_err(|status| client.rejected(&status, Asked::act()))?;
        let device = reply.into_inner().device;
        device.context("the gateway answered without a phone")
    }
}

/// The fleet as it is.
async fn whole(follow: &mut Follow<Fleet>) -> anyhow::Result<Mirror> {
    let mut fleet = Mirror::default();
    while !fleet.is_synced() {
        match follow.next().await? {
            Followed::Said(message) => fleet.take(&message),
            Followed::Lost { why, .. } => bail!("the connection was lost: {why}"),
            Followed::Back => {}
        }
    }
    Ok(fleet)
}
