//! `[tls]`: the certificate that the server shows, and the ones that it asks
//! its callers for.
//!
//! Invariant: what [`TlsSection::files`] gives can be tried; whether the files
//! themselves are of use shows when they are read.

use std::path::PathBuf;

use serde::Deserialize;

/// `[tls]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSection {
    /// A PEM file with the server's certificate, and those between it and its
    /// authority. Read again when it changes. No default: the server speaks
    /// plain text.
    pub certificate: Option<PathBuf>,
    /// A PEM file with the certificate's private key. Read again when it
    /// changes.
    pub key: Option<PathBuf>,
    /// A PEM file with the authorities whose certificates callers may show. Read
    /// again when it changes.
    pub client_ca: Option<PathBuf>,
    /// Whether callers show a certificate. Default `off`.
    pub client_certificate: ClientCertificate,
}

/// Whether callers show a certificate of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientCertificate {
    /// They are not asked for one.
    #[default]
    Off,
    /// They may; one that no authority vouches for is refused all the same.
    Optional,
    /// No connection is served without one.
    Required,
}

/// The files of a server that speaks TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate and those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Whose certificates callers may show, if they are asked.
    pub clients: Option<ClientAuthorities>,
}

/// Who vouches for callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientAuthorities {
    /// The authorities.
    pub ca: PathBuf,
    /// Whether every caller must show a certificate.
    pub required: bool,
}

/// Keys of `[tls]` that do not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TlsDiscord {
    /// A certificate without its key.
    #[error("certificate of [tls] is of no use without key: set it to its private key's PEM file")]
    Key,
    /// A key without its certificate.
    #[error("key of [tls] is of no use without certificate: set it to its PEM file")]
    Certificate,
    /// Callers are to show certificates to a server that has none.
    #[error(
        "callers show certificates to a server with one only: set certificate and key of [tls], \
         too"
    )]
    Server,
    /// Nobody vouches for callers.
    #[error(
        "client_certificate of [tls] takes client_ca, the PEM file of the authorities that vouch \
         for callers"
    )]
    Authorities,
    /// Authorities that nobody is asked about.
    #[error(
        "client_ca of [tls] is of no use while client_certificate is off: set that to optional or \
         required"
    )]
    Unasked,
}

impl TlsSection {
    /// The files, if the server speaks TLS.
    pub fn files(&self) -> Result<Option<TlsFiles>, TlsDiscord> {
        let clients = match (&self.client_ca, self.client_certificate) {
            (None, ClientCertificate::Off) => None,
            (None, ClientCertificate::Optional | ClientCertificate::Required) => {
                return Err(TlsDiscord::Authorities);
            }
            (Some(_), ClientCertificate::Off) => return Err(TlsDiscord::Unasked),
            (Some(ca), ClientCertificate::Optional) => Some((ca, false)),
            (Some(ca), ClientCertificate::Required) => Some((ca, true)),
        };
        match (&self.certificate, &self.key) {
            (None, None) if clients.is_some() => Err(TlsDiscord::Server),
            (None, None) => Ok(None),
            (Some(_), None) => Err(TlsDiscord::Key),
            (None, Some(_)) => Err(TlsDiscord::Certificate),
            (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                clients: clients.map(|(ca, required)| ClientAuthorities {
                    ca: ca.clone(),
                    required,
                }),
            })),
        }
    }
}
