//! The HTTP/2 connection under a client.
//!
//! tonic's own channel gives a call up on this side in the same moment that its
//! `grpc-timeout` names, so that the gateway's answer, which says what became of
//! the command, comes too late. Here the header is only sent, and an answer is
//! waited for a little longer than that.
//!
//! It refuses to connect again: whoever holds it decides what a lost connection
//! means.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::header::{AUTHORIZATION, HeaderValue};
use tonic::codegen::{BoxFuture, Service, StdError, http};

use super::heard::Heard;
use super::server::Server;
use super::tls::Tls;

/// A gateway that does not answer a ping for this long after
/// [`PING_INTERVAL`] is gone.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a gateway is pinged during a call.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Bytes that may be under way before they are asked for; the default of
/// 64 KiB halves the throughput of screenshots.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// How a connection is made.
#[derive(Debug)]
pub(super) struct Way<'a> {
    /// Where to.
    pub(super) server: &'a Server,
    /// How TLS is spoken; without it, it is not.
    pub(super) tls: Option<Tls>,
    /// What every call says of who calls; marked as a secret.
    pub(super) authorization: Option<HeaderValue>,
    /// How long the connection may take.
    pub(super) within: Duration,
    /// How long an answer may take to begin.
    pub(super) patience: Option<Duration>,
}

/// A connection. It ends with its last clone.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    sender: SendRequest<Body>,
    authorization: Option<HeaderValue>,
    patience: Option<Duration>,
    /// Whoever moves its bytes.
    _driver: Arc<JoinSet<()>>,
}

impl Wire {
    /// Connects. A failure proves that nothing was sent.
    pub(super) async fn connect(way: Way<'_>) -> Result<Self, StdError> {
        let connecting = timeout(way.within, open(way.server, way.tls));
        let (sender, driver) = connecting
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        Ok(Self {
            sender,
            authorization: way.authorization,
            patience: way.patience,
            _driver: Arc::new(driver),
        })
    }
}

/// What sends, and what moves the bytes of it.
type Ends = (SendRequest<Body>, JoinSet<()>);

async fn open(server: &Server, tls: Option<Tls>) -> Result<Ends, StdError> {
    let stream = TcpStream::connect(server.place()).await?;
    // A call is one small write after another: do not hold them back.
    stream.set_nodelay(true)?;
    match tls {
        None => {
            let (stream, word) = Heard::new(stream);
            let ends = speak(stream).await?;
            word.came_in_plain().await?;
            Ok(ends)
        }
        Some(tls) => {
            let (connector, name) = tls.parts();
            let (stream, word) = Heard::new(connector.connect(name, stream).await?);
            let ends = speak(stream).await?;
            word.came().await?;
            Ok(ends)
        }
    }
}

async fn speak<S>(stream: S) -> Result<Ends, StdError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .handshake(TokioIo::new(stream))
        .await?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // Its failure is told to every call that is open.
        let _told = connection.await;
    });
    Ok((sender, driver))
}

impl Service<http::Request<Body>> for Wire {
    type Response = http::Response<Incoming>;
    type Error = StdError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.sender.poll_ready(cx).map_err(StdError::from)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        if let Some(authorization) = &self.authorization {
            request
                .headers_mut()
                .insert(AUTHORIZATION, authorization.clone());
        }
        let answer = self.sender.send_request(request);
        let Some(patience) = self.patience else {
            return Box::pin(async { Ok(answer.await?) });
        };
        Box::pin(async move {
            match timeout(patience, answer).await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(Status::deadline_exceeded("no answer came in time").into()),
            }
        })
    }
}
