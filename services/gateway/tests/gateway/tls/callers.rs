//! Callers who show a certificate.

use std::time::{Duration, SystemTime};

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
use super::{connect, look, replace, start};
use crate::guarded::{pause, soon};
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
    assert_eq!(who, ["unknown", "unknown", "cert:scheduler"]);
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

const RULES: &str = "[[auth.certificate]]\nuri = \"spiffe://lab/scheduler\"\n\
                     name = \"scheduler\"\nrole = \"viewer\"\n";

type Spoken = JoinSet<hyper::Result<()>>;

/// Speaks HTTP/2 over a connection, until what comes with it has ended.
async fn speak(stream: TlsStream<TcpStream>) -> (http2::SendRequest<Body>, Spoken) {
    let handshake = http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(stream));
    let (sender, connection) = soon("HTTP/2", handshake).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    (sender, connections)
}

macro_rules! client {
    ($sender:ident) => {{
        let service = service_fn(move |request| $sender.clone().send_request(request));
        FleetServiceClient::with_origin(service, Uri::from_static("https://gateway.lab"))
    }};
}

#[tokio::test]
async fn a_connection_outlasts_the_certificate_that_it_began_with_and_its_caller_does_not() {
    let (lab, callers) = (Authority::new("lab"), Authority::new("callers"));
    let pair = lab.server(&["gateway.lab"]);
    let (guarded, _files) = start(&pair, |files| {
        format!("{}{RULES}", files.asking(&callers, "required"))
    })
    .await;
    let soon_over = SystemTime::now() + Duration::from_secs(3);
    let shown = callers.client_until("scheduler", soon_over);
    let stream = connect(&guarded.gateway, &lab, "gateway.lab", Some(&shown), b"h2").await;
    let (sender, _connection) = speak(stream.unwrap()).await;
    let mut client = client!(sender);
    client.get_gateway(pb::GetGatewayRequest {}).await.unwrap();
    let refused = async {
        loop {
            match client.get_gateway(pb::GetGatewayRequest {}).await {
                Ok(_) => pause().await,
                Err(status) => break status,
            }
        }
    };
    let refused = soon("the end of the certificate", refused).await;
    let expired = (Code::Unauthenticated, "CREDENTIALS_EXPIRED".to_owned());
    assert_eq!(reason(&refused), expired);
    drop(client);
    let entries = guarded.end().await;
    assert_eq!(entries[0].operation.who, "cert:scheduler");
}

#[tokio::test]
async fn when_the_authorities_change_those_whom_they_vouched_for_have_to_come_again() {
    let (lab, callers) = (Authority::new("lab"), Authority::new("callers"));
    let pair = lab.server(&["gateway.lab"]);
    let (guarded, files) = start(&pair, |files| {
        format!("{}{RULES}", files.asking(&callers, "optional"))
    })
    .await;
    let shown = callers.client("scheduler");
    let stream = connect(&guarded.gateway, &lab, "gateway.lab", Some(&shown), b"h2").await;
    let (sender, mut connection) = speak(stream.unwrap()).await;
    let mut client = client!(sender);
    let watch = client.watch_fleet(pb::WatchFleetRequest::default()).await;
    let mut watch = watch.unwrap().into_inner();
    soon("the fleet", watch.message()).await.unwrap().unwrap();
    // What has nothing to do with authorities changes nothing for anybody.
    let (other, mut other_connection) = {
        let stream = connect(&guarded.gateway, &lab, "gateway.lab", None, b"h2").await;
        speak(stream.unwrap()).await
    };

    replace(&files.at("clients.pem"), &Authority::new("others").pem);
    let ended = async {
        loop {
            match watch.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended without a word"),
                Err(status) => break status,
            }
        }
    };
    let ended = soon("the end of the watch", ended).await;
    let changed = (Code::Unauthenticated, "CREDENTIALS_CHANGED".to_owned());
    assert_eq!(reason(&ended), changed);
    soon("the end of the connection", connection.join_next()).await;
    assert!(other_connection.try_join_next().is_none());
    let again = connect(&guarded.gateway, &lab, "gateway.lab", Some(&shown), b"h2").await;
    let let_in = match again {
        Ok(stream) => look(stream, None).await.is_ok(),
        Err(_) => false,
    };
    assert!(!let_in, "their authority is none any more");
    drop((client, watch, other));
    guarded.gateway.shutdown().await;
}
