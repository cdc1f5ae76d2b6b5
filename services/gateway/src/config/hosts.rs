//! The list of `[[host]]`: the usbmuxds that the fleet hangs on.

use std::collections::HashSet;

use fleetgate_device::Address;
use serde::Deserialize;

use super::values::{self, Name};

/// What the usbmuxd of `[usbmuxd]` is called.
pub const LOCAL: &str = "local";

/// One `[[host]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// What it is called wherever a phone's host is told. Required.
    pub name: Name,
    /// Its usbmuxd: a socket's path or `host:port`. Required.
    #[serde(deserialize_with = "values::address")]
    pub address: Address,
}

/// Every `[[host]]`, without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<HostConfig>")]
pub struct Hosts(Vec<HostConfig>);

impl Hosts {
    /// The hosts in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &HostConfig> {
        self.0.iter()
    }
}

/// Two entries that are one host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RepeatedHost {
    /// By its name.
    #[error("host {0} is listed twice in [[host]]")]
    Name(Name),
    /// By its address: every phone there would be seen twice.
    #[error("the address {0} is listed twice in [[host]]")]
    Address(Address),
}

impl TryFrom<Vec<HostConfig>> for Hosts {
    type Error = RepeatedHost;

    fn try_from(hosts: Vec<HostConfig>) -> Result<Self, RepeatedHost> {
        let (mut names, mut addresses) = (HashSet::new(), HashSet::new());
        for HostConfig { name, address } in &hosts {
            if !names.insert(name) {
                return Err(RepeatedHost::Name(name.clone()));
            }
            if !addresses.insert(address) {
                return Err(RepeatedHost::Address(address.clone()));
            }
        }
        Ok(Self(hosts))
    }
}
