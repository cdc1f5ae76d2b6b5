//! Fleetgate's gRPC service.
//!
//! Owns what is between a client's bytes and a device's session: the server,
//! who may call what, the conversion of every message to and from the domain, the
//! mapping of every failure to a status, the fleet's roster, and the
//! configuration of it all.
//!
//! It refuses to send anything to a phone by itself, to decide what a failure
//! proves (the session does) and to know SQL (the ledger does).
//!
//! Invariant: a handler may be dropped at any await without a loss but that of
//! its own answer.

mod access;
mod admin;
mod automation_service;
mod chronicle;
mod claim;
pub mod config;
mod convert;
mod core;
mod deadline;
mod feed;
mod fleet;
mod fleet_service;
mod gateway;
mod kept;
mod lease_service;
mod leases;
mod ledger_service;
mod metrics;
mod pending;
mod recorder;
mod screenshot;
mod server;
mod status;
mod tail;
mod watch;

pub use access::{Row, Rule, TABLE};
pub use config::{Config, ConfigError};
pub use gateway::{Drained, Gateway, Overrides, StartError};
pub use leases::{LeasesError, UnreadableLease};
pub use metrics::MetricsError;
pub use server::TlsError;

/// Looking at a ledger's file from outside of a gateway.
pub mod ledger {
    pub use fleetgate_ledger::{Fault, Head, LedgerError, VerifyReport, verify};
}
