//! `tree`: the accessibility tree of an app.

use clap::Args;
use fleetgate_proto::v1::{CaptureSnapshotRequest, CaptureSnapshotResponse};

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context, mint};
use crate::output::{clean, note, print};
use crate::rejected::Rejected;
use crate::view::tree::TreeView;

/// Show the accessibility tree of an app.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate tree anna --app com.example.shop")]
pub(crate) struct Tree {
    /// UDID or alias
    #[arg(env = "FLEETGATE_DEVICE", hide_env_values = true)]
    device: String,
    /// The app's bundle id
    #[arg(long, value_name = "BUNDLE_ID")]
    app: String,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Tree {
    /// Shows it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let view = TreeView::from(capture(&client, &self.device, &self.app).await?);
        if let Some(caveat) = view.caveat() {
            note(&format!("note: {}", clean(&caveat)));
        }
        print(context.format, &view, TreeView::text)
    }
}

/// Reads the tree.
pub(crate) async fn capture(
    client: &Client,
    device: &str,
    app: &str,
) -> Result<CaptureSnapshotResponse, Rejected> {
    let command_id = mint();
    let request = CaptureSnapshotRequest {
        device: device.to_owned(),
        command_id: Some(command_id.clone()),
        lease: None,
        app_bundle_id: app.to_owned(),
    };
    let reply = client
        .automation()
        .capture_snapshot(client.request(request))
        .await;
    Ok(reply
        .map_err(|status| client.rejected(&status, Asked::read(&command_id)))?
        .into_inner())
}
