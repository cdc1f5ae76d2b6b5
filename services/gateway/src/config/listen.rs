//! Where a server listens, and what it is called there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde::Deserialize;

use super::values::UnusableValue;

/// An address to listen on. One that others than this host can reach takes more
/// than an address: see [`Config::exposure`](super::Config::exposure).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Listen(SocketAddr);

impl Listen {
    /// The address.
    pub fn address(self) -> SocketAddr {
        self.0
    }

    /// Whether nobody but this host can reach it.
    pub fn is_loopback(self) -> bool {
        is_loopback(self.0)
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::LOCALHOST, 7700)))
    }
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self(address)
    }
}

/// An address to listen on; always loopback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "SocketAddr")]
pub struct LoopbackListen(SocketAddr);

impl LoopbackListen {
    /// The address.
    pub fn address(self) -> SocketAddr {
        self.0
    }
}

impl TryFrom<SocketAddr> for LoopbackListen {
    type Error = UnusableValue;

    fn try_from(address: SocketAddr) -> Result<Self, UnusableValue> {
        if is_loopback(address) {
            Ok(Self(address))
        } else {
            Err(UnusableValue::NotLoopback(address))
        }
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// What a server is called in a `Host` header, without the port: a name in lower
/// case, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ServerHost(String);

impl ServerHost {
    /// Whether a `Host` header's host is this one. An IPv6 address has no
    /// brackets here.
    pub fn is(&self, host: &str) -> bool {
        match (self.0.parse::<IpAddr>(), host.parse::<IpAddr>()) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            (Ok(_) | Err(_), Ok(_) | Err(_)) => self.0.eq_ignore_ascii_case(host),
        }
    }
}

impl TryFrom<String> for ServerHost {
    type Error = UnusableValue;

    fn try_from(text: String) -> Result<Self, UnusableValue> {
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_name = !text.is_empty() && text.len() <= 253 && text.chars().all(fit);
        if is_name || text.parse::<IpAddr>().is_ok() {
            Ok(Self(text))
        } else {
            Err(UnusableValue::Host(text))
        }
    }
}
