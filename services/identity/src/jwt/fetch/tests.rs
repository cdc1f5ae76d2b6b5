//! Keys over TLS: only from whom the host trusts.

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;
use crate::jwks::JwksSource;

fn certificate(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).unwrap()
}

/// A server that answers everybody who finishes the handshake.
async fn serve(certificate: &CertifiedKey<KeyPair>) -> (u16, JoinSet<()>) {
    let chain = vec![certificate.cert.der().clone()];
    let key = PrivateKeyDer::Pkcs8(certificate.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut task = JoinSet::new();
    task.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nkeys";
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    (port, task)
}

fn trusting(port: u16, certificates: &[&CertificateDer<'static>]) -> Fetch {
    let source: JwksSource = format!("https://localhost:{port}/keys").parse().unwrap();
    let JwksSource::Url(url) = source else {
        panic!("{source} is no URL");
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add((*certificate).clone()).unwrap();
    }
    Fetch::trusting(url, roots).unwrap()
}

#[tokio::test]
async fn keys_come_from_a_server_that_is_trusted() {
    let certificate = certificate("localhost");
    let (port, _task) = serve(&certificate).await;
    let got = trusting(port, &[certificate.cert.der()]).get().await;
    assert_eq!(got.unwrap(), "keys");
}

#[tokio::test]
async fn a_server_that_is_not_trusted_or_has_another_name_is_not_asked() {
    let (there, stranger) = (certificate("localhost"), certificate("localhost"));
    let (port, _task) = serve(&there).await;
    let refused = trusting(port, &[stranger.cert.der()]).get().await;
    assert!(matches!(refused, Err(FetchError::Io(_))), "{refused:?}");
    let misnamed = certificate("other.example");
    let (port, _task) = serve(&misnamed).await;
    let refused = trusting(port, &[misnamed.cert.der()]).get().await;
    assert!(matches!(refused, Err(FetchError::Io(_))), "{refused:?}");
}

#[test]
fn a_host_that_trusts_nobody_can_fetch_nothing() {
    let source: JwksSource = "https://localhost/keys".parse().unwrap();
    let JwksSource::Url(url) = source else {
        panic!("{source} is no URL");
    };
    assert!(Fetch::trusting(url, RootCertStore::empty()).is_err());
}
