//! The two numbers of a `Connect`: which phone, and which port on it.

use std::fmt;
use std::num::NonZeroU16;

use crate::error::InvalidPort;

/// usbmuxd's number for one phone on one transport.
///
/// It means something only to the usbmuxd process that gave it, and only until
/// the phone is unplugged: a replug gives a new one, and a restarted usbmuxd may
/// give an old one to another phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MuxDeviceId(pub u32);

impl fmt::Display for MuxDeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A TCP port on a phone, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(NonZeroU16);

impl Port {
    /// Takes a port number as people write it.
    pub fn new(number: u64) -> Result<Self, InvalidPort> {
        let port = u16::try_from(number).ok().and_then(NonZeroU16::new);
        port.map(Self).ok_or(InvalidPort(number))
    }

    /// The port number as people write it.
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// Takes the integer of a `PortNumber` key.
    pub fn from_wire(wire: u64) -> Result<Self, InvalidPort> {
        // Swapping is its own inverse.
        Self::new(Self::new(wire)?.to_wire().into())
    }

    /// The integer of a `PortNumber` key: the port's two bytes in network order,
    /// read as a little-endian integer. 8100 becomes 42015.
    pub fn to_wire(self) -> u16 {
        self.get().swap_bytes()
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
