//! What one section says about another: checked when the whole is there, since
//! no section can know it by itself.

use std::time::Duration;

use fleetgate_device::Address;
use fleetgate_runner::Udid;

use super::hosts::LOCAL;
use super::values::Name;
use super::{AuthDiscord, Config, TlsDiscord, defaults};

/// Two parts of a configuration that do not go together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Discord {
    /// TLS that cannot be had.
    #[error(transparent)]
    Tls(#[from] TlsDiscord),
    /// Callers that cannot be known.
    #[error(transparent)]
    Auth(#[from] AuthDiscord),
    /// A phone's runner is to come up in a way that is not described.
    #[error("launch {launch} of [[device]] {device} is not listed in [[launch]]")]
    UnknownLaunch {
        /// The phone.
        device: Udid,
        /// The name.
        launch: Name,
    },
    /// The usbmuxd of `[usbmuxd]` has the name of another.
    #[error("a [[host]] is called {LOCAL}, which is what the usbmuxd of [usbmuxd] is called")]
    LocalHost,
    /// The usbmuxd of `[usbmuxd]` is listed as another.
    #[error("address {0} of [usbmuxd] is that of a [[host]], too")]
    OneAddress(Address),
    /// The first pause is longer than the longest.
    #[error("backoff_initial of [health] is {initial:?}, longer than its backoff_max, {max:?}")]
    Backoff {
        /// The first.
        initial: Duration,
        /// The longest.
        max: Duration,
    },
    /// What a lease gets that asks for nothing is more than it might ask for.
    #[error("{key} of [leases] is {value:?}, longer than its {limit_key}, {limit:?}")]
    Lease {
        /// The key of the default.
        key: &'static str,
        /// The default.
        value: Duration,
        /// The key of the limit.
        limit_key: &'static str,
        /// The limit.
        limit: Duration,
    },
}

impl Config {
    /// What does not go together, if anything.
    pub(super) fn discord(&self) -> Option<Discord> {
        let asks_for_certificates = match self.tls.files() {
            Ok(files) => files.is_some_and(|files| files.clients.is_some()),
            Err(discord) => return Some(discord.into()),
        };
        let auth = self.auth.discord(asks_for_certificates);
        if let Some(discord) = auth.or_else(|| self.exposure()) {
            return Some(discord.into());
        }
        for device in self.device.iter() {
            if let Some(launch) = &device.launch
                && self.launch.get(launch).is_none()
            {
                return Some(Discord::UnknownLaunch {
                    device: device.udid.clone(),
                    launch: launch.clone(),
                });
            }
        }
        if let Some(address) = &self.usbmuxd.address {
            if self.host.iter().any(|host| host.name.as_str() == LOCAL) {
                return Some(Discord::LocalHost);
            }
            if self.host.iter().any(|host| host.address == *address) {
                return Some(Discord::OneAddress(address.clone()));
            }
        }
        if let Some((key, value, limit_key, limit)) = self.leases.discord() {
            return Some(Discord::Lease {
                key,
                value,
                limit_key,
                limit,
            });
        }
        let (initial, max) = (self.health.backoff_initial, self.health.backoff_max);
        (initial > max).then_some(Discord::Backoff { initial, max })
    }

    /// Every usbmuxd by its name.
    pub fn usbmuxds(&self) -> Vec<(String, Address)> {
        let local = match &self.usbmuxd.address {
            Some(address) => Some(address.clone()),
            None if self.host.iter().next().is_none() => Some(defaults::usbmuxd_address()),
            None => None,
        };
        let local = local.map(|address| (LOCAL.to_owned(), address));
        let others = self
            .host
            .iter()
            .map(|host| (host.name.to_string(), host.address.clone()));
        local.into_iter().chain(others).collect()
    }
}
