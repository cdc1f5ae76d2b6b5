//! What the doctor looks at of who may call and who is trusted: the records of
//! gateways, the tokens, and the server's certificate, as far as they are on
//! this host. No secret is looked at.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use fleetgate_gateway::Config;
use fleetgate_identity::{TokenFile, TokenInfo};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::client::running;
use crate::report::in_words;

/// What was found.
#[derive(Debug)]
pub(super) struct Credentials {
    /// Why gateways of this host cannot be found, if they cannot.
    pub(super) records: Option<String>,
    /// Why a gateway with this configuration would not start, if it would not.
    pub(super) exposed: Option<String>,
    /// Where the tokens are.
    pub(super) tokens_path: PathBuf,
    /// Those that are in force, or why they cannot be read.
    pub(super) tokens: Result<Vec<TokenInfo>, String>,
    /// The server's certificate, if there is to be one.
    pub(super) certificate: Option<ServerCertificate>,
}

/// A certificate.
#[derive(Debug)]
pub(super) struct ServerCertificate {
    pub(super) path: PathBuf,
    /// When it ends, or why that cannot be told.
    pub(super) expires: Result<SystemTime, String>,
}

/// All that this configuration names.
pub(super) fn look(config: &Config, now: SystemTime) -> Credentials {
    let tokens_path = config.auth.tokens_path();
    let tokens = TokenFile::at(&tokens_path).list();
    Credentials {
        records: running().err().map(|error| in_words(&error.into())),
        exposed: config.exposure().map(|exposed| exposed.to_string()),
        tokens: tokens
            .map(|tokens| {
                let in_force = |token: &TokenInfo| token.is_in_force(now);
                tokens.into_iter().filter(in_force).collect()
            })
            .map_err(|error| in_words(&error.into())),
        tokens_path,
        certificate: config
            .tls
            .certificate
            .as_ref()
            .map(|path| ServerCertificate {
                path: path.clone(),
                expires: expires(path).map_err(|error| in_words(&error)),
            }),
    }
}

/// When the first certificate of a PEM file ends.
fn expires(path: &Path) -> anyhow::Result<SystemTime> {
    let der = CertificateDer::from_pem_file(path).context("no certificate is in it")?;
    let certificate = Certificate::from_der(&der).context("its certificate cannot be read")?;
    let validity = certificate.tbs_certificate().validity();
    Ok(validity.not_after.to_system_time())
}
