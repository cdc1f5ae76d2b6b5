//! The table of one usbmuxd's phones: a pure function of its events.
//!
//! usbmuxd announces a phone once per transport. The table holds one entry per
//! phone with the number it has on each, and routes by cable only.
//!
//! Invariant: a number in the table was given by the listening connection that
//! is open now, or `connected` is false and nothing is routed.

use std::collections::BTreeMap;

use fleetgate_runner::Udid;
use fleetgate_usbmux::{ConnectionType, Event, MuxDeviceId, Phone};
use tokio::time::Instant;

/// What is known of one usbmuxd's phones.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// Counts the listening connections: numbers of phones mean nothing across
    /// generations. 0 before the first.
    pub generation: u64,
    /// Whether a listening connection is open. If not, the devices are those
    /// that were there last, and none of them can be reached.
    pub connected: bool,
    /// Why the last listening connection ended or could not be made, until the
    /// next one is made.
    pub last_error: Option<String>,
    /// The phones.
    pub devices: BTreeMap<Udid, Attached>,
    /// How many announcements of this generation could not be used.
    pub ignored: u64,
    /// When `connected` became what it is, or the generation began.
    pub since: Instant,
}

/// One phone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attached {
    /// Its number by cable.
    pub usb: Option<MuxDeviceId>,
    /// Its number over Wi-Fi, which is never connected to.
    pub network: Option<MuxDeviceId>,
    /// The USB product id.
    pub product: Option<u64>,
    /// The USB location.
    pub location: Option<u64>,
    /// The USB speed in bits per second.
    pub speed: Option<u64>,
}

/// The way to one phone: a number and the generation in which it means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// usbmuxd's number for the phone by cable.
    pub device: MuxDeviceId,
    /// The generation that gave it.
    pub generation: u64,
}

impl Inventory {
    /// Before the first listening connection.
    pub(crate) fn new() -> Self {
        Self {
            generation: 0,
            connected: false,
            last_error: None,
            devices: BTreeMap::new(),
            ignored: 0,
            since: Instant::now(),
        }
    }

    /// The way to a phone, if it is attached by cable.
    pub fn route(&self, device: &Udid) -> Option<Route> {
        let attached = self.devices.get(device).filter(|_| self.connected)?;
        Some(Route {
            device: attached.usb?,
            generation: self.generation,
        })
    }

    /// A new listening connection is open: what was known before is void.
    pub(crate) fn begin(&mut self) {
        *self = Self {
            generation: self.generation + 1,
            connected: true,
            ..Self::new()
        };
    }

    /// The listening connection is gone.
    pub(crate) fn lose(&mut self, why: String) {
        if self.connected {
            self.since = Instant::now();
        }
        self.connected = false;
        self.last_error = Some(why);
    }

    /// Takes an event of the listening connection.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Attached(phone) => self.attach(phone),
            Event::Detached(number) => {
                tracing::debug!(%number, "detached");
                self.forget(*number);
            }
            Event::Paired(number) => tracing::debug!(%number, "paired"),
            Event::Unknown { message_type } => {
                tracing::debug!(message_type, "unknown event ignored");
            }
        }
    }

    /// A number that usbmuxd does not know any more.
    pub(crate) fn invalidate(&mut self, route: Route) -> bool {
        self.generation == route.generation && self.forget(route.device)
    }

    fn attach(&mut self, phone: &Phone) {
        let number = phone.device;
        // Whatever the number meant before, it means this phone now.
        self.forget(number);
        let Ok(udid) = phone.serial.parse::<Udid>() else {
            tracing::warn!(%number, serial = phone.serial, "ignoring a device whose serial is no UDID");
            self.ignored += 1;
            return;
        };
        tracing::debug!(device.id = %udid, %number, connection = ?phone.connection, "attached");
        match phone.connection {
            ConnectionType::Usb => {
                let attached = self.devices.entry(udid).or_default();
                attached.usb = Some(number);
                attached.product = phone.product;
                attached.location = phone.location;
                attached.speed = phone.speed;
            }
            ConnectionType::Network => {
                self.devices.entry(udid).or_default().network = Some(number);
            }
            ConnectionType::Other(_) => self.ignored += 1,
        }
    }

    /// Removes a number, and the phone that has no other.
    fn forget(&mut self, number: MuxDeviceId) -> bool {
        let holds =
            |attached: &Attached| attached.usb == Some(number) || attached.network == Some(number);
        let Some((udid, attached)) = self.devices.iter_mut().find(|(_, known)| holds(known)) else {
            return false;
        };
        if attached.usb == Some(number) {
            *attached = Attached {
                network: attached.network,
                ..Attached::default()
            };
        } else {
            attached.network = None;
        }
        if attached.usb.is_none() && attached.network.is_none() {
            let udid = udid.clone();
            self.devices.remove(&udid);
        }
        true
    }
}

#[cfg(test)]
mod tests;
