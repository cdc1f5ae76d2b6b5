//! The list of `[[launch]]`: how runners come up, and which phones' runners
//! come up so.
//!
//! A launch is a port, of a runner that somebody else sees to, or a command
//! that this gateway runs, and never both.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use fleetgate_launch::{InvalidSpec, LaunchSpec};
use serde::Deserialize;

use super::devices::DeviceConfig;
use super::values::{self, Labels, Name, RunnerPort};

/// One `[[launch]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Keys")]
pub struct LaunchConfig {
    /// What it is called. Required.
    pub name: Name,
    /// The phones that it is for: those that have all of these labels. Empty:
    /// every phone. Absent: those whose `[[device]]` names it.
    pub labels: Option<Labels>,
    /// How a runner comes up.
    pub way: LaunchWay,
}

/// How a runner comes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchWay {
    /// Somebody else sees to it; it listens on this port.
    Static(RunnerPort),
    /// By a command.
    Command(LaunchCommand),
}

/// A command that brings a runner up and ends with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    /// What is run.
    pub spec: LaunchSpec,
    /// How long it may take until the runner answers.
    pub start_timeout: Duration,
}

/// The keys of one `[[launch]]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    name: Name,
    labels: Option<Labels>,
    /// The port that the runner listens on. Without `argv` only.
    port: Option<RunnerPort>,
    /// The program and its arguments; `{udid}`, `{log}` and `{result_bundle}`
    /// are replaced. Without `port` only.
    argv: Option<Vec<String>>,
    /// Variables of the command, besides the gateway's own; replaced in the
    /// same way.
    env: Option<BTreeMap<String, String>>,
    /// Where the command runs. Default: where the gateway does.
    directory: Option<PathBuf>,
    /// How long the runner may take to answer. Default `2m`.
    #[serde(default, deserialize_with = "values::some_interval")]
    start_timeout: Option<Duration>,
    /// How long the command may take to end after SIGTERM, before SIGKILL.
    /// Default `5s`.
    #[serde(default, deserialize_with = "values::some_duration")]
    stop_grace: Option<Duration>,
}

/// Why a `[[launch]]` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableLaunch {
    /// It says how the runner comes up twice.
    #[error("launch {0} has a port and an argv: expected one of them")]
    Both(Name),
    /// It does not say it.
    #[error("launch {0} has neither a port nor an argv: expected one of them")]
    Neither(Name),
    /// A key that means something for a command only.
    #[error("launch {name} has a port, and `{key}` is for an argv")]
    ForACommand {
        /// The launch.
        name: Name,
        /// The key.
        key: &'static str,
    },
    /// No command can be made of it.
    #[error("launch {name}: {source}")]
    Command {
        /// The launch.
        name: Name,
        /// Why.
        source: InvalidSpec,
    },
    /// Two launches of one name.
    #[error("launch {0} is listed twice in [[launch]]")]
    Repeated(Name),
}

const START_TIMEOUT: Duration = Duration::from_secs(120);

impl TryFrom<Keys> for LaunchConfig {
    type Error = UnusableLaunch;

    fn try_from(keys: Keys) -> Result<Self, UnusableLaunch> {
        let Keys {
            name,
            labels,
            port,
            argv,
            env,
            directory,
            start_timeout,
            stop_grace,
        } = keys;
        let way = match (port, argv) {
            (Some(_), Some(_)) => return Err(UnusableLaunch::Both(name)),
            (None, None) => return Err(UnusableLaunch::Neither(name)),
            (Some(port), None) => {
                let of_a_command = [
                    ("env", env.is_some()),
                    ("directory", directory.is_some()),
                    ("start_timeout", start_timeout.is_some()),
                    ("stop_grace", stop_grace.is_some()),
                ];
                if let Some((key, _)) = of_a_command.into_iter().find(|(_, is_set)| *is_set) {
                    return Err(UnusableLaunch::ForACommand { name, key });
                }
                LaunchWay::Static(port)
            }
            (None, Some(argv)) => {
                let spec = LaunchSpec {
                    argv,
                    env: env.unwrap_or_default(),
                    directory,
                    stop_grace: stop_grace.unwrap_or(LaunchSpec::STOP_GRACE),
                };
                if let Err(source) = spec.check() {
                    return Err(UnusableLaunch::Command { name, source });
                }
                let start_timeout = start_timeout.unwrap_or(START_TIMEOUT);
                LaunchWay::Command(LaunchCommand {
                    spec,
                    start_timeout,
                })
            }
        };
        Ok(Self { name, labels, way })
    }
}

/// Every `[[launch]]`, without repetitions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<LaunchConfig>")]
pub struct Launches(Vec<LaunchConfig>);

impl Launches {
    /// The launches in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &LaunchConfig> {
        self.0.iter()
    }

    /// The launch of a name.
    pub fn get(&self, name: &Name) -> Option<&LaunchConfig> {
        self.0.iter().find(|launch| launch.name == *name)
    }

    /// How the runner of a phone comes up, if that is known: as its
    /// `[[device]]` says, else by the first launch that selects its labels,
    /// else on the common port.
    pub fn of(
        &self,
        device: Option<&DeviceConfig>,
        labels: &BTreeMap<String, String>,
        common: Option<RunnerPort>,
    ) -> Option<LaunchWay> {
        let named = device
            .and_then(|device| device.launch.as_ref())
            .and_then(|name| self.get(name));
        if let Some(launch) = named {
            return Some(launch.way.clone());
        }
        if let Some(port) = device.and_then(|device| device.runner_port) {
            return Some(LaunchWay::Static(port));
        }
        let selecting = self.0.iter().find(|launch| {
            let labels_of_launch = launch.labels.as_ref();
            labels_of_launch.is_some_and(|selector| selector.select(labels))
        });
        selecting
            .map(|launch| launch.way.clone())
            .or_else(|| common.map(LaunchWay::Static))
    }
}

impl TryFrom<Vec<LaunchConfig>> for Launches {
    type Error = UnusableLaunch;

    fn try_from(launches: Vec<LaunchConfig>) -> Result<Self, UnusableLaunch> {
        let mut names = HashSet::new();
        for launch in &launches {
            if !names.insert(&launch.name) {
                return Err(UnusableLaunch::Repeated(launch.name.clone()));
            }
        }
        Ok(Self(launches))
    }
}
