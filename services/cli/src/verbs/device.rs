//! `device set`: what operators call a phone, and what they select it by.

use anyhow::Context as _;
use clap::{ArgGroup, Args, Subcommand};
use fleetgate_proto::v1::UpdateDeviceRequest;

use crate::args::ShortOutput;
use crate::client::{Asked, Client, Context};
use crate::exit::Misuse;
use crate::labels::{self, Label};
use crate::verbs::devices::show_one;

/// Name and label a phone.
#[derive(Debug, Args)]
pub(crate) struct Device {
    #[command(subcommand)]
    verb: DeviceVerb,
}

#[derive(Debug, Subcommand)]
enum DeviceVerb {
    /// Set a phone's alias and labels
    Set(Set),
}

/// Set a phone's alias and labels.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("change")
        .args(["alias", "no_alias", "label", "remove_label"])
        .multiple(true)
        .required(true),
    after_help = "\
What is set here stands above the configuration, and survives a restart.

Example:
  fleetgate device set 00008110-000978540290401E --alias anna --label pool=ci"
)]
struct Set {
    /// UDID or alias
    device: String,
    /// Its other name from now on
    #[arg(long, value_name = "NAME", conflicts_with = "no_alias")]
    alias: Option<String>,
    /// It has no other name from now on
    #[arg(long)]
    no_alias: bool,
    /// A label to set; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<Label>,
    /// A label to remove; may be repeated
    #[arg(long, value_name = "KEY")]
    remove_label: Vec<String>,
    #[command(flatten)]
    output: ShortOutput,
}

impl Device {
    /// Its `-o`.
    pub(crate) fn output(&self) -> &ShortOutput {
        let DeviceVerb::Set(set) = &self.verb;
        &set.output
    }

    /// Does it.
    pub(crate) async fn run(self, context: &Context) -> anyhow::Result<()> {
        let DeviceVerb::Set(set) = self.verb;
        let request = set.request()?;
        let client = Client::connect(context).await?;
        let reply = client.fleet().update_device(client.request(request)).await;
        let reply = reply.map_err(|status| client.rejected(&status, Asked::nothing()))?;
        let device = reply.into_inner().device;
        show_one(
            context,
            device.context("the gateway answered without a phone")?,
        )
    }
}

impl Set {
    fn request(self) -> Result<UpdateDeviceRequest, Misuse> {
        let set_labels = labels::by_key(self.label)
            .map_err(|key| Misuse(format!("the label {key} is given twice")))?;
        if let Some(key) = self
            .remove_label
            .iter()
            .find(|key| set_labels.contains_key(*key))
        {
            return Err(Misuse(format!("the label {key} is both set and removed")));
        }
        if self.alias.as_deref() == Some("") {
            return Err(Misuse(
                "an alias is not empty; --no-alias takes it away".to_owned(),
            ));
        }
        Ok(UpdateDeviceRequest {
            device: self.device,
            alias: self.alias.or(self.no_alias.then(String::new)),
            set_labels,
            remove_labels: self.remove_label,
        })
    }
}
