//! What only shows below a gRPC client: its deadline, which an ordinary client
//! keeps by itself, and gRPC-Web over HTTP/1.1.

use bytes::Bytes;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Code;
use tonic::body::Body;
use tonic_types::StatusExt;
use tower::service_fn;

use crate::support::{Running, reason, start, tap};

/// Calls `Tap` with a `grpc-timeout` that the client itself knows nothing of.
async fn tap_within(running: &Running, timeout: &'static str) -> tonic::Status {
    let address = running.gateway.local_addr();
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (sender, connection) = http2::handshake::<_, _, Body>(TokioExecutor::new(), stream)
        .await
        .unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let service = service_fn(move |mut request: Request<Body>| {
        request
            .headers_mut()
            .insert("grpc-timeout", timeout.parse().unwrap());
        sender.clone().send_request(request)
    });
    let origin: Uri = format!("http://{address}").parse().unwrap();
    let mut client = AutomationServiceClient::with_origin(service, origin);
    client.tap(tap("left", "c-1")).await.unwrap_err()
}

#[tokio::test]
async fn an_expired_deadline_is_answered_as_such_with_the_commands_fate() {
    let running = start("").await;
    let status = tap_within(&running, "0n").await;
    assert_eq!(
        reason(&status),
        (Code::DeadlineExceeded, "DEADLINE_IN_QUEUE".to_owned())
    );
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["fate"], "NOT_SENT");
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_malformed_deadline_is_refused() {
    let running = start("").await;
    let status = tap_within(&running, "soon").await;
    assert_eq!(
        reason(&status),
        (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned())
    );
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn grpc_web_is_served_over_http_1_and_no_foreign_page_is_let_in() {
    let running = start("").await;
    let address = running.gateway.local_addr();
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);

    let empty_message = Full::new(Bytes::from_static(&[0; 5]));
    let request = Request::post("/fleetgate.v1.FleetService/GetGateway")
        .header("host", address.to_string())
        .header("content-type", "application/grpc-web+proto")
        .header("accept", "application/grpc-web+proto")
        .header("origin", "https://example.com")
        .body(empty_message)
        .unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        response.headers()["content-type"],
        "application/grpc-web+proto"
    );
    assert_closed(response.headers());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap()) as usize;
    let message: pb::GetGatewayResponse = prost::Message::decode(&body[5..5 + length]).unwrap();
    assert_eq!(message.version, env!("CARGO_PKG_VERSION"));
    let trailers = String::from_utf8_lossy(&body[5 + length + 5..]);
    assert!(trailers.contains("grpc-status:0"), "{trailers}");

    let preflight = Request::options("/fleetgate.v1.FleetService/GetGateway")
        .header("host", address.to_string())
        .header("origin", "https://example.com")
        .header("access-control-request-method", "POST")
        .body(Full::default())
        .unwrap();
    let response = sender.send_request(preflight).await.unwrap();
    assert_closed(response.headers());
    drop(sender);
    running.gateway.shutdown().await;
}

fn assert_closed(headers: &HeaderMap) {
    assert!(
        !headers.contains_key("access-control-allow-origin"),
        "{headers:?}"
    );
}
