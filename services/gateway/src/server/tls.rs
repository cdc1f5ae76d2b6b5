//! TLS: what the server shows, what it asks callers to show, and how both are
//! replaced while it serves.
//!
//! ```text
//! files ─ at the start ─► loaded, or no server
//!   └─── looked at every second ─► changed ─► loaded ─► new connections
//!                                        └─► of no use: warned of, the old stay
//! ```
//!
//! A connection keeps what it began with, but for the authorities of callers: one
//! whose caller has shown a certificate takes no new call when they change, and
//! its streams end. Nothing of a connection outlives it: sessions are not
//! resumed, so that an authority that is taken away vouches for no new connection.
//!
//! Invariant: files that are of no use change nothing once a server serves.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::fs;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{error::Elapsed, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::{
    ClientCertVerifierBuilder, NoServerSessionStorage, ParsedCertificate, VerifierBuilderError,
    WebPkiClientVerifier,
};
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::server::TlsStream;
use tracing::{Instrument, info, info_span, warn};

use crate::config::{ClientAuthorities, TlsFiles};

/// How often the files are looked at.
const GLANCE: Duration = Duration::from_secs(1);

/// How long a caller may take to agree on TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// What is spoken over TLS.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Why a file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not what it is to be.
    #[error("{}: expected {expected} in PEM: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is to be in it.
        expected: &'static str,
        /// Why it is not.
        source: pem::Error,
    },
    /// The certificate and its key cannot be used, or not with each other.
    #[error("{} and {}: {source}", certificate.display(), key.display())]
    Pair {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// An authority's certificate cannot be used.
    #[error("{}: {source}", path.display())]
    Authority {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The authorities as a whole cannot.
    #[error("{}: {source}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// Why.
        source: VerifierBuilderError,
    },
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoHandshake {
    #[error("the caller did not agree on TLS in time")]
    Late(#[from] Elapsed),
    #[error(transparent)]
    Failed(#[from] io::Error),
}

/// The certificate that a caller has shown, in DER. An authority of ours vouched
/// for it when the connection began.
#[derive(Debug, Clone)]
pub(crate) struct PeerCertificate {
    der: Arc<CertificateDer<'static>>,
    authorities: Authorities,
    now: Tls,
}

/// Who vouches for callers.
type Authorities = Arc<[CertificateDer<'static>]>;

impl PeerCertificate {
    /// Its bytes.
    pub(crate) fn der(&self) -> &[u8] {
        self.der.as_ref()
    }

    /// Whether the authorities of callers are others by now.
    pub(super) fn is_disowned(&self) -> bool {
        self.now.0.borrow().authorities != self.authorities
    }

    /// Waits until they are.
    pub(super) async fn disowned(&mut self) {
        let Self {
            authorities, now, ..
        } = self;
        let changed = now.0.wait_for(|now| now.authorities != *authorities);
        if changed.await.is_err() {
            // The files are not looked at any more: the server ends.
            std::future::pending::<()>().await;
        }
    }
}

/// TLS as it is now. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Tls(watch::Receiver<Arc<Loaded>>);

/// The task that looks at the files; it ends with this.
#[derive(Debug)]
pub(crate) struct TlsTask {
    _watching: JoinSet<()>,
}

/// What the files come to.
#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    /// The server's own, and those of its file that vouch for it.
    certificates: Vec<CertificateDer<'static>>,
    authorities: Authorities,
}

impl Tls {
    /// Reads the files, and again whenever they change.
    pub(crate) async fn load(files: TlsFiles) -> Result<(Self, TlsTask), TlsError> {
        // Before the files are read: what changes meanwhile is read again.
        let seen = seen(&files).await;
        let (sender, current) = watch::channel(Arc::new(load(&files).await?));
        let watcher = Watcher {
            files,
            seen,
            failed: None,
            current: sender,
        };
        let mut watching = JoinSet::new();
        watching.spawn(watcher.run().instrument(info_span!("tls")));
        let task = TlsTask {
            _watching: watching,
        };
        Ok((Self(current), task))
    }

    /// Agrees on TLS with a caller.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
    ) -> Result<(TlsStream<TcpStream>, Option<PeerCertificate>), NoHandshake> {
        let loaded = Arc::clone(&self.0.borrow());
        let config = Arc::clone(&loaded.config);
        let stream = timeout(HANDSHAKE, TlsAcceptor::from(config).accept(stream)).await??;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        let certificate = certificate.map(|shown| PeerCertificate {
            der: Arc::new(shown.clone()),
            authorities: Arc::clone(&loaded.authorities),
            now: self.clone(),
        });
        Ok((stream, certificate))
    }

    /// Whether the certificate's own file has an authority that vouches for it,
    /// so that it is all that a caller has to trust.
    pub(crate) fn vouches_for_itself(&self) -> bool {
        let loaded = Arc::clone(&self.0.borrow());
        let Some((own, others)) = loaded.certificates.split_first() else {
            return false;
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(loaded.certificates.iter().cloned());
        let algorithms = ring::default_provider().signature_verification_algorithms;
        ParsedCertificate::try_from(own).is_ok_and(|own| {
            let (roots, now) = (&roots, UnixTime::now());
            verify_server_cert_signed_by_trust_anchor(&own, roots, others, now, algorithms.all)
                .is_ok()
        })
    }

    /// Whether the server's certificate is that of this host.
    pub(super) fn is_named(&self, host: &str) -> bool {
        let loaded = Arc::clone(&self.0.borrow());
        let Ok(name) = ServerName::try_from(host) else {
            return false;
        };
        loaded.certificates.first().is_some_and(|own| {
            let own = ParsedCertificate::try_from(own);
            own.is_ok_and(|own| verify_server_name(&own, &name).is_ok())
        })
    }
}

/// The one that looks at the files.
#[derive(Debug)]
struct Watcher {
    files: TlsFiles,
    /// What the files were when they were last of use.
    seen: Vec<Option<Mark>>,
    /// What was wrong with them since.
    failed: Option<String>,
    current: watch::Sender<Arc<Loaded>>,
}

impl Watcher {
    async fn run(mut self) {
        loop {
            sleep(GLANCE).await;
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let now = seen(&self.files).await;
        if now == self.seen {
            self.failed = None;
            return;
        }
        // One file may be replaced a moment before another, so that what is of
        // no use now is tried again although nothing has changed.
        match load(&self.files).await {
            Ok(loaded) => {
                self.current.send_replace(Arc::new(loaded));
                self.seen = now;
                self.failed = None;
                info!(certificate = %self.files.certificate.display(), "certificates reloaded");
            }
            Err(error) => {
                let error = error.to_string();
                if self.failed.as_ref() != Some(&error) {
                    warn!(
                        error,
                        "changed certificates are of no use, the old ones stay"
                    );
                }
                self.failed = Some(error);
            }
        }
    }
}

/// What changes when a file does.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<Metadata> for Mark {
    fn from(file: Metadata) -> Self {
        Self {
            inode: file.ino(),
            length: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

async fn seen(files: &TlsFiles) -> Vec<Option<Mark>> {
    let clients = files.clients.as_ref().map(|clients| &clients.ca);
    let mut seen = Vec::new();
    for path in [&files.certificate, &files.key].into_iter().chain(clients) {
        seen.push(fs::metadata(path).await.ok().map(Mark::from));
    }
    seen
}

async fn load(files: &TlsFiles) -> Result<Loaded, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let pair = |source| TlsError::Pair {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        source,
    };
    let certificates = certificates(&files.certificate).await?;
    let key = PrivateKeyDer::from_pem_slice(&read(&files.key).await?);
    let key = key.map_err(|source| TlsError::Malformed {
        path: files.key.clone(),
        expected: "a private key",
        source,
    })?;
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(pair)?;
    let mut authorities = Authorities::default();
    let config = match &files.clients {
        None => config.with_no_client_auth(),
        Some(clients) => {
            authorities = self::certificates(&clients.ca).await?.into();
            let verifier = verifier(clients, &authorities, provider)?;
            let verifier = verifier.build().map_err(|source| TlsError::Authorities {
                path: clients.ca.clone(),
                source,
            })?;
            config.with_client_cert_verifier(verifier)
        }
    };
    let config = config.with_single_cert(certificates.clone(), key);
    let mut config = config.map_err(pair)?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Loaded {
        config: Arc::new(config),
        certificates,
        authorities,
    })
}

fn verifier(
    clients: &ClientAuthorities,
    authorities: &[CertificateDer<'static>],
    provider: Arc<CryptoProvider>,
) -> Result<ClientCertVerifierBuilder, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots
            .add(authority.clone())
            .map_err(|source| TlsError::Authority {
                path: clients.ca.clone(),
                source,
            })?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    Ok(if clients.required {
        verifier
    } else {
        verifier.allow_unauthenticated()
    })
}

async fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path).await?;
    let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
    let malformed = |source| TlsError::Malformed {
        path: path.to_owned(),
        expected: "certificates",
        source,
    };
    let certificates = certificates.map_err(malformed)?;
    if certificates.is_empty() {
        return Err(malformed(pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

async fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).await.map_err(|source| TlsError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
