//! The simulated lab against bytes written by hand.
//!
//! The lab shares its codecs with the gateway, so a mistake in them would
//! cancel out between the two. Nothing here encodes or decodes with them: what
//! goes in is spelled out from the specs, what comes back is read as bytes and
//! plain JSON.

#![expect(clippy::unwrap_used, reason = "a test fails where its expectations do")]

mod apps;
mod commands;
mod control;
mod faults;
mod framing;
mod gate;
mod journal;
mod launches;
mod lockdown;
mod oddities;
mod phones;
mod queue;
mod sockets;
mod strays;
mod usbmuxd;
mod wire;
