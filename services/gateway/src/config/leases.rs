//! `[leases]`: how long phones are lent, and to whom first.

use std::time::Duration;

use serde::Deserialize;

use super::values;

/// `[leases]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeasesSection {
    /// Whether mutations and viewports need a lease. If not, a phone that
    /// nobody has is its caller's for the duration of the command. Default
    /// `false`.
    pub required: bool,
    /// How long a lease lives that is not renewed, unless its request says.
    /// Default `60s`.
    #[serde(deserialize_with = "values::second_or_more")]
    pub ttl: Duration,
    /// The longest such time that may be asked for. Default `1h`.
    #[serde(deserialize_with = "values::second_or_more")]
    pub max_ttl: Duration,
    /// How long a lease lives however often it is renewed, unless its request
    /// says. Default `30m`.
    #[serde(deserialize_with = "values::second_or_more")]
    pub max_duration: Duration,
    /// The longest such time that may be asked for. Default `24h`.
    #[serde(deserialize_with = "values::second_or_more")]
    pub longest_duration: Duration,
    /// How long a lease waits for its phones, unless its request says. Default
    /// `15m`.
    #[serde(deserialize_with = "values::duration")]
    pub queue_timeout: Duration,
    /// The longest such time that may be asked for. Default `24h`.
    #[serde(deserialize_with = "values::duration")]
    pub longest_queue_timeout: Duration,
    /// The highest priority that an operator gets, whatever it asks for. Default
    /// `10`.
    pub operator_priority: i32,
    /// The same for an admin. Default `100`.
    pub admin_priority: i32,
}

impl Default for LeasesSection {
    fn default() -> Self {
        Self {
            required: false,
            ttl: Duration::from_secs(60),
            max_ttl: Duration::from_hours(1),
            max_duration: Duration::from_mins(30),
            longest_duration: Duration::from_hours(24),
            queue_timeout: Duration::from_mins(15),
            longest_queue_timeout: Duration::from_hours(24),
            operator_priority: 10,
            admin_priority: 100,
        }
    }
}

impl LeasesSection {
    /// A default that is longer than what may be asked for: its key, what it
    /// says, the key of the limit and what that says.
    pub(super) fn discord(&self) -> Option<(&'static str, Duration, &'static str, Duration)> {
        let pairs = [
            ("ttl", self.ttl, "max_ttl", self.max_ttl),
            (
                "max_duration",
                self.max_duration,
                "longest_duration",
                self.longest_duration,
            ),
            (
                "queue_timeout",
                self.queue_timeout,
                "longest_queue_timeout",
                self.longest_queue_timeout,
            ),
        ];
        pairs
            .into_iter()
            .find(|(_, default, _, limit)| default > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn with(key: &str, value: &str) -> Result<LeasesSection, String> {
        let variable = format!("FLEETGATE_LEASES__{}", key.to_ascii_uppercase());
        Config::load_with(None, [(variable, value.to_owned())])
            .map(|config| config.leases)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_key_is_taken() {
        let default = LeasesSection::default;
        assert_eq!(Config::default().leases, default());
        let seconds = |seconds| Duration::from_secs(seconds);
        for (key, value, expected) in [
            (
                "required",
                "true",
                LeasesSection {
                    required: true,
                    ..default()
                },
            ),
            (
                "ttl",
                "5s",
                LeasesSection {
                    ttl: seconds(5),
                    ..default()
                },
            ),
            (
                "max_ttl",
                "2h",
                LeasesSection {
                    max_ttl: seconds(7200),
                    ..default()
                },
            ),
            (
                "max_duration",
                "7m",
                LeasesSection {
                    max_duration: seconds(420),
                    ..default()
                },
            ),
            (
                "longest_duration",
                "1h",
                LeasesSection {
                    longest_duration: seconds(3600),
                    ..default()
                },
            ),
            (
                "queue_timeout",
                "0s",
                LeasesSection {
                    queue_timeout: seconds(0),
                    ..default()
                },
            ),
            (
                "longest_queue_timeout",
                "1h",
                LeasesSection {
                    longest_queue_timeout: seconds(3600),
                    ..default()
                },
            ),
            (
                "operator_priority",
                "-1",
                LeasesSection {
                    operator_priority: -1,
                    ..default()
                },
            ),
            (
                "admin_priority",
                "7",
                LeasesSection {
                    admin_priority: 7,
                    ..default()
                },
            ),
        ] {
            assert_eq!(with(key, value), Ok(expected), "{key}");
        }
    }

    #[test]
    fn a_default_that_nobody_may_ask_for_is_refused() {
        for (key, value, told) in [
            (
                "ttl",
                "2h",
                "ttl of [leases] is 7200s, longer than its max_ttl, 3600s",
            ),
            ("max_duration", "25h", "longest_duration"),
            (
                "longest_queue_timeout",
                "1m",
                "longer than its longest_queue_timeout",
            ),
        ] {
            let refused = with(key, value).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
        // Nor may anybody ask for less than a second.
        for key in ["ttl", "max_ttl", "max_duration", "longest_duration"] {
            for value in ["0s", "1ns", "999ms"] {
                let refused = with(key, value).unwrap_err();
                assert!(refused.contains("must be at least a second"), "{refused}");
            }
        }
        assert!(with("shape", "round").is_err());
    }
}
