//! Async I/O to devices.
//!
//! Owns every connection: the one that listens to a usbmuxd and keeps the table
//! of its phones, any number of usbmuxds as one ([`Hosts`]), one connection per
//! command that becomes a pipe to a runner and carries one HTTP exchange
//! ([`RunnerExchange`], a `tower::Service` for the session), and those on which
//! a phone or its host is asked about the phone ([`Facts`], trust).
//!
//! ```text
//! RunnerExchange --connect--> Hosts --route--> Inventory <--events-- listen task
//!       |                       |                 (one of each per usbmuxd)
//!       +------ HTTP/1.1 ----- Pipe <--Connect-- Connection --Listen------+
//!       Facts -- lockdown ------+                    |
//!                                                  Dialer --> unix, TCP, or a test's duplex
//! ```
//!
//! It refuses to retry anything that may have reached a runner, to keep time
//! for a command (whoever awaits an exchange drops it when its window closes)
//! and to log what commands and replies hold.
//!
//! Invariants: a number that one usbmuxd process gave to a phone is never used
//! with another process; a phone is only ever connected to by cable; and when
//! a future of this crate is dropped, its socket is closed.

mod address;
mod backoff;
mod connection;
mod dialer;
mod error;
mod exchange;
mod facts;
mod hosts;
mod inventory;
mod listen;
mod pipe;
mod post;
mod usbmuxd;

#[cfg(test)]
mod tests;

pub use address::{Address, InvalidAddress};
pub use dialer::{BoxStream, Dialer, Stream};
pub use error::MuxError;
pub use exchange::RunnerExchange;
pub use facts::{Facts, FactsError};
pub use fleetgate_usbmux::MuxDeviceId;
pub use hosts::{HostConfig, HostState, Hosts, HostsTask, HostsView, Presence};
pub use inventory::Route;
pub use pipe::Pipe;
pub use usbmuxd::UsbmuxdConfig;
