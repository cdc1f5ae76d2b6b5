//! The list of `[[device]]`: no phone twice, no alias twice.

use std::collections::HashSet;

use fleetgate_runner::Udid;
use serde::Deserialize;

use super::values::{self, Alias, Labels, Name, RunnerPort};

/// One `[[device]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// The phone, in any spelling of its UDID. Required.
    pub udid: Udid,
    /// Another name for it: accepted wherever a device is named. No default.
    pub alias: Option<Alias>,
    /// The port that its runner listens on. Default: `port` of `[runner]`.
    pub runner_port: Option<RunnerPort>,
    /// The `[[launch]]` by which its runner comes up, whatever `runner_port`
    /// says. No default.
    pub launch: Option<Name>,
    /// Whatever operators want to select it by. `UpdateDevice` goes before these.
    /// Default: none.
    #[serde(default)]
    pub labels: Labels,
    /// What its owner calls it. Default: what the phone says.
    #[serde(default, deserialize_with = "values::fact")]
    pub name: Option<String>,
    /// Which model it is, such as `iPhone14,5`. Default: what the phone says.
    #[serde(default, deserialize_with = "values::fact")]
    pub model: Option<String>,
    /// Its version of iOS. Default: what the phone says.
    #[serde(default, deserialize_with = "values::fact")]
    pub os_version: Option<String>,
}

impl DeviceConfig {
    /// A phone of which nothing but its UDID is set.
    pub fn new(udid: Udid) -> Self {
        Self {
            udid,
            alias: None,
            runner_port: None,
            launch: None,
            labels: Labels::default(),
            name: None,
            model: None,
            os_version: None,
        }
    }
}

/// Every `[[device]]`, without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<DeviceConfig>")]
pub struct Devices(Vec<DeviceConfig>);

impl Devices {
    /// The devices in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &DeviceConfig> {
        self.0.iter()
    }

    /// One device.
    pub fn get(&self, udid: &Udid) -> Option<&DeviceConfig> {
        self.0.iter().find(|device| device.udid == *udid)
    }
}

/// Two entries that claim one name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Repeated {
    /// One phone, perhaps in two spellings.
    #[error("udid {0} is listed twice in [[device]]")]
    Udid(Udid),
    /// One alias.
    #[error("alias {0} is listed twice in [[device]]")]
    Alias(Alias),
}

impl TryFrom<Vec<DeviceConfig>> for Devices {
    type Error = Repeated;

    fn try_from(devices: Vec<DeviceConfig>) -> Result<Self, Repeated> {
        let mut udids = HashSet::new();
        let mut aliases = HashSet::new();
        for device in &devices {
            if !udids.insert(&device.udid) {
                return Err(Repeated::Udid(device.udid.clone()));
            }
            if let Some(alias) = &device.alias
                && !aliases.insert(alias)
            {
                return Err(Repeated::Alias(alias.clone()));
            }
        }
        Ok(Self(devices))
    }
}
