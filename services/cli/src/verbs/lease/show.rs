//! `lease show` and `lease watch`: one lease as it is, and as it changes.

use clap::Args;
use fleetgate_proto::v1::{LeaseChange, WatchLeaseResponse};

use super::{get, show_one};
use crate::args::ShortOutput;
use crate::client::{Client, Context};
use crate::follow::{Follow, Followed, OneLease, lost};
use crate::output::{Format, note, reaches};
use crate::signals::Stop;
use crate::view::lease::WatchedView;

/// Show one lease.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate lease show 01a22d50-49b9-70be-a97e-ede946db8a00")]
pub(super) struct Show {
    /// The lease's id
    #[arg(env = "FLEETGATE_LEASE")]
    lease: String,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Show {
    /// Shows it.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        show_one(context, get(&client, &self.lease).await?)
    }
}

/// Show one lease, and every change of it until it has ended.
#[derive(Debug, Args)]
#[command(after_help = "\
A line per change, or with -o json an object. It ends with the lease, or at
Ctrl-C; a connection that is lost is made again.

Example:
  fleetgate lease watch 01a22d50-49b9-70be-a97e-ede946db8a00")]
pub(super) struct Watch {
    /// The lease's id
    #[arg(env = "FLEETGATE_LEASE")]
    lease: String,
    #[command(flatten)]
    pub(super) output: ShortOutput,
}

impl Watch {
    /// Watches.
    pub(super) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let mut stop = Stop::listen()?;
        tokio::select! {
            told = tell(self.lease, context) => told,
            () = stop.asked() => Ok(()),
        }
    }
}

async fn tell(id: String, context: &Context) -> anyhow::Result<()> {
    let mut follow = Follow::start(context, OneLease { id }).await?;
    loop {
        match follow.next().await? {
            Followed::Said(message) => {
                if is_news(&message) && !told(&message, context.format)? {
                    return Ok(());
                }
                if is_last(&message) {
                    return Ok(());
                }
            }
            Followed::Lost { why, pause } => note(&format!("note: {}", lost(&why, pause))),
            Followed::Back => note("note: connected again"),
        }
    }
}

/// Prints it; false if nobody reads any more.
fn told(message: &WatchLeaseResponse, format: Format) -> anyhow::Result<bool> {
    let view = WatchedView::from(message.clone());
    let line = match format {
        Format::Table => view.text().to_owned(),
        Format::Json => serde_json::to_string(&view)?,
    };
    Ok(reaches(&line)?)
}

fn is_news(message: &WatchLeaseResponse) -> bool {
    message.change() != LeaseChange::Heartbeat
}

/// Whether nothing follows.
fn is_last(message: &WatchLeaseResponse) -> bool {
    message.change() == LeaseChange::Ended
        || message
            .lease
            .as_ref()
            .is_some_and(|lease| super::acquire::has_ended(lease.state()))
}
