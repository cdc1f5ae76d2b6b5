//! Which phones, for how long, and how urgently: the options that `lease create`
//! and `lease run` share.

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::Args;
use fleetgate_proto::v1::create_lease_request::Wants;
use fleetgate_proto::v1::{CreateLeaseRequest, DeviceList, DeviceMatch, DeviceSelector};

use crate::client::mint;
use crate::exit::Misuse;
use crate::labels::{self, Label};
use crate::when;

/// What says nothing about phones that are named.
const SELECTING: [&str; 5] = ["selector", "model", "os_version", "host", "count"];

/// A wish for phones.
#[derive(Debug, Args)]
pub(super) struct Wish {
    /// This phone: UDID or alias; may be repeated, and all of them are wanted
    #[arg(long, value_name = "DEVICE", conflicts_with_all = SELECTING)]
    device: Vec<String>,
    /// Phones with these labels; without any condition, any phone will do
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    selector: Vec<Label>,
    /// Phones of this model, such as iPhone14,5
    #[arg(long)]
    model: Option<String>,
    /// Phones with this version of iOS, or one that begins with it
    #[arg(long, value_name = "VERSION")]
    os_version: Option<String>,
    /// Phones on this host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// How many, all of them together or none; one if that is not said
    #[arg(long, value_name = "N")]
    count: Option<NonZeroU32>,
    /// Higher goes first; what a caller may ask for has a limit
    #[arg(
        long,
        value_name = "N",
        default_value_t,
        allow_negative_numbers = true,
        hide_default_value = true
    )]
    priority: i32,
    /// How long it lives unless it is renewed
    #[arg(long, value_name = "DURATION", value_parser = when::parse_duration)]
    ttl: Option<Duration>,
    /// How long it lives at most
    #[arg(long, value_name = "DURATION", value_parser = when::parse_duration)]
    max_duration: Option<Duration>,
    /// How long it waits at most; 0s: now or not at all
    #[arg(long, value_name = "DURATION", value_parser = when::parse_wait)]
    queue_timeout: Option<Duration>,
    /// Begins to wait then: a time in UTC (2026-11-30T12:00:00Z)
    #[arg(long, value_name = "TIME", value_parser = when::parse_coming)]
    begin: Option<SystemTime>,
    /// A label of the lease; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<Label>,
    /// What it is for, such as build=1234; may be repeated, and stays as it is
    #[arg(long, value_name = "KEY=VALUE")]
    context: Vec<Label>,
    /// Asked again with the same id, the same lease is told
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl Wish {
    /// What to ask a gateway.
    pub(super) fn request(self) -> anyhow::Result<CreateLeaseRequest> {
        let wants = if self.device.is_empty() {
            let selector = DeviceSelector {
                labels: by_key(self.selector)?,
                model: self.model,
                os_version: self.os_version,
                host: self.host,
            };
            Wants::DeviceMatch(DeviceMatch {
                selector: Some(selector),
                count: self.count.map_or(1, NonZeroU32::get),
            })
        } else {
            Wants::DeviceList(DeviceList {
                devices: self.device,
            })
        };
        Ok(CreateLeaseRequest {
            // An id even if none was given: an answer that is lost can be asked
            // for again.
            request_id: self.request_id.unwrap_or_else(mint),
            wants: Some(wants),
            priority: self.priority,
            ttl: length(self.ttl)?,
            max_duration: length(self.max_duration)?,
            queue_timeout: length(self.queue_timeout)?,
            begin_time: self.begin.map(prost_types::Timestamp::from),
            labels: by_key(self.label)?,
            context: by_key(self.context)?,
        })
    }
}

fn length(duration: Option<Duration>) -> anyhow::Result<Option<prost_types::Duration>> {
    let length = duration.map(prost_types::Duration::try_from).transpose();
    length.context("longer than anybody waits")
}

fn by_key(labels: Vec<Label>) -> Result<std::collections::HashMap<String, String>, Misuse> {
    labels::by_key(labels).map_err(|key| Misuse(format!("{key} is given twice")))
}
