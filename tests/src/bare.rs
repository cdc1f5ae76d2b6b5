//! A gRPC client without a clock of its own, on a connection that can be torn.
//!
//! tonic's channel keeps the deadlines that it sends, so that it never sees how
//! a server answers them. Here the deadline is a header and nothing more.

use std::net::{Shutdown, TcpStream};

use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;
use tonic::body::Body;
use tower::service_fn;
use tower::util::BoxCloneService;

use crate::{Rig, soon};

/// What carries a [`Bare`] client's calls.
pub type Transport = BoxCloneService<Request<Body>, Response<Incoming>, hyper::Error>;

/// One connection to a rig's gateway.
#[derive(Debug)]
pub struct Bare {
    sender: SendRequest<Body>,
    socket: TcpStream,
    origin: Uri,
    _connection: JoinSet<()>,
}

impl Bare {
    /// Connects.
    pub async fn connect(rig: &Rig) -> Self {
        let origin: Uri = rig.url().parse().expect("an address");
        let authority = origin.authority().expect("an address").to_string();
        let connecting = tokio::net::TcpStream::connect(authority);
        let stream = soon("a connection", connecting)
            .await
            .expect("a connection")
            .into_std()
            .expect("a socket");
        let socket = stream.try_clone().expect("a descriptor");
        let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
        let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, connection) = soon("HTTP/2", handshake).await.expect("HTTP/2");
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            // It is torn on purpose.
            drop(connection.await);
        });
        Self {
            sender,
            socket,
            origin,
            _connection: driver,
        }
    }

    fn transport(&self, grpc_timeout: Option<&str>) -> Transport {
        let sender = self.sender.clone();
        let grpc_timeout = grpc_timeout.map(|timeout| timeout.parse().expect("a header"));
        BoxCloneService::new(service_fn(move |mut request: Request<Body>| {
            if let Some(timeout) = &grpc_timeout {
                let timeout: &http::HeaderValue = timeout;
                request
                    .headers_mut()
                    .insert("grpc-timeout", timeout.clone());
            }
            sender.clone().send_request(request)
        }))
    }

    /// A client of `AutomationService` whose calls carry this `grpc-timeout`.
    pub fn automation(&self, grpc_timeout: Option<&str>) -> AutomationServiceClient<Transport> {
        AutomationServiceClient::with_origin(self.transport(grpc_timeout), self.origin.clone())
    }

    /// A client of `LedgerService` whose calls carry this `grpc-timeout`.
    pub fn ledger(&self, grpc_timeout: Option<&str>) -> LedgerServiceClient<Transport> {
        LedgerServiceClient::with_origin(self.transport(grpc_timeout), self.origin.clone())
    }

    /// Ends the connection under whatever runs on it, without a word of HTTP/2.
    pub fn tear(self) {
        self.socket
            .shutdown(Shutdown::Both)
            .expect("an open socket");
    }
}
