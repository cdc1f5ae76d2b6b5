//! The gateways of this host and this user, as their discovery records have
//! them.
//!
//! Invariant: a token from a record goes to the address in that record and to no
//! other.

use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use anyhow::anyhow;
use fleetgate_identity::{IdentityError, InstanceRecord, Instances, Secret};

use super::server::Server;
use crate::exit::Misuse;

/// A gateway of this host that runs.
#[derive(Debug)]
pub(crate) struct Found(InstanceRecord);

impl Found {
    /// Where it is.
    pub(crate) fn server(&self) -> anyhow::Result<Server> {
        Server::at(self.0.address, self.0.tls).map_err(|error| anyhow!("{error}"))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.0.pid
    }

    /// Since when it listens.
    pub(crate) fn started(&self) -> SystemTime {
        self.0.started
    }

    /// What tells it from others that had its address.
    pub(crate) fn instance(&self) -> String {
        self.0.instance.to_string()
    }

    /// Whether it speaks TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.0.tls
    }

    /// The token for its own user.
    pub(super) fn token(&self) -> Secret {
        self.0.token.clone()
    }

    /// The authority that its certificate is from, if that is of its own.
    pub(super) fn ca(&self) -> Option<&Path> {
        self.0.ca.as_deref()
    }
}

/// All of them, in the order of their addresses.
pub(crate) fn running() -> Result<Vec<Found>, IdentityError> {
    let mut records = match Instances::find().and_then(|records| records.list()) {
        Ok(records) => records,
        // Where nothing can be published, nothing is.
        Err(IdentityError::NoDirectory) => Vec::new(),
        Err(error) => return Err(error),
    };
    records.sort_by_key(|record| record.address);
    Ok(records.into_iter().map(Found).collect())
}

/// The one at this place, if it is of this host and this user.
pub(super) fn at(server: &Server) -> Result<Option<Found>, IdentityError> {
    let found = running()?;
    Ok(found
        .into_iter()
        .find(|found| server.is_at(found.address())))
}

/// Whom to ask: the one that is named, or else the one that runs here, or else
/// whoever is at the usual place.
pub(super) fn resolve(named: Option<Server>) -> anyhow::Result<Server> {
    if let Some(server) = named {
        // Without a scheme, plain text is what is meant by default; one of this
        // host that speaks TLS is known to.
        let found = at(&server).ok().flatten();
        return match found.filter(|found| found.is_tls() && !server.is_tls()) {
            Some(found) => found.server(),
            None => Ok(server),
        };
    }
    let found = running()?;
    match found.as_slice() {
        [] => Server::usual().map_err(|error| anyhow!("{error}")),
        [one] => one.server(),
        several => {
            let several = several.iter().map(|found| {
                let server = found
                    .server()
                    .map_or_else(|_| found.address().to_string(), |server| server.to_string());
                format!("{server} (pid {})", found.pid())
            });
            let several: Vec<_> = several.collect();
            Err(Misuse(format!(
                "several gateways run on this host: say which by --server or FLEETGATE_SERVER: {}",
                several.join(", ")
            ))
            .into())
        }
    }
}
