//! `command show`: what the ledger knows of one command, and what was ever said
//! about its fate.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use fleetgate_proto::v1::{CommandRecord, GetCommandRequest, GetCommandResponse};

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::record::ShownView;

/// Look one command up.
#[derive(Debug, Args)]
pub(crate) struct Command {
    #[command(subcommand)]
    verb: CommandVerb,
}

#[derive(Debug, Subcommand)]
enum CommandVerb {
    /// Show one command and its fate
    Show(Show),
}

/// Show one command and its fate.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate command show 0198c2f4-3c1e-7e0b-9a53-6d3f1d1c2b7a")]
struct Show {
    /// The command's id, as a receipt or an error gives it
    id: String,
    #[command(flatten)]
    output: ShortOutput,
}

impl Command {
    /// Its `-o`.
    pub(crate) fn output(&self) -> &ShortOutput {
        let CommandVerb::Show(show) = &self.verb;
        &show.output
    }

    /// Shows it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let CommandVerb::Show(show) = self.verb;
        let client = Client::connect(context).await?;
        let reply = ask(&client, &show.id).await?;
        let shown = ShownView::of(reply).context("the gateway answered without a command")?;
        print(context.format, &shown, ShownView::text)
    }
}

/// One command's record.
pub(crate) async fn get(
    client: &Client,
    command_id: &str,
) -> Result<Option<CommandRecord>, Rejected> {
    Ok(ask(client, command_id).await?.command)
}

async fn ask(client: &Client, command_id: &str) -> Result<GetCommandResponse, Rejected> {
    let request = GetCommandRequest {
        command_id: command_id.to_owned(),
    };
    let reply = client.ledger().get_command(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner())
}
