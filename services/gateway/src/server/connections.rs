//! Connections: accepted, counted, drained and, at the end, cut.
//!
//! tonic's own server would enforce `grpc-timeout` (see [`crate::deadline`])
//! and leave its connections behind when the wait for them is given up, so the
//! loop is ours: every task of every connection belongs to [`Connections`] and
//! is gone when that is dropped.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_stream::StreamExt;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tonic::service::Routes;
use tonic::transport::server::{Connected, TcpConnectInfo, TcpIncoming};
use tonic_web::GrpcWebLayer;
use tower::{ServiceBuilder, ServiceExt};
use tracing::{Instrument, Span, debug, debug_span, warn};

use super::access::{AccessLayer, Admission};
use super::metadata::{MAX_BLOCK_BYTES, MetadataLayer};
use super::origin::{Hosts, SameOriginLayer};
use super::span::ServerSpanLayer;
use super::strangers::{LEAVE, Standing, StandingLayer};
use super::tls::{PeerCertificate, Tls, TlsTask};
use crate::config::ServerConfig;
use crate::deadline::DeadlineLayer;

/// Windows that let a screenshot of several megabytes go out in one go.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// How many calls of one connection may be over before anybody has looked at
/// them. With more than that the connection is closed, and with it the calls of
/// whoever shares it; hyper's own 20 are reached by a proxy whose clients leave
/// at once. Each costs its headers until it is looked at.
const MAX_UNSEEN_RESETS: usize = 4096;

/// How long to wait after a failed accept: it fails for want of descriptors,
/// and at once again if asked at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What the server grants to its connections.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    max_connections: usize,
    max_concurrent_streams: u32,
    http2_keepalive_interval: Duration,
    http2_keepalive_timeout: Duration,
    tcp_keepalive: Duration,
    first_call_timeout: Duration,
}

impl From<&ServerConfig> for Limits {
    fn from(config: &ServerConfig) -> Self {
        Self {
            max_connections: config.max_connections.get(),
            max_concurrent_streams: config.max_concurrent_streams.get(),
            http2_keepalive_interval: config.http2_keepalive_interval,
            http2_keepalive_timeout: config.http2_keepalive_timeout,
            tcp_keepalive: config.tcp_keepalive,
            first_call_timeout: config.first_call_timeout,
        }
    }
}

/// The listener and all connections that it has accepted.
#[derive(Debug)]
pub(crate) struct Connections {
    local_addr: SocketAddr,
    tasks: Tasks,
    drain: CancellationToken,
    _tls: Option<TlsTask>,
    _cut: DropGuard,
}

/// What connections are served with.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) routes: Routes,
    pub(crate) admission: Admission,
    pub(crate) hosts: Hosts,
    /// Absent where plain text is spoken.
    pub(crate) tls: Option<(Tls, TlsTask)>,
}

impl Connections {
    /// Listens and serves.
    pub(crate) async fn serve(
        address: SocketAddr,
        limits: Limits,
        service: Service,
    ) -> io::Result<Self> {
        let Service {
            routes,
            admission,
            hosts,
            tls,
        } = service;
        let (tls, tls_task) = tls.unzip();
        let listener = TcpListener::bind(address).await?;
        let local_addr = listener.local_addr()?;
        let cut = CancellationToken::new();
        let drain = CancellationToken::new();
        let tasks = Tasks {
            tracker: TaskTracker::new(),
            cut: cut.clone(),
        };
        let server = Server {
            builder: builder(&limits, &tasks),
            routes,
            admission,
            hosts,
            tls,
            first_call_timeout: limits.first_call_timeout,
            drain: drain.clone(),
            tasks: tasks.clone(),
        };
        let accept = server
            .accept(listener, limits)
            .instrument(debug_span!("accept"));
        tasks.execute(accept);
        Ok(Self {
            local_addr,
            tasks,
            drain,
            _tls: tls_task,
            _cut: cut.drop_guard(),
        })
    }

    /// Where clients find the server.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Accepts nothing more and tells every client to open no more calls on
    /// its connection (GOAWAY). Calls that are open go on.
    pub(crate) fn drain(&self) {
        self.drain.cancel();
        self.tasks.tracker.close();
    }

    /// Ends when the last connection has, which is never before
    /// [`Connections::drain`].
    pub(crate) async fn drained(&self) {
        self.tasks.tracker.wait().await;
    }

    /// Ends every connection at once.
    pub(crate) async fn cut(self) {
        self.drain();
        self.tasks.cut.cancel();
        self.tasks.tracker.wait().await;
    }
}

/// Where the tasks of the connections live; hyper spawns one per HTTP/2 stream.
#[derive(Debug, Clone)]
struct Tasks {
    tracker: TaskTracker,
    cut: CancellationToken,
}

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, work: F) {
        let cut = self.cut.clone();
        self.tracker.spawn(
            async move {
                cut.run_until_cancelled_owned(work).await;
            }
            .instrument(Span::current()),
        );
    }
}

fn builder(limits: &Limits, tasks: &Tasks) -> Builder<Tasks> {
    let mut builder = Builder::new(tasks.clone());
    // With a timer, HTTP/1.1 headers must come within hyper's 30 s.
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES)
        .max_header_list_size(MAX_BLOCK_BYTES)
        .max_concurrent_streams(limits.max_concurrent_streams)
        .max_pending_accept_reset_streams(MAX_UNSEEN_RESETS)
        .keep_alive_interval(limits.http2_keepalive_interval)
        .keep_alive_timeout(limits.http2_keepalive_timeout);
    builder
}

#[derive(Debug, Clone)]
struct Server {
    builder: Builder<Tasks>,
    routes: Routes,
    admission: Admission,
    hosts: Hosts,
    tls: Option<Tls>,
    first_call_timeout: Duration,
    drain: CancellationToken,
    tasks: Tasks,
}

impl Server {
    async fn accept(self, listener: TcpListener, limits: Limits) {
        let mut incoming = TcpIncoming::from(listener)
            .with_nodelay(Some(true))
            .with_keepalive(Some(limits.tcp_keepalive));
        let slots = Arc::new(Semaphore::new(limits.max_connections));
        let accepting = async {
            // A connection without a slot waits in the kernel's backlog.
            while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
                match incoming.next().await {
                    Some(Ok(stream)) => self.connection(stream, slot),
                    Some(Err(error)) => {
                        warn!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                    None => break,
                }
            }
        };
        self.drain.run_until_cancelled(accepting).await;
    }

    fn connection(&self, stream: TcpStream, slot: OwnedSemaphorePermit) {
        let peer = stream.connect_info();
        let span = debug_span!("connection", network.peer.address = ?peer.remote_addr());
        let server = self.clone();
        let serving = async move {
            let _slot = slot;
            let Some(tls) = &server.tls else {
                server.speak(stream, peer, None).await;
                return;
            };
            let drain = server.drain.clone();
            match drain.run_until_cancelled(tls.accept(stream)).await {
                Some(Ok((stream, certificate))) => server.speak(stream, peer, certificate).await,
                Some(Err(error)) => debug!(%error, "no connection"),
                // A caller who has not asked for anything yet.
                None => {}
            }
        };
        self.tasks.execute(serving.instrument(span));
    }

    /// Serves a connection to its end.
    async fn speak<T>(&self, stream: T, peer: TcpConnectInfo, certificate: Option<PeerCertificate>)
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let standing = Standing::default();
        let disowned = disowned(certificate.clone());
        let service = ServiceBuilder::new()
            .map_request(move |mut request: http::Request<_>| {
                request.extensions_mut().insert(peer.clone());
                if let Some(certificate) = &certificate {
                    request.extensions_mut().insert(certificate.clone());
                }
                request
            })
            .layer(SameOriginLayer(self.hosts.clone()))
            .layer(GrpcWebLayer::new())
            .layer(ServerSpanLayer)
            .layer(MetadataLayer)
            .layer(DeadlineLayer)
            .layer(AccessLayer(self.admission.clone()))
            .layer(StandingLayer(standing.clone()))
            .service(self.routes.clone());
        let service = TowerToHyperService::new(service.boxed_clone());
        let connection = self.builder.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.drain.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = disowned => {
                debug!("the authorities of callers have changed");
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            () = standing.overstays(self.first_call_timeout) => {
                debug!("nobody is known here");
                connection.as_mut().graceful_shutdown();
                match timeout(LEAVE, connection.as_mut()).await {
                    Ok(ended) => ended,
                    Err(_) if standing.is_idle() => return,
                    // Somebody came at the last moment.
                    Err(_) => connection.await,
                }
            }
        };
        if let Err(error) = ended {
            debug!(error, "the connection broke");
        }
    }
}

/// Ends when the authorities by which a caller got in are not those that count;
/// never for one that has not shown a certificate.
async fn disowned(certificate: Option<PeerCertificate>) {
    match certificate {
        Some(mut certificate) => certificate.disowned().await,
        None => std::future::pending().await,
    }
}
