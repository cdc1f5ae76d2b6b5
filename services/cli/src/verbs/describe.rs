//! `describe`: all that a gateway knows of one phone, and what it went through.

use std::time::SystemTime;

use anyhow::Context as _;
use clap::Args;
use fleetgate_proto::v1::{
    Device, DeviceTransition, GetDeviceRequest, ListDeviceTransitionsRequest,
};

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::described::DescribedView;

/// As many as a gateway gives at once.
const MAX_PAGE_SIZE: u32 = 1000;

/// Show all that is known of one phone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    fleetgate describe anna\n  \
    fleetgate describe anna --history 1000 -o json")]
pub(crate) struct Describe {
    /// UDID or alias
    device: String,
    /// How many of its changes of state to show, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    history: u32,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

impl Describe {
    /// Shows it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let device = get(&client, &self.device).await?;
        let device = device.context("the gateway answered without a phone")?;
        let transitions = transitions(&client, &device.udid, self.history).await?;
        let view = DescribedView::new(device, transitions, SystemTime::now());
        print(context.format, &view, DescribedView::text)
    }
}

/// One phone.
pub(crate) async fn get(client: &Client, device: &str) -> Result<Option<Device>, Rejected> {
    let request = GetDeviceRequest {
        device: device.to_owned(),
    };
    let reply = client.fleet().get_device(client.request(request)).await;
    let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
    Ok(reply.into_inner().device)
}

/// At most `limit` of a phone's transitions, the newest first.
async fn transitions(
    client: &Client,
    device: &str,
    limit: u32,
) -> Result<Vec<DeviceTransition>, Rejected> {
    let mut transitions: Vec<DeviceTransition> = Vec::new();
    let mut page_token = String::new();
    loop {
        let wanted = limit.saturating_sub(u32::try_from(transitions.len()).unwrap_or(u32::MAX));
        if wanted == 0 {
            return Ok(transitions);
        }
        let request = ListDeviceTransitionsRequest {
            device: device.to_owned(),
            page_size: i32::try_from(wanted.min(MAX_PAGE_SIZE)).unwrap_or(i32::MAX),
            page_token,
        };
        let page = client
            .fleet()
            .list_device_transitions(client.request(request))
            .await;
        let page = page
            .map_err(|status| client.rejected(&status, Asked::nothing()))?
            .into_inner();
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        transitions.extend(page.transitions.into_iter().take(wanted));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(transitions);
        }
    }
}
