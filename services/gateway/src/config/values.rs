//! Values that are checked where they are parsed, so that an error knows its
//! line and whoever holds one need not check it again.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use fleetgate_device::Address;
use fleetgate_runner::Udid;
use serde::{Deserialize, Deserializer, de};

/// Why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableValue {
    /// An address that others than this host could reach.
    #[error(
        "{0} is not a loopback address: this server has neither TLS nor authentication and \
         listens on 127.0.0.1 or [::1] only"
    )]
    NotLoopback(SocketAddr),
    /// A port that no runner can have.
    #[error(
        "{0} is not a runner's port: expected 1024 to 65535, and not 62078, which is lockdown's"
    )]
    RunnerPort(u16),
    /// An alias that would be taken for a UDID.
    #[error("an alias must not be a UDID")]
    AliasIsUdid,
    /// An alias that cannot be typed or shown.
    #[error("not an alias: expected 1 to {max} printable characters without spaces", max = Alias::MAX_CHARS)]
    Alias,
}

/// An address to listen on; always loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SocketAddr")]
pub struct Listen(SocketAddr);

impl Listen {
    /// The address.
    pub fn address(self) -> SocketAddr {
        self.0
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, 7700)))
    }
}

impl TryFrom<SocketAddr> for Listen {
    type Error = UnusableValue;

    fn try_from(address: SocketAddr) -> Result<Self, UnusableValue> {
        if address.ip().to_canonical().is_loopback() {
            Ok(Self(address))
        } else {
            Err(UnusableValue::NotLoopback(address))
        }
    }
}

/// A port that a runner may listen on: never a system port, never lockdown's,
/// so that no configuration can turn the gateway against those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
pub struct RunnerPort(u16);

impl RunnerPort {
    const LEAST: u16 = 1024;
    const LOCKDOWN: u16 = 62078;

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for RunnerPort {
    type Error = UnusableValue;

    fn try_from(port: u16) -> Result<Self, UnusableValue> {
        if port < Self::LEAST || port == Self::LOCKDOWN {
            Err(UnusableValue::RunnerPort(port))
        } else {
            Ok(Self(port))
        }
    }
}

/// A phone's other name; never one that could be a UDID.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Alias(String);

impl Alias {
    /// The longest alias.
    pub const MAX_CHARS: usize = 64;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Alias {
    type Error = UnusableValue;

    fn try_from(text: String) -> Result<Self, UnusableValue> {
        if text.parse::<Udid>().is_ok() {
            return Err(UnusableValue::AliasIsUdid);
        }
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if text.is_empty() || text.chars().count() > Self::MAX_CHARS || text.contains(odd) {
            return Err(UnusableValue::Alias);
        }
        Ok(Self(text))
    }
}

/// A usbmuxd's address from its text.
pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(de::Error::custom)
}

/// Longer than anything is waited for, and no clock overflows for it.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// A duration that can be waited for.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration: Duration = humantime_serde::deserialize(deserializer)?;
    if duration > LONGEST {
        return Err(de::Error::custom("must not be longer than a year"));
    }
    Ok(duration)
}

/// Such a duration that is not zero.
pub(super) fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = duration(deserializer)?;
    if duration.is_zero() {
        return Err(de::Error::custom("must be longer than nothing"));
    }
    Ok(duration)
}

/// Such a duration for the kernel, which counts whole seconds and takes no 0.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = interval(deserializer)?;
    if duration.subsec_nanos() != 0 {
        return Err(de::Error::custom("must be whole seconds"));
    }
    Ok(duration)
}
