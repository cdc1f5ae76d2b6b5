//! What only shows below a gRPC client: its deadline, which an ordinary client
//! keeps by itself, and gRPC-Web over HTTP/1.1.

use bytes::Bytes;
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
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

/// Sends one request over HTTP/1.1, from a page of `origin`.
async fn from_page(running: &Running, method: Method, origin: &str) -> Response<Bytes> {
    let address = running.gateway.local_addr();
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (mut sender, connection) = http1::handshake(stream).await.unwrap();
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let empty_message = Full::new(Bytes::from_static(&[0; 5]));
    let request = Request::builder()
        .method(method)
        .uri("/fleetgate.v1.FleetService/GetGateway")
        .header("host", address.to_string())
        .header("content-type", "application/grpc-web+proto")
        .header("accept", "application/grpc-web+proto")
        .header("access-control-request-method", "POST")
        .header("origin", origin)
        .body(empty_message)
        .unwrap();
    let (head, body) = sender.send_request(request).await.unwrap().into_parts();
    Response::from_parts(head, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn grpc_web_is_served_over_http_1() {
    let running = start("").await;
    let own = format!("http://{}", running.gateway.local_addr());
    let response = from_page(&running, Method::POST, &own).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        response.headers()["content-type"],
        "application/grpc-web+proto"
    );
    let body = response.body();
    let length = u32::from_be_bytes(body[1..5].try_into().unwrap()) as usize;
    let message = pb::GetGatewayResponse::decode(&body[5..5 + length]).unwrap();
    assert_eq!(message.version, env!("CARGO_PKG_VERSION"));
    let trailers = String::from_utf8_lossy(&body[5 + length + 5..]);
    assert!(trailers.contains("grpc-status:0"), "{trailers}");
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_page_of_another_origin_is_refused() {
    let running = start("").await;
    for method in [Method::POST, Method::OPTIONS] {
        let response = from_page(&running, method, "https://example.com").await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN);
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-origin")
        );
    }
    running.gateway.shutdown().await;
}
