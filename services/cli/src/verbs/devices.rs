//! `devices`: the phones of a gateway, all of its pages; or all that happens to
//! them ([`watch`]).

use std::time::SystemTime;

use clap::Args;
use fleetgate_proto::v1::{Device, ListDevicesRequest};
use serde::Serialize;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::labels::{Label, Selector};
use crate::output::print;
use crate::rejected::Rejected;
use crate::view::device::{DeviceView, table};

mod board;
mod chosen;
mod watch;

use watch::Watch;

/// As many as a gateway gives at once.
const PAGE_SIZE: i32 = 1000;

/// List the phones.
#[derive(Debug, Args)]
#[command(after_help = "\
With --watch, a terminal shows a table that is kept up to date; anything else
gets a line per event, or with -o json an object. A connection that is lost is
made again, and nothing is missed that the gateway still knows.

Examples:
  fleetgate devices -o json
  fleetgate devices --label pool=ci --label rack=a
  fleetgate devices --watch --events
  fleetgate devices --watch -o json | jq -c 'select(.event == \"alarm\")'")]
pub(crate) struct Devices {
    /// Only phones with this label; may be repeated, and all must match
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<Label>,
    /// Show how they are, and every change as it happens, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Watch alarms and the fates of commands too
    #[arg(long, requires = "watch")]
    events: bool,
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// The phones as JSON.
#[derive(Debug, Serialize)]
struct DevicesView {
    devices: Vec<DeviceView>,
}

impl Devices {
    /// Lists or watches them.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let selector = Selector::new(self.label);
        if self.watch {
            let watch = Watch {
                selector,
                events: self.events,
            };
            return watch.run(context).await;
        }
        let client = Client::connect(context).await?;
        let mut devices = list(&client).await?;
        devices.retain(|device| selector.matches(device));
        show(context, devices)
    }
}

/// Prints phones.
fn show(context: &Context, devices: Vec<Device>) -> anyhow::Result<()> {
    let text = lines(&devices);
    let view = DevicesView {
        devices: devices.into_iter().map(DeviceView::from).collect(),
    };
    print(context.format, &view, |_| text)
}

/// Prints the phone that a call answered with.
pub(crate) fn show_one(context: &Context, device: Device) -> anyhow::Result<()> {
    let text = lines(std::slice::from_ref(&device));
    print(context.format, &DeviceView::from(device), |_| text)
}

/// Every phone, in the order of the UDIDs.
pub(crate) async fn list(client: &Client) -> Result<Vec<Device>, Rejected> {
    let mut devices = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = ListDevicesRequest {
            page_size: PAGE_SIZE,
            page_token,
        };
        let page = client.fleet().list_devices(client.request(request)).await;
        let page = page
            .map_err(|status| client.rejected(&status, Asked::nothing()))?
            .into_inner();
        devices.extend(page.devices);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(devices);
        }
    }
}

/// Phones, one a line.
pub(crate) fn lines(devices: &[Device]) -> String {
    table(&devices.iter().collect::<Vec<_>>(), SystemTime::now())
}
