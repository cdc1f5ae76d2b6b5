//! The gateways of this host: all that they publish but their tokens, and which
//! version each says it is.

use std::time::SystemTime;

use serde::Serialize;

use crate::client::Found;
use crate::output::sparse_columns;
use crate::when;

/// Gateways as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct InstancesView {
    instances: Vec<InstanceView>,
}

/// One of them.
#[derive(Debug, Serialize)]
struct InstanceView {
    server: String,
    address: String,
    pid: u32,
    instance: String,
    started: Option<String>,
    /// `None` if it does not answer.
    version: Option<String>,
    tls: bool,
    #[serde(skip)]
    age: String,
}

impl InstancesView {
    /// How they are now.
    pub(crate) fn new<'a>(
        found: impl Iterator<Item = (&'a Found, Option<String>)>,
        now: SystemTime,
    ) -> anyhow::Result<Self> {
        let instances = found.map(|(found, version)| {
            let started = found.started().into();
            Ok(InstanceView {
                server: found.server()?.to_string(),
                address: found.address().to_string(),
                pid: found.pid(),
                instance: found.instance(),
                started: when::stamp(started),
                version,
                tls: found.is_tls(),
                age: when::age(started, now).unwrap_or_default(),
            })
        });
        Ok(Self {
            instances: instances.collect::<anyhow::Result<_>>()?,
        })
    }

    /// One a line.
    pub(crate) fn text(&self) -> String {
        if self.instances.is_empty() {
            return "no gateways\n".to_owned();
        }
        let rows = self.instances.iter().map(|instance| {
            [
                instance.server.clone(),
                instance.pid.to_string(),
                instance.started.clone().unwrap_or_default(),
                instance.age.clone(),
                instance.version.clone().unwrap_or_default(),
                if instance.tls { "yes" } else { "no" }.to_owned(),
            ]
        });
        sparse_columns(["SERVER", "PID", "SINCE", "FOR", "VERSION", "TLS"], rows)
    }
}
