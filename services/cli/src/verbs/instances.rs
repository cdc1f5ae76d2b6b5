//! `instances`: the gateways of this host and this user, as they say of
//! themselves in the records that only their user can read.
//!
//! It refuses to show their tokens.

use std::time::{Duration, SystemTime};

use clap::Args;
use fleetgate_proto::v1::GetGatewayRequest;
use tokio::task::JoinSet;

use crate::args::ShortOutput;
use crate::client::{Client, Context, Server, running};
use crate::output::{Format, print};
use crate::view::instance::InstancesView;

/// How long a gateway may take to say which version it is.
const PATIENCE: Duration = Duration::from_secs(2);

/// List the gateways of this host.
#[derive(Debug, Args)]
#[command(after_help = "\
Those that were started by the same user and publish themselves (discovery of
[auth]). The verbs find the only one by themselves; of several, --server says
which. Their tokens are not shown.

Example:
  fleetgate instances -o json | jq -r '.instances[].server'")]
pub(crate) struct Instances {
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Instances {
    /// Lists them.
    pub(crate) async fn run(self, format: Format) -> anyhow::Result<()> {
        let found = running()?;
        let mut asking = JoinSet::new();
        for (at, found) in found.iter().enumerate() {
            let server = found.server()?;
            asking.spawn(async move { (at, version(server).await) });
        }
        let mut versions = asking.join_all().await;
        versions.sort_by_key(|(at, _)| *at);
        let versions = versions.into_iter().map(|(_, version)| version);
        let view = InstancesView::new(found.iter().zip(versions), SystemTime::now())?;
        print(format, &view, InstancesView::text)
    }
}

/// What a gateway says that it is; `None` if it does not answer.
async fn version(server: Server) -> Option<String> {
    let client = Client::connect(&Context::known(server, Some(PATIENCE))).await;
    let client = client.ok()?;
    let request = client.request(GetGatewayRequest {});
    let reply = client.fleet().get_gateway(request).await.ok()?;
    Some(reply.into_inner().version)
}
