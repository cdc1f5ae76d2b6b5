//! The table of one usbmuxd's phones: a pure function of its events.
//!
//! usbmuxd announces a phone once per transport. The table holds one entry per
//! phone with the number it has on each, and routes by cable only.
//!
//! ```text
//!             announced           connection lost
//!   Absent ------------> Here ----------------------> Remembered
//!    ^  ^                | ^ ^     announced again     |  |  ^
//!    |  |    detached    | | +-------------------------+  |  |
//!    |  +----------------+ |                              |  |
//!    |  |     announced    | | denied by usbmuxd          |  |
//!    |  |            again | v     connection lost        |  |
//!    |  +-------------- Denied ---------------------------|--+
//!    +------- a new connection has settled without it ----+
//! ```
//!
//! What is not known any more is remembered and not dropped: a usbmuxd that is
//! away for a moment must not look like one from which every phone was pulled.
//!
//! Invariant: a number in the table was given by the listening connection that
//! is open now; a remembered phone has none and is not routed.

use std::collections::{BTreeMap, HashMap};

use fleetgate_runner::Udid;
use fleetgate_usbmux::{ConnectionType, Event, MuxDeviceId, Phone};
use tokio::time::Instant;

/// What is known of one usbmuxd's phones.
#[derive(Debug, Clone)]
pub(crate) struct Inventory {
    /// Whose phones these are.
    pub(crate) host: usize,
    /// Counts the listening connections: numbers of phones mean nothing across
    /// generations. 0 before the first.
    pub(crate) generation: u64,
    /// Whether a listening connection is open.
    pub(crate) connected: bool,
    /// Whether it has had the time to announce every phone.
    pub(crate) settled: bool,
    /// Why the last listening connection ended or could not be made, until the
    /// next one is made.
    pub(crate) last_error: Option<String>,
    /// How many announcements of this generation could not be used.
    pub(crate) ignored: u64,
    /// When `connected` became what it is, or the generation began.
    pub(crate) since: Instant,
    /// When this generation last announced a phone, or began.
    pub(crate) last_announced: Instant,
    devices: BTreeMap<Udid, Known>,
    /// Which phone a number means.
    numbers: HashMap<MuxDeviceId, Udid>,
    /// How many phones have come to trust this host.
    paired: u64,
}

/// What is known of one phone. At least one of its links is not absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its UDID as this usbmuxd spells it.
    pub(crate) serial: Box<str>,
    pub(crate) usb: Link,
    /// Over Wi-Fi, which is never connected to.
    pub(crate) network: Link,
    /// The generation that announced it last.
    pub(crate) generation: u64,
    /// When it was last announced, by cable if it is on one.
    pub(crate) announced: Instant,
    /// Becomes another number each time it has come to trust its host.
    pub(crate) paired: u64,
}

/// What is known of a phone on one transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// It is not there.
    Absent,
    /// The open connection has announced it under this number.
    Here(MuxDeviceId),
    /// It has, and usbmuxd has since denied that it knows the number.
    Denied(MuxDeviceId),
    /// An earlier connection had announced it.
    Remembered,
}

impl Link {
    /// Its number, whether it is good for anything or not.
    fn number(self) -> Option<MuxDeviceId> {
        match self {
            Self::Here(number) | Self::Denied(number) => Some(number),
            Self::Absent | Self::Remembered => None,
        }
    }

    fn fade(&mut self) {
        match self {
            Self::Here(_) | Self::Denied(_) => *self = Self::Remembered,
            Self::Absent | Self::Remembered => {}
        }
    }

    fn settle(&mut self) {
        match self {
            Self::Remembered => *self = Self::Absent,
            Self::Absent | Self::Here(_) | Self::Denied(_) => {}
        }
    }
}

/// The way to one phone: a number, and where and when it means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// The usbmuxd, as an index into [`crate::HostsView::hosts`].
    pub host: usize,
    /// Its number for the phone by cable.
    pub device: MuxDeviceId,
    /// Its generation that gave it.
    pub generation: u64,
}

impl Known {
    /// Whether the phone is, or was last, on a cable.
    pub(crate) fn by_cable(&self) -> bool {
        self.usb != Link::Absent
    }

    /// Whether this is only what was known last.
    pub(crate) fn is_stale(&self) -> bool {
        match self.usb {
            Link::Here(_) => false,
            Link::Denied(_) | Link::Remembered => true,
            Link::Absent => self.network == Link::Remembered,
        }
    }

    /// The number to connect to.
    pub(crate) fn number(&self) -> Option<MuxDeviceId> {
        match self.usb {
            Link::Here(number) => Some(number),
            Link::Absent | Link::Denied(_) | Link::Remembered => None,
        }
    }

    fn links(&mut self) -> [&mut Link; 2] {
        [&mut self.usb, &mut self.network]
    }

    fn is_gone(&self) -> bool {
        self.usb == Link::Absent && self.network == Link::Absent
    }
}

impl Inventory {
    /// Before the first listening connection.
    pub(crate) fn new(host: usize) -> Self {
        let now = Instant::now();
        Self {
            host,
            generation: 0,
            connected: false,
            settled: false,
            last_error: None,
            ignored: 0,
            since: now,
            last_announced: now,
            devices: BTreeMap::new(),
            numbers: HashMap::new(),
            paired: 0,
        }
    }

    /// Every phone, in order.
    pub(crate) fn devices(&self) -> impl Iterator<Item = (&Udid, &Known)> {
        self.devices.iter()
    }

    /// One phone.
    pub(crate) fn get(&self, device: &Udid) -> Option<&Known> {
        self.devices.get(device)
    }

    /// The way to a phone, if it is attached by cable.
    pub(crate) fn route(&self, device: &Udid) -> Option<Route> {
        Some(Route {
            host: self.host,
            device: self.get(device)?.number()?,
            generation: self.generation,
        })
    }

    /// A new listening connection is open: numbers that were given before are
    /// void, and phones that it does not announce are gone once it has settled.
    pub(crate) fn begin(&mut self) {
        self.fade();
        let now = Instant::now();
        self.generation += 1;
        self.connected = true;
        self.settled = false;
        self.last_error = None;
        self.ignored = 0;
        self.since = now;
        self.last_announced = now;
    }

    /// The listening connection is gone.
    pub(crate) fn lose(&mut self, why: String) {
        self.fade();
        if self.connected {
            self.since = Instant::now();
        }
        self.connected = false;
        self.settled = false;
        self.last_error = Some(why);
    }

    /// The listening connection has had the time to announce every phone: what
    /// it did not announce is not there.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
        self.devices.retain(|_, known| {
            known.links().into_iter().for_each(Link::settle);
            !known.is_gone()
        });
    }

    /// Takes an event of the listening connection.
    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::Attached(phone) => self.attach(phone),
            Event::Detached(number) => {
                tracing::debug!(%number, "detached");
                self.forget(*number);
            }
            Event::Paired(number) => self.pair(*number),
            Event::Unknown { message_type } => {
                tracing::debug!(message_type, "unknown event ignored");
            }
        }
    }

    /// Takes note that usbmuxd denies a number that it had announced. False if
    /// that is nothing new.
    pub(crate) fn deny(&mut self, route: Route) -> bool {
        if route.generation != self.generation {
            return false;
        }
        let number = route.device;
        match self.by_number(number) {
            Some(known) if known.usb == Link::Here(number) => {
                known.usb = Link::Denied(number);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Drops what is only remembered of a phone: it has turned up elsewhere.
    pub(crate) fn supersede(&mut self, device: &Udid) {
        if let Some(known) = self.devices.get_mut(device) {
            known.links().into_iter().for_each(Link::settle);
            if known.is_gone() {
                self.devices.remove(device);
            }
        }
    }

    fn by_number(&mut self, number: MuxDeviceId) -> Option<&mut Known> {
        self.devices.get_mut(self.numbers.get(&number)?)
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
        let by_cable = match phone.connection {
            ConnectionType::Usb => true,
            ConnectionType::Network => false,
            ConnectionType::Other(_) => {
                self.ignored += 1;
                return;
            }
        };
        tracing::debug!(device.id = %udid, %number, by_cable, "attached");
        let now = Instant::now();
        self.last_announced = now;
        let known = self.devices.entry(udid.clone()).or_insert_with(|| Known {
            serial: phone.serial.as_str().into(),
            usb: Link::Absent,
            network: Link::Absent,
            generation: self.generation,
            announced: now,
            paired: 0,
        });
        if by_cable || known.usb == Link::Absent {
            known.announced = now;
        }
        known.generation = self.generation;
        let link = if by_cable {
            &mut known.usb
        } else {
            &mut known.network
        };
        // The Detached of a number that was replaced must not take the phone.
        if let Some(replaced) = std::mem::replace(link, Link::Here(number)).number() {
            self.numbers.remove(&replaced);
        }
        self.numbers.insert(number, udid);
    }

    fn pair(&mut self, number: MuxDeviceId) {
        tracing::debug!(%number, "paired");
        self.paired += 1;
        let paired = self.paired;
        if let Some(known) = self.by_number(number) {
            known.paired = paired;
        }
    }

    /// Removes a number, and the phone that has no other.
    fn forget(&mut self, number: MuxDeviceId) {
        let Some(udid) = self.numbers.remove(&number) else {
            return;
        };
        let Some(known) = self.devices.get_mut(&udid) else {
            return;
        };
        for link in known.links() {
            if link.number() == Some(number) {
                *link = Link::Absent;
            }
        }
        if known.is_gone() {
            self.devices.remove(&udid);
        }
    }

    /// Nothing that was announced can be relied on any more.
    fn fade(&mut self) {
        self.numbers.clear();
        for known in self.devices.values_mut() {
            known.links().into_iter().for_each(Link::fade);
        }
    }
}

#[cfg(test)]
mod tests;
