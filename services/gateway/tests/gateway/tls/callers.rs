//! Callers who show a certificate.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use http::Uri;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::service_fn;

use super::pki::{Authority, Pair};
use super::{connect, look, start};
use crate::guarded::soon;
use crate::support::reason;

#[tokio::test]
async fn a_callers_certificate_says_who_it_is_where_one_may_be_shown() {
    let (lab, callers) = (Authority::new("lab"), Authority::new("callers"));
    let rules = "[[auth.certificate]]\nuri = \"spiffe://lab/scheduler\"\nname = \"scheduler\"\n\
                 role = \"viewer\"\n";
    let pair = lab.server(&["gateway.lab"]);
    let (guarded, _files) = start(&pair, |files| {
        format!("{}{rules}", files.asking(&callers, "optional"))
    })
    .await;
    let gateway = &guarded.gateway;
    let by = async |pair: Option<&Pair>, says: Option<&str>| {
        let stream = connect(gateway, &lab, "gateway.lab", pair, b"h2").await;
        look(stream.unwrap(), says).await
    };
    let scheduler = callers.client("scheduler");
    by(Some(&scheduler), None).await.unwrap();
    by(None, Some(&guarded.admin)).await.unwrap();
    by(Some(&callers.client("unknown")), Some(&guarded.admin))
        .await
        .unwrap();
    let nobody = by(None, None).await.unwrap_err();
    assert_eq!(
        reason(&nobody),
        (Code::Unauthenticated, "CREDENTIALS_MISSING".to_owned())
    );
    let unknown = by(Some(&callers.client("unknown")), None)
        .await
        .unwrap_err();
    assert_eq!(
        reason(&unknown),
        (Code::Unauthenticated, "CREDENTIALS_INVALID".to_owned())
    );
    // One that no authority of callers vouches for is worth less than none.
    by(Some(&lab.client("scheduler")), Some(&guarded.admin))
        .await
        .unwrap_err();

    let stream = connect(gateway, &lab, "gateway.lab", Some(&scheduler), b"h2")
        .await
        .unwrap();
    let denied = drain(stream).await;
    assert_eq!(
        reason(&denied),
        (Code::PermissionDenied, "ROLE_TOO_LOW".to_owned())
    );
    let who: Vec<_> = guarded
        .end()
        .await
        .into_iter()
        .map(|entry| entry.operation.who)
        .collect();
    assert_eq!(who, ["anonymous", "anonymous", "cert:scheduler"]);
}

/// Asks for the end of the gateway, in vain.
async fn drain(stream: TlsStream<TcpStream>) -> Status {
    let handshake = http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = handshake.await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let service = service_fn(move |request| sender.clone().send_request(request));
    let mut client =
        FleetServiceClient::with_origin(service, Uri::from_static("https://gateway.lab"));
    let asked = client.drain_gateway(pb::DrainGatewayRequest::default());
    soon("an answer", asked).await.unwrap_err()
}

#[tokio::test]
async fn where_a_certificate_is_required_nobody_gets_in_without() {
    let (lab, callers) = (Authority::new("lab"), Authority::new("callers"));
    let pair = lab.server(&["gateway.lab"]);
    let (guarded, _files) = start(&pair, |files| files.asking(&callers, "required")).await;
    let gateway = &guarded.gateway;
    let by = async |pair: Option<&Pair>| {
        // The client ends its side of the handshake before it hears of this.
        let stream = connect(gateway, &lab, "gateway.lab", pair, b"h2").await;
        match stream {
            Ok(stream) => look(stream, Some(&guarded.admin)).await.is_ok(),
            Err(_) => false,
        }
    };
    assert!(!by(None).await);
    assert!(!by(Some(&lab.client("scheduler"))).await);
    assert!(by(Some(&callers.client("anybody"))).await);
    guarded.gateway.shutdown().await;
}
