//! The way in: what is spoken, who is known, and how it is found.
//!
//! ```text
//! new    may it be opened at all? ─► certificates ─► whom to know
//! open   listener ─► discovery record, or it is closed again
//! ```
//!
//! Invariant: nothing is listened to where others could reach it and it could not
//! tell them apart, and nobody has to look for a gateway that was to be found.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use fleetgate_identity::{
    Authenticator, IdentityError, InstanceRecord, Instances, LocalToken, Published,
};
use tonic::service::Routes;
use uuid::Uuid;

use super::StartError;
use crate::access::Access;
use crate::config::Config;
use crate::server::{Admission, Connections, Hosts, Limits, Service, Tls, TlsTask};

/// A door that is not open yet.
#[derive(Debug)]
pub(super) struct Door {
    authenticator: Authenticator,
    /// What programs of this user get in with, if they are to find it.
    local: Option<LocalToken>,
    tls: Option<(Tls, TlsTask)>,
}

impl Door {
    /// Reads what it takes.
    pub(super) async fn new(config: &Config) -> Result<Self, StartError> {
        if let Some(exposed) = config.exposure() {
            return Err(exposed.into());
        }
        let tls = match config.tls.files()? {
            Some(files) => Some(Tls::load(files).await?),
            None => None,
        };
        let local = config.auth.discovery.then(LocalToken::mint);
        let settings = config.auth.settings(local.clone())?;
        Ok(Self {
            authenticator: Authenticator::new(settings).map_err(StartError::Identity)?,
            local,
            tls,
        })
    }

    /// What it may be called.
    pub(super) fn hosts(&self, config: &Config) -> Hosts {
        let tls = self.tls.as_ref().map(|(tls, _)| tls.clone());
        Hosts::new(&config.server.hosts, tls)
    }

    /// Who is let in to what.
    pub(super) fn admission(&self, access: Access) -> Admission {
        Admission::new(self.authenticator.clone(), access)
    }

    /// Serves, and says where.
    pub(super) async fn open(
        self,
        config: &Config,
        routes: Routes,
        admission: Admission,
        runtime_dir: Option<PathBuf>,
    ) -> Result<(Connections, Option<Published>), StartError> {
        let address = config.server.listen.address();
        let hosts = self.hosts(config);
        let Self { local, tls, .. } = self;
        let vouched = |(tls, _): &(Tls, _)| tls.vouches_for_itself();
        let ca = config.tls.certificate.clone();
        let ca = ca.filter(|_| tls.as_ref().is_some_and(vouched));
        let is_tls = tls.is_some();
        let service = Service {
            routes,
            admission,
            hosts,
            tls,
        };
        let connections = Connections::serve(address, Limits::from(&config.server), service)
            .await
            .map_err(|source| StartError::Listen { address, source })?;
        let published = local.map(|token| {
            let address = reachable(connections.local_addr());
            let token = token.text().clone();
            let record = InstanceRecord {
                tls: is_tls,
                ca,
                ..InstanceRecord::of_this_process(Uuid::now_v7(), address, token)?
            };
            publish(&record, runtime_dir)
        });
        let published = published.transpose().map_err(StartError::Discovery)?;
        Ok((connections, published))
    }
}

/// Tells programs of this user where the gateway is and how they get in.
fn publish(
    record: &InstanceRecord,
    runtime_dir: Option<PathBuf>,
) -> Result<Published, IdentityError> {
    let instances = match runtime_dir {
        Some(directory) => Instances::at(directory),
        None => Instances::find()?,
    };
    instances.publish(record)
}

/// Where programs of this host reach a server that listens there.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_server_that_listens_everywhere_is_found_on_loopback() {
        let reachable = |address: &str| super::reachable(address.parse().unwrap()).to_string();
        assert_eq!(reachable("0.0.0.0:7700"), "127.0.0.1:7700");
        assert_eq!(reachable("[::]:7700"), "[::1]:7700");
        assert_eq!(reachable("127.0.0.1:1"), "127.0.0.1:1");
        assert_eq!(reachable("192.0.2.7:1"), "192.0.2.7:1");
    }
}
