//! The configuration: one TOML file, and environment variables over it.
//!
//! Every key, its unit and its default stand here and nowhere else. A key that
//! is not known, a value that cannot be used and a device that is named twice
//! are refused, and the refusal names the file, the key and the line, or the
//! variable; where two sections do not go together, both. What is not refused
//! here is usable: nothing is checked again later.
//!
//! A variable overrides one key: `FLEETGATE_SERVER__LISTEN` is `listen` of
//! `[server]`. Variables without a double underscore belong to the command
//! line. Hosts, launches and devices can be listed in the file only.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytesize::ByteSize;
use fleetgate_device::Address;
use serde::Deserialize;

mod auth;
mod defaults;
mod devices;
mod env;
mod fleet;
mod hosts;
mod launches;
mod leases;
mod limits;
mod listen;
#[cfg(test)]
mod tests;
mod tls;
mod together;
mod values;

pub use fleetgate_launch::LaunchSpec;

pub use auth::{
    AuthDiscord, AuthSection, BindingConfig, CertificateConfig, Missing, OidcConfig, PrincipalName,
};
pub use devices::{DeviceConfig, Devices};
pub use fleet::{AdminSection, HealthSection, RunnerSection};
pub use hosts::{HostConfig, Hosts, LOCAL};
pub use launches::{LaunchCommand, LaunchConfig, LaunchWay, Launches};
pub use leases::LeasesSection;
pub use limits::LimitsSection;
pub use listen::{Listen, LoopbackListen, ServerHost};
pub use tls::{ClientAuthorities, ClientCertificate, TlsDiscord, TlsFiles, TlsSection};
pub use together::Discord;
pub use values::{Alias, Labels, Name, RunnerPort, UnusableValue};

/// The whole configuration. `Config::default()` is what an empty file gives.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `[server]`: the gRPC server.
    pub server: ServerConfig,
    /// `[tls]`: its certificate, and those of its callers.
    pub tls: TlsSection,
    /// `[auth]`: who may call, and what they may do.
    pub auth: AuthSection,
    /// `[limits]`: how much of the gateway one of them may take.
    pub limits: LimitsSection,
    /// `[usbmuxd]`: where the phones of this host are.
    pub usbmuxd: UsbmuxdSection,
    /// `[[host]]`: where others are.
    pub host: Hosts,
    /// `[ledger]`: where commands and their fates are recorded.
    pub ledger: LedgerSection,
    /// `[lane]`: the queue of each device.
    pub lane: LaneSection,
    /// `[runner]`: the automation runners.
    pub runner: RunnerSection,
    /// `[[launch]]`: how they come up.
    pub launch: Launches,
    /// `[health]`: how they are watched, and what becomes of those that fail.
    pub health: HealthSection,
    /// `[[device]]`: phones that are known by name.
    pub device: Devices,
    /// `[leases]`: how long phones are lent, and to whom first.
    pub leases: LeasesSection,
    /// `[admin]`: where the process tells how it fares.
    pub admin: AdminSection,
    /// `[log]`: what the process writes about itself.
    pub log: LogSection,
}

/// `[server]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Address and port to listen on; port 0 takes any free one. An address
    /// that others than this host can reach takes `[tls]`, and a way to know
    /// callers by: tokens, `[auth.oidc]` or `[[auth.certificate]]`. Default
    /// `127.0.0.1:7700`.
    pub listen: Listen,
    /// What web pages and HTTP/1.1 clients may call the server, besides
    /// loopback's names and those of its certificate. Default: nothing else.
    pub hosts: Vec<ServerHost>,
    /// How long a stopping gateway waits for commands and streams to end.
    /// Default `20s`.
    #[serde(deserialize_with = "values::duration")]
    pub drain_timeout: Duration,
    /// The largest request message that is taken. A runner takes 2 MiB, so
    /// that more is of no use. Default `4MiB`.
    pub max_request_bytes: ByteSize,
    /// The largest reply message that is sent: a snapshot above it is answered
    /// with `RESOURCE_EXHAUSTED`. A gRPC client takes 4 MiB by default. Default
    /// `4MiB`.
    pub max_reply_bytes: ByteSize,
    /// How many calls one connection may have open. Default `256`.
    pub max_concurrent_streams: NonZeroU32,
    /// How many connections are kept open at once; more wait to be accepted.
    /// Default `1024`.
    pub max_connections: NonZeroUsize,
    /// How often a connection is probed with an HTTP/2 ping. Pings of clients
    /// are answered at any rate. Default `30s`.
    #[serde(deserialize_with = "values::interval")]
    pub http2_keepalive_interval: Duration,
    /// How long the answer to a ping may take before the connection is closed.
    /// Default `20s`.
    #[serde(deserialize_with = "values::interval")]
    pub http2_keepalive_timeout: Duration,
    /// How often a stream without an end is sent a message although there is
    /// nothing to tell. Default `15s`.
    #[serde(deserialize_with = "values::interval")]
    pub heartbeat_interval: Duration,
    /// How long a connection may go without a call by which its caller is let in;
    /// calls to health do not count. Default `20s`.
    #[serde(deserialize_with = "values::interval")]
    pub first_call_timeout: Duration,
    /// How long a TCP connection is idle before the kernel probes it, in whole
    /// seconds. Default `60s`.
    #[serde(deserialize_with = "values::seconds")]
    pub tcp_keepalive: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: Listen::default(),
            hosts: Vec::new(),
            drain_timeout: Duration::from_secs(20),
            max_request_bytes: ByteSize::mib(4),
            max_reply_bytes: ByteSize::mib(4),
            max_concurrent_streams: defaults::MAX_CONCURRENT_STREAMS,
            max_connections: defaults::MAX_CONNECTIONS,
            http2_keepalive_interval: Duration::from_secs(30),
            http2_keepalive_timeout: Duration::from_secs(20),
            heartbeat_interval: Duration::from_secs(15),
            first_call_timeout: Duration::from_secs(20),
            tcp_keepalive: Duration::from_secs(60),
        }
    }
}

/// `[usbmuxd]`: the host that is called `local`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UsbmuxdSection {
    /// A socket's path or `host:port`. Default: none beside a `[[host]]`;
    /// without any, what `USBMUXD_SOCKET_ADDRESS` says, or `/var/run/usbmuxd`.
    #[serde(deserialize_with = "values::some_address")]
    pub address: Option<Address>,
}

/// `[ledger]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerSection {
    /// The SQLite file; it and its directory are made when absent. Default
    /// `fleetgate/ledger.db` below `$XDG_STATE_HOME` or `~/.local/state`.
    pub path: PathBuf,
    /// How a commit is made durable. Default `full`.
    pub synchronous: Synchronous,
    /// What was recorded longer ago than this is removed, but for commands
    /// without a fate. No default: everything is kept.
    #[serde(with = "humantime_serde")]
    pub retention_max_age: Option<Duration>,
    /// While more than this is in use, what is oldest is removed, but for
    /// commands without a fate. No default: everything is kept.
    pub retention_max_size: Option<ByteSize>,
    /// How often there is a look at what is to be removed. Default `1m`.
    #[serde(deserialize_with = "values::interval")]
    pub retention_interval: Duration,
}

impl Default for LedgerSection {
    fn default() -> Self {
        Self {
            path: defaults::ledger_path(),
            synchronous: Synchronous::default(),
            retention_max_age: None,
            retention_max_size: None,
            retention_interval: Duration::from_secs(60),
        }
    }
}

/// How a commit of the ledger is made durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synchronous {
    /// It survives a power cut.
    #[default]
    Full,
    /// It survives the death of the process; a power cut may take the newest
    /// records with it, and with them the proof of what was sent.
    Normal,
}

/// `[lane]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LaneSection {
    /// How many commands of one device may wait for their turn. Default `64`.
    pub capacity: NonZeroUsize,
}

impl Default for LaneSection {
    fn default() -> Self {
        Self {
            capacity: defaults::LANE_CAPACITY,
        }
    }
}

/// `[log]`: taken by the process that runs the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// What is logged, in the syntax of tracing's `EnvFilter`. Default `info`.
    pub filter: String,
    /// `text` for people, `json` for machines. Default `text`.
    pub format: LogFormat,
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            filter: "info".to_owned(),
            format: LogFormat::default(),
        }
    }
}

/// The shape of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file says something that cannot be used.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What, and on which line.
        source: toml::de::Error,
    },
    /// A variable says something that cannot be used.
    #[error("environment variable {variable}: {source}")]
    Variable {
        /// Its name.
        variable: String,
        /// What is wrong with it.
        source: Box<figment::Error>,
    },
    /// A variable that would add to a list.
    #[error(
        "environment variable {variable}: hosts, launches and devices can be listed in the file \
         only"
    )]
    ListVariable {
        /// Its name.
        variable: String,
    },
    /// Two sections that do not go together.
    #[error("{source}{}", file.as_ref().map(|file| format!(" ({})", file.display())).unwrap_or_default())]
    Discord {
        /// The file, if there is one.
        file: Option<PathBuf>,
        /// What is wrong.
        source: Discord,
    },
}

impl Config {
    /// Reads the file, if there is one, and the process's environment over it.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        // A variable that is not Unicode cannot hold a value of ours.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::load_with(path, variables)
    }

    /// [`Config::load`] under a given environment.
    pub fn load_with(
        path: Option<&Path>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let text = match path {
            Some(path) => {
                std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
                    path: path.to_owned(),
                    source,
                })?
            }
            None => String::new(),
        };
        let in_file = |source| ConfigError::File {
            path: path.unwrap_or(Path::new("")).to_owned(),
            source,
        };
        // Typed straight from the text, because only that knows the lines.
        let config: Self = toml::from_str(&text).map_err(in_file)?;
        let table: toml::Table = toml::from_str(&text).map_err(in_file)?;
        let config = env::over(config, table, variables)?;
        match config.discord() {
            None => Ok(config),
            Some(source) => Err(ConfigError::Discord {
                file: path.map(Path::to_owned),
                source,
            }),
        }
    }
}
