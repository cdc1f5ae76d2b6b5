//! `devices`: the phones of a gateway, all of its pages.

use clap::Args;
use fleetgate_proto::v1::{Device, ListDevicesRequest};
use serde::Serialize;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::output::{columns, print};
use crate::rejected::Rejected;
use crate::{when, words};

/// As many as a gateway gives at once.
const PAGE_SIZE: i32 = 1000;

/// List the phones.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fleetgate devices -o json")]
pub(crate) struct Devices {
    #[command(flatten)]
    pub(crate) output: ShortOutput,
}

/// The phones as JSON.
#[derive(Debug, Serialize)]
struct DevicesView {
    devices: Vec<DeviceView>,
}

/// One phone.
#[derive(Debug, Serialize)]
struct DeviceView {
    udid: String,
    alias: Option<String>,
    state: String,
    runner_port: Option<u32>,
    queued_commands: u32,
    command_in_flight: Option<String>,
    mux_address: Option<String>,
    state_time: Option<String>,
}

impl Devices {
    /// Lists them.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let client = Client::connect(context).await?;
        let devices = list(&client).await?;
        let view = DevicesView {
            devices: devices.into_iter().map(DeviceView::from).collect(),
        };
        print(context.format, &view, DevicesView::text)
    }
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
pub(crate) fn lines(devices: Vec<Device>) -> String {
    DevicesView {
        devices: devices.into_iter().map(DeviceView::from).collect(),
    }
    .text()
}

impl From<Device> for DeviceView {
    fn from(device: Device) -> Self {
        Self {
            udid: device.udid,
            alias: device.alias,
            state: words::device_state(device.state),
            runner_port: device.runner_port,
            queued_commands: device.queued_commands,
            command_in_flight: device.command_in_flight,
            mux_address: device.mux_address,
            state_time: device.state_time.and_then(when::stamp),
        }
    }
}

impl DevicesView {
    fn text(&self) -> String {
        if self.devices.is_empty() {
            return "no devices\n".to_owned();
        }
        let dash = || "-".to_owned();
        let rows = self.devices.iter().map(|device| {
            [
                device.udid.clone(),
                device.alias.clone().unwrap_or_else(dash),
                device.state.clone(),
                device
                    .runner_port
                    .map_or_else(dash, |port| port.to_string()),
                device.queued_commands.to_string(),
                device.command_in_flight.clone().unwrap_or_else(dash),
                device.mux_address.clone().unwrap_or_else(dash),
            ]
        });
        columns(
            [
                "UDID",
                "ALIAS",
                "STATE",
                "RUNNER PORT",
                "QUEUED",
                "IN FLIGHT",
                "USBMUXD",
            ],
            rows,
        )
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_proto::v1::DeviceState;

    use super::*;

    fn device() -> Device {
        Device {
            udid: "00008110-000978540290401E".to_owned(),
            alias: Some("anna".to_owned()),
            state: DeviceState::Attached.into(),
            runner_port: Some(8100),
            queued_commands: 2,
            ..Device::default()
        }
    }

    #[test]
    fn a_phone_is_one_line() {
        let text = lines(vec![device()]);
        let mut lines = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        assert_eq!(lines.next().unwrap()[..3], ["UDID", "ALIAS", "STATE"]);
        assert_eq!(
            lines.next().unwrap(),
            [
                "00008110-000978540290401E",
                "anna",
                "attached",
                "8100",
                "2",
                "-",
                "-"
            ]
        );
        assert_eq!(lines.next(), None);
    }

    #[test]
    fn an_empty_rack_says_so() {
        assert_eq!(lines(Vec::new()), "no devices\n");
    }

    #[test]
    fn json_keys_are_stable() {
        assert_eq!(
            serde_json::to_value(DeviceView::from(device())).unwrap(),
            serde_json::json!({
                "udid": "00008110-000978540290401E",
                "alias": "anna",
                "state": "attached",
                "runner_port": 8100,
                "queued_commands": 2,
                "command_in_flight": null,
                "mux_address": null,
                "state_time": null,
            })
        );
    }
}
