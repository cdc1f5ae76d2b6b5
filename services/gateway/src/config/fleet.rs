//! `[runner]`, `[health]` and `[admin]`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::values::{self, RunnerPort};
use super::{Config, LoopbackListen, defaults};

/// `[runner]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunnerSection {
    /// The port that the runner of every phone listens on, unless its
    /// `[[device]]` or a `[[launch]]` says otherwise. No default: a phone
    /// without a known port cannot be driven.
    pub port: Option<RunnerPort>,
    /// How long a command is offered again to a runner that answers
    /// `RUNNER_BUSY`, if its caller's deadline allows that. Default `30s`.
    #[serde(deserialize_with = "values::duration")]
    pub busy_ceiling: Duration,
    /// Where the output of launched runners is kept, and what is to be known of
    /// their processes after a crash. No two gateways may share it. Default:
    /// `runners` beside the ledger's file.
    pub directory: Option<PathBuf>,
    /// How many runners are being launched at once. Default `8`.
    pub max_launches: NonZeroUsize,
}

impl Default for RunnerSection {
    fn default() -> Self {
        Self {
            port: None,
            busy_ceiling: Duration::from_secs(30),
            directory: None,
            max_launches: defaults::MAX_LAUNCHES,
        }
    }
}

/// `[health]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HealthSection {
    /// How often a runner is asked how it fares; `0s` is never, and then a
    /// runner that somebody else sees to is not known to be ready. Default
    /// `30s`.
    #[serde(deserialize_with = "values::duration")]
    pub probe_interval: Duration,
    /// After how many questions without an answer in a row a runner counts as
    /// gone. Default `3`.
    pub probe_failures: NonZeroU32,
    /// How long a launched runner may have been up before it is launched again,
    /// as soon as nothing is in flight: it ends by itself after 24 hours.
    /// Default `23h`.
    #[serde(deserialize_with = "values::interval")]
    pub recycle_age: Duration,
    /// The pause before a runner that failed once is launched again; it doubles
    /// with each further failure. Default `5s`.
    #[serde(deserialize_with = "values::interval")]
    pub backoff_initial: Duration,
    /// The longest such pause. Default `5m`.
    #[serde(deserialize_with = "values::interval")]
    pub backoff_max: Duration,
    /// After how many failures in a row a launched runner is left alone.
    /// Default `5`.
    pub quarantine_after: NonZeroU32,
    /// How long a runner must do well for its failures to be forgotten. Default
    /// `10m`.
    #[serde(deserialize_with = "values::duration")]
    pub stable_after: Duration,
    /// How many failures a runner may record while it suppresses no issue,
    /// before that is an alarm. Default `3`.
    pub drift_failures: NonZeroU32,
    /// Whether a phone that is plugged in is asked for its name, model and
    /// version of iOS, by lockdown, and its host whether it has paired with it.
    /// Default `true`.
    pub facts: bool,
}

impl Default for HealthSection {
    fn default() -> Self {
        Self {
            probe_interval: Duration::from_secs(30),
            probe_failures: defaults::PROBE_FAILURES,
            recycle_age: Duration::from_hours(23),
            backoff_initial: Duration::from_secs(5),
            backoff_max: Duration::from_secs(5 * 60),
            quarantine_after: defaults::QUARANTINE_AFTER,
            stable_after: Duration::from_secs(10 * 60),
            drift_failures: defaults::DRIFT_FAILURES,
            facts: true,
        }
    }
}

/// `[admin]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminSection {
    /// Address and port of the HTTP server that tells how the process fares;
    /// loopback only, since it has neither TLS nor authentication. No default:
    /// there is none.
    pub listen: Option<LoopbackListen>,
}

impl Config {
    /// Where what launched runners leave is kept.
    pub fn runner_directory(&self) -> PathBuf {
        self.runner
            .directory
            .clone()
            .unwrap_or_else(|| self.ledger.path.with_file_name("runners"))
    }
}
