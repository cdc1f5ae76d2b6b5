//! Fetches keys from a URL.
//!
//! Owns one GET: at most five seconds, at most 256 KiB. Follows no redirect,
//! sends no credentials, and trusts what the host trusts (`SSL_CERT_FILE` and
//! `SSL_CERT_DIR` say otherwise).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::keys::NotKeys;
use crate::error::IdentityError;
use crate::jwks::JwksUrl;

pub(super) const MAX_SIZE: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// Why keys cannot be had.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("cannot read or connect: {0}")]
    Io(#[from] io::Error),
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("the HTTP exchange failed: {0}")]
    Http(#[from] hyper::Error),
    #[error("the answer is of status {0}")]
    Status(StatusCode),
    #[error("anybody on this host can write to it: run `chmod o-w` on it")]
    Anybodys,
    #[error("it is larger than {MAX_SIZE} bytes")]
    TooLarge,
    #[error("the answer ended before its time")]
    Cut,
    #[error(transparent)]
    Keys(#[from] NotKeys),
}

/// A URL, and how it is reached.
pub(super) struct Fetch {
    url: JwksUrl,
    host: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Fetch {
    pub(super) fn new(url: JwksUrl) -> Result<Self, IdentityError> {
        let roots = if url.is_tls() {
            trusted()
        } else {
            RootCertStore::empty()
        };
        Self::trusting(url, roots)
    }

    pub(super) fn trusting(url: JwksUrl, roots: RootCertStore) -> Result<Self, IdentityError> {
        let refused = |reason: String| IdentityError::Setting {
            what: "the place of the keys",
            value: url.uri().to_string(),
            reason,
        };
        let tls = if url.is_tls() {
            if roots.is_empty() {
                let reason = "this host has no certificates of authorities by which a server could be verified";
                return Err(refused(reason.to_owned()));
            }
            let name = ServerName::try_from(url.host().to_owned());
            let name = name.map_err(|error| refused(error.to_string()))?;
            let config = ClientConfig::builder_with_provider(ring::default_provider().into())
                .with_safe_default_protocol_versions()
                .map_err(|error| refused(error.to_string()))?
                .with_root_certificates(roots)
                .with_no_client_auth();
            Some((TlsConnector::from(Arc::new(config)), name))
        } else {
            None
        };
        let authority = url.uri().authority();
        let host = authority.map_or_else(String::new, ToString::to_string);
        Ok(Self { url, host, tls })
    }

    /// Asks once.
    pub(super) async fn get(&self) -> Result<Bytes, FetchError> {
        let got = time::timeout(PATIENCE, self.ask()).await;
        got.map_err(|_| FetchError::Late)?
    }

    async fn ask(&self) -> Result<Bytes, FetchError> {
        let tcp = TcpStream::connect((self.url.host(), self.url.port())).await?;
        match &self.tls {
            Some((tls, name)) => self.exchange(tls.connect(name.clone(), tcp).await?).await,
            None => self.exchange(tcp).await,
        }
    }

    async fn exchange<S>(&self, stream: S) -> Result<Bytes, FetchError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let path = self.url.uri().path_and_query();
        let request = Request::get(path.map_or("/", |path| path.as_str()))
            .header(HOST, &self.host)
            .header(ACCEPT, "application/json, application/jwk-set+json")
            .header(USER_AGENT, concat!("fleetgate/", env!("CARGO_PKG_VERSION")))
            .body(Empty::<Bytes>::new())
            .map_err(io::Error::other)?;
        let answer = async {
            let answer = sender.send_request(request).await?;
            if answer.status() != StatusCode::OK {
                return Err(FetchError::Status(answer.status()));
            }
            let body = Limited::new(answer.into_body(), MAX_SIZE).collect().await;
            let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
                Ok(error) => FetchError::Http(*error),
                Err(error) if error.is::<LengthLimitError>() => FetchError::TooLarge,
                Err(error) => FetchError::Io(io::Error::other(error)),
            })?;
            Ok(body.to_bytes())
        };
        tokio::pin!(answer, connection);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            ended = &mut connection => {
                ended?;
                // All that there was is read: the answer is complete, or it
                // never will be.
                tokio::select! {
                    biased;
                    answer = answer => answer,
                    () = std::future::ready(()) => Err(FetchError::Cut),
                }
            }
        }
    }
}

/// The authorities that this host trusts. What cannot be read of them is left
/// out: a chain that needs it is refused later.
fn trusted() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some certificates of this host's authorities cannot be read");
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    roots
}

#[cfg(test)]
mod tests;
