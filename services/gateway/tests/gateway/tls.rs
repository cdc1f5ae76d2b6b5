//! TLS on a real socket: what is spoken, what certificates are worth, and what
//! becomes of them when they change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use fleetgate_gateway::{Gateway, StartError};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tonic::body::Body;
use tonic::{Code, Status};
use tower::service_fn;

use crate::guarded::{Guarded, config, findable, overrides, pause, soon};
use crate::support::reason;

mod callers;
mod pki;

use pki::{Authority, Pair};

/// The server's files.
struct Files(PathBuf);

impl Files {
    /// In the directory of a gateway.
    fn of(directory: &TempDir) -> Self {
        Self(directory.path().to_owned())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Puts a pair in the place of what is there, one file after the other.
    fn put(&self, pair: &Pair) {
        replace(&self.at("certificate.pem"), &pair.certificate);
        replace(&self.at("key.pem"), &pair.key);
    }

    fn section(&self) -> String {
        format!(
            "tls.certificate = \"{}\"\ntls.key = \"{}\"\n",
            self.at("certificate.pem").display(),
            self.at("key.pem").display()
        )
    }

    /// The same, with callers' certificates asked for.
    fn asking(&self, authority: &Authority, how: &str) -> String {
        replace(&self.at("clients.pem"), &authority.pem);
        format!(
            "{}tls.client_ca = \"{}\"\ntls.client_certificate = \"{how}\"\n",
            self.section(),
            self.at("clients.pem").display()
        )
    }
}

/// As programs replace a file.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

/// A gateway that shows this pair; `more` is what is added to its section.
async fn start(pair: &Pair, more: impl FnOnce(&Files) -> String) -> (Guarded, Files) {
    let directory = tempfile::tempdir().unwrap();
    let files = Files::of(&directory);
    files.put(pair);
    let more = more(&files);
    let guarded = Guarded::start_in(directory, |directory| config(directory, &more)).await;
    (guarded, files)
}

/// A connection of a client that trusts one authority and shows this.
async fn connect(
    gateway: &Gateway,
    trusted: &Authority,
    name: &str,
    shown: Option<&Pair>,
    protocol: &[u8],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(trusted.pem.as_bytes()).unwrap();
    roots.add(authority).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some(Pair { certificate, key }) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            config
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(gateway.local_addr()).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let stream = soon("a handshake", connecting).await?;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    Ok(stream)
}

/// One look at the gateway over such a connection, by a caller that says this.
async fn look(stream: TlsStream<TcpStream>, says: Option<&str>) -> Result<String, Status> {
    let broken = |error: hyper::Error| Status::unavailable(error.to_string());
    let handshake = http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = soon("HTTP/2", handshake).await.map_err(broken)?;
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let says = says.map(|says| says.parse::<http::HeaderValue>().unwrap());
    let service = service_fn(move |mut request: Request<Body>| {
        if let Some(says) = &says {
            request.headers_mut().insert("authorization", says.clone());
        }
        sender.clone().send_request(request)
    });
    let origin = Uri::from_static("https://gateway.lab");
    let mut client = FleetServiceClient::with_origin(service, origin);
    let gateway = client.get_gateway(pb::GetGatewayRequest {});
    Ok(soon("an answer", gateway).await?.into_inner().version)
}

/// The certificate that is shown to a new connection.
async fn shown(gateway: &Gateway, trusted: &Authority) -> CertificateDer<'static> {
    let stream = connect(gateway, trusted, "gateway.lab", None, b"h2")
        .await
        .unwrap();
    let (_, session) = stream.get_ref();
    session.peer_certificates().unwrap()[0].clone()
}

#[tokio::test]
async fn grpc_is_spoken_over_tls_and_plain_text_is_not() {
    let authority = Authority::new("lab");
    let pair = authority.server(&["gateway.lab"]);
    let (guarded, _files) = start(&pair, Files::section).await;
    let stream = connect(&guarded.gateway, &authority, "gateway.lab", None, b"h2")
        .await
        .unwrap();
    let version = look(stream, Some(&guarded.admin)).await.unwrap();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    let stream = connect(&guarded.gateway, &authority, "gateway.lab", None, b"h2")
        .await
        .unwrap();
    let status = look(stream, None).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::Unauthenticated, "CREDENTIALS_MISSING".to_owned())
    );
    // Neither a stranger's authority nor another name will do.
    let stranger = Authority::new("stranger");
    for (trusted, name) in [(&stranger, "gateway.lab"), (&authority, "other.lab")] {
        let error = connect(&guarded.gateway, trusted, name, None, b"h2")
            .await
            .unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    let plain = TcpStream::connect(guarded.gateway.local_addr())
        .await
        .unwrap();
    let (mut sender, connection) = http1::handshake::<_, Full<Bytes>>(TokioIo::new(plain))
        .await
        .unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = Request::get("/")
        .header("host", "gateway.lab")
        .body(Full::default())
        .unwrap();
    soon("a refusal", sender.send_request(request))
        .await
        .unwrap_err();
    guarded.gateway.shutdown().await;
}

/// A call from a page of this host, over HTTP/1.1.
async fn from_page(guarded: &Guarded, authority: &Authority, host: &str) -> Response<Bytes> {
    let stream = connect(
        &guarded.gateway,
        authority,
        "gateway.lab",
        None,
        b"http/1.1",
    );
    let stream = TokioIo::new(stream.await.unwrap());
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = Request::post("/fleetgate.v1.FleetService/GetGateway")
        .header("host", host)
        .header("origin", format!("https://{host}"))
        .header("authorization", &guarded.admin)
        .header("content-type", "application/grpc-web+proto")
        .body(Full::new(Bytes::from_static(&[0; 5])))
        .unwrap();
    let (head, body) = soon("an answer", sender.send_request(request))
        .await
        .unwrap()
        .into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn pages_reach_it_by_the_names_of_its_certificate_and_those_that_are_set() {
    let authority = Authority::new("lab");
    let pair = authority.server(&["gateway.lab", "*.racks.lab", "192.0.2.7"]);
    let hosts = "server.hosts = [\"also.lab\"]\n";
    let (guarded, _files) = start(&pair, |files| format!("{}{hosts}", files.section())).await;
    for host in [
        "gateway.lab",
        "Gateway.LAB:7700",
        "a.racks.lab",
        "192.0.2.7",
        "also.lab",
        "127.0.0.1",
    ] {
        let answer = from_page(&guarded, &authority, host).await;
        assert_eq!(answer.status(), StatusCode::OK, "{host}");
        let text = String::from_utf8_lossy(answer.body());
        assert!(text.contains("grpc-status:0"), "{host}: {text}");
    }
    for host in [
        "evil.example",
        "gateway.lab.evil.example",
        "a.b.racks.lab",
        "192.0.2.8",
    ] {
        let answer = from_page(&guarded, &authority, host).await;
        assert_eq!(answer.status(), StatusCode::FORBIDDEN, "{host}");
        let names = answer.headers().keys().map(http::HeaderName::as_str);
        assert!(
            !names
                .into_iter()
                .any(|name| name.starts_with("access-control")),
            "{host}"
        );
    }
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn a_new_certificate_is_shown_without_a_restart() {
    let authority = Authority::new("lab");
    let first = authority.server(&["gateway.lab"]);
    let (guarded, files) = start(&first, Files::section).await;
    let becomes = async |wanted: &Pair| {
        while shown(&guarded.gateway, &authority).await != wanted.der() {
            pause().await;
        }
    };
    assert_eq!(shown(&guarded.gateway, &authority).await, first.der());
    let old = connect(&guarded.gateway, &authority, "gateway.lab", None, b"h2")
        .await
        .unwrap();
    let second = authority.server(&["gateway.lab"]);
    files.put(&second);
    soon("the second", becomes(&second)).await;
    look(old, Some(&guarded.admin)).await.unwrap();

    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn whoever_does_not_agree_on_tls_keeps_nobody_waiting() {
    let authority = Authority::new("lab");
    let pair = authority.server(&["gateway.lab"]);
    let (guarded, _files) = start(&pair, Files::section).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(
            TcpStream::connect(guarded.gateway.local_addr())
                .await
                .unwrap(),
        );
    }
    let stream = connect(&guarded.gateway, &authority, "gateway.lab", None, b"h2")
        .await
        .unwrap();
    look(stream, Some(&guarded.admin)).await.unwrap();
    // Nor does the end wait for them.
    let drained = soon("the end", guarded.gateway.shutdown()).await;
    assert_eq!(drained, fleetgate_gateway::Drained::Clean);
    drop(silent);
}

#[tokio::test]
async fn certificates_that_are_of_no_use_keep_the_gateway_from_starting() {
    let authority = Authority::new("lab");
    let (one, other) = (
        authority.server(&["gateway.lab"]),
        authority.server(&["gateway.lab"]),
    );
    let mixed = Pair {
        certificate: one.certificate.clone(),
        key: other.key.clone(),
    };
    let empty = Pair {
        certificate: String::new(),
        key: one.key.clone(),
    };
    let keyless = Pair {
        certificate: one.certificate.clone(),
        key: one.certificate.clone(),
    };
    for (pair, word) in [
        (mixed, "key.pem"),
        (empty, "certificate.pem"),
        (keyless, "key.pem"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::of(&directory);
        files.put(&pair);
        let config = config(&directory, &files.section());
        let error = Gateway::start(config, overrides(&directory))
            .await
            .unwrap_err();
        assert!(matches!(error, StartError::Tls(_)), "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory, &Files::of(&directory).section());
    let error = Gateway::start(config, overrides(&directory))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("certificate.pem"), "{error}");
}

#[tokio::test]
async fn the_discovery_record_tells_of_tls_and_whom_to_trust_if_the_file_says() {
    let authority = Authority::new("lab");
    let alone = authority.server(&["gateway.lab"]);
    let chain = Pair {
        certificate: format!("{}{}", alone.certificate, authority.pem),
        key: alone.key.clone(),
    };
    for (pair, is_told) in [(&alone, false), (&chain, true)] {
        let directory = tempfile::tempdir().unwrap();
        let files = Files::of(&directory);
        files.put(pair);
        let section = files.section();
        let guarded = Guarded::start_in(directory, |directory| findable(directory, &section)).await;
        let record = guarded.instances().list().unwrap().remove(0);
        assert!(record.tls);
        let ca = is_told.then(|| files.at("certificate.pem"));
        assert_eq!(record.ca, ca);
        guarded.gateway.shutdown().await;
    }
}

#[tokio::test]
async fn a_denial_over_tls_tells_where_it_came_from() {
    let authority = Authority::new("lab");
    let (guarded, _files) = start(&authority.server(&["gateway.lab"]), Files::section).await;
    let stream = connect(&guarded.gateway, &authority, "gateway.lab", None, b"h2")
        .await
        .unwrap();
    let address = stream.get_ref().0.local_addr().unwrap().to_string();
    look(stream, None).await.unwrap_err();
    let entries = guarded.end().await;
    assert_eq!(entries[0].operation.detail["address"], address);
}
