//! Why a gateway does not start.
//!
//! Each says what can be done about it, where something can.

use std::io;
use std::net::SocketAddr;

use fleetgate_identity::IdentityError;
use fleetgate_launch::LaunchError;
use fleetgate_ledger::LedgerError;

use crate::config::{AuthDiscord, TlsDiscord};
use crate::leases::LeasesError;
use crate::metrics::MetricsError;
use crate::server::TlsError;

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Others could reach it, and it could not tell them apart.
    #[error(transparent)]
    Auth(#[from] AuthDiscord),
    /// Its certificates are of no use, or no certificates at all.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The keys of `[tls]` do not go together.
    #[error(transparent)]
    TlsFiles(#[from] TlsDiscord),
    /// What callers are known by cannot be used.
    #[error("callers cannot be known: {0}")]
    Identity(IdentityError),
    /// Programs of this host could not find the gateway.
    #[error(
        "the record by which programs of this user find the gateway cannot be written: {0}; set \
         FLEETGATE_RUNTIME_DIR to a directory that is this user's only, or discovery of [auth] to \
         false"
    )]
    Discovery(IdentityError),
    /// The ledger could not be opened.
    #[error("the ledger could not be opened: {0}")]
    Ledger(#[from] LedgerError),
    /// The leases that were open cannot be gone on with.
    #[error("leases: {0}")]
    Leases(#[from] LeasesError),
    /// Where launched runners are kept track of cannot be used.
    #[error("runners cannot be launched: {0}")]
    Launcher(#[from] LaunchError),
    /// The instruments could not be made.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// An address could not be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The descriptors that are compiled in could not be read.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
}
