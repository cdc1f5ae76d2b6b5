//! `lease explain`: what stands between a lease and its phones.

use clap::Args;

use super::explain;
use crate::args::ShortOutput;
use crate::client::{Client, Context};
use crate::output::print;
use crate::view::lease::ExplainedView;

/// Say why a lease waits.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate lease explain 01a22d50-49b9-70be-a97e-ede946db8a00")]
pub(super) struct Explain {
    /// The lease's id
    #[arg(env = "FLEETGATE_LEASE")]
    lease: String,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Explain {
    /// Says it.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let view = ExplainedView::from(explain(&client, &self.lease).await?);
        print(context.format, &view, ExplainedView::text)
    }
}
