//! How TLS is spoken to a gateway: whom to trust, by which name it is known,
//! and by which certificate this side is.
//!
//! Invariant: a certificate is always verified, up to an authority that is
//! trusted and for the name that was asked for. There is no way around that.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// What a gateway must agree to speak.
const HTTP2: &[u8] = b"h2";

/// Everything that a connection needs.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// Where it comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources<'a> {
    /// The authorities to trust, as PEM; without it, those of the system.
    pub(super) ca: Option<&'a Path>,
    /// This side's certificate and key, as PEM.
    pub(super) identity: Option<(&'a Path, &'a Path)>,
    /// The name that the gateway's certificate must have.
    pub(super) name: &'a str,
}

impl Tls {
    /// Reads all of it.
    pub(super) fn new(sources: Sources<'_>) -> anyhow::Result<Self> {
        let roots = match sources.ca {
            Some(path) => roots_of(path)?,
            None => roots_of_the_system()?,
        };
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let mut config = match sources.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let secret = PrivateKeyDer::from_pem_file(key)
                    .with_context(|| format!("no private key in {}", key.display()))?;
                builder
                    .with_client_auth_cert(chain, secret)
                    .with_context(|| {
                        format!(
                            "{} and {} do not go together",
                            certificate.display(),
                            key.display()
                        )
                    })?
            }
        };
        config.alpn_protocols = vec![HTTP2.to_vec()];
        let name = ServerName::try_from(sources.name.to_owned())
            .with_context(|| format!("{:?} is no name of a server", sources.name))?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            name,
        })
    }

    /// Whoever makes connections, and the name that they are made to.
    pub(super) fn parts(&self) -> (TlsConnector, ServerName<'static>) {
        (self.connector.clone(), self.name.clone())
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn roots_of(path: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .with_context(|| format!("a certificate in {} cannot be used", path.display()))?;
    }
    Ok(roots)
}

fn roots_of_the_system() -> anyhow::Result<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Stores of systems have certificates that nothing can make sense of.
    let (added, _ignored) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first().map(ToString::to_string);
    Err(anyhow!(
        "this system has no certificates to trust ({}): name the gateway's authority with --ca",
        why.as_deref().unwrap_or("none were found")
    ))
}

fn certificates(path: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .collect();
    let found = found.with_context(|| format!("{} is no PEM file", path.display()))?;
    ensure!(!found.is_empty(), "no certificate in {}", path.display());
    Ok(found)
}
