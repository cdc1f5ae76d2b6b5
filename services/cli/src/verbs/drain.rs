//! `drain`: a gateway that ends as it does at SIGTERM.

use clap::Args;
use fleetgate_proto::v1::DrainGatewayRequest;
use serde::Serialize;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::output::print;

/// End a gateway in peace.
#[derive(Debug, Args)]
#[command(after_help = "\
No new commands are let in, those that were end with their fate on record, and
the process ends. It is for whoever runs it to start another.

Example:
  fleetgate drain --reason 'upgrade to 0.2'")]
pub(crate) struct Drain {
    /// Why, for the record
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// That it drains, as JSON.
#[derive(Debug, Serialize)]
struct DrainView {
    server: String,
    draining: bool,
}

impl Drain {
    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let request = DrainGatewayRequest {
            reason: self.reason,
        };
        let reply = client.fleet().drain_gateway(client.request(request)).await;
        reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
        let view = DrainView {
            server: context.server.to_string(),
            draining: true,
        };
        print(context.format, &view, |view| {
            format!("{} drains, and ends then\n", view.server)
        })
    }
}
