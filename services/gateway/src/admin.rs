//! The HTTP server that tells how the process fares.
//!
//! | path | what it says |
//! |---|---|
//! | `/metrics` | the instruments, as Prometheus reads them |
//! | `/healthz` | 200 while the process serves at all |
//! | `/readyz` | 200 while commands are let in and can be put on record; otherwise 503 and why |
//!
//! It is on loopback and reads only; no web page reaches it
//! ([`Hosts`]).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tracing::{Instrument, info, info_span, warn};

use crate::core::Core;
use crate::metrics::Metrics;
use crate::server::Hosts;

/// A running server; it ends with this.
#[derive(Debug)]
pub(crate) struct Admin {
    local_addr: SocketAddr,
    _task: JoinSet<()>,
}

#[derive(Debug)]
struct Office {
    core: Core,
    metrics: Metrics,
    hosts: Hosts,
}

impl Admin {
    /// Listens and serves.
    pub(crate) async fn serve(
        address: SocketAddr,
        core: Core,
        metrics: Metrics,
        hosts: Hosts,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let local_addr = listener.local_addr()?;
        let office = Arc::new(Office {
            core,
            metrics,
            hosts,
        });
        let refuse_pages = middleware::from_fn_with_state(Arc::clone(&office), refuse_pages);
        let routes = Router::new()
            .route("/metrics", get(metrics_text))
            .route("/healthz", get(async || "ok\n"))
            .route("/readyz", get(readiness))
            .layer(refuse_pages)
            .with_state(office);
        let mut task = JoinSet::new();
        let serving = async move {
            if let Err(error) = axum::serve(listener, routes).await {
                warn!(%error, "the admin server ended");
            }
        };
        task.spawn(serving.instrument(info_span!("admin")));
        info!(address = %local_addr, "admin server listening");
        Ok(Self {
            local_addr,
            _task: task,
        })
    }

    /// Where it is.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

async fn metrics_text(State(office): State<Arc<Office>>) -> Response {
    match office.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn readiness(State(office): State<Arc<Office>>) -> Response {
    let ledger = office.core.ledger().health().await;
    let mut missing = Vec::new();
    if office.core.fleet().is_closed() {
        missing.push("the gateway is draining".to_owned());
    }
    if !office.core.leases().are_seen_to() {
        missing.push("nobody sees to leases any more".to_owned());
    }
    if !ledger.writable {
        let why = ledger.last_error.map(|error| format!(": {error}"));
        let why = why.unwrap_or_default();
        missing.push(format!("the ledger takes no entries{why}"));
    }
    if missing.is_empty() {
        return "ready\n".into_response();
    }
    let why = missing.join("\n") + "\n";
    (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
}

async fn refuse_pages(State(office): State<Arc<Office>>, request: Request, next: Next) -> Response {
    let hosts = &office.hosts;
    if hosts.is_foreign(request.version(), request.uri(), request.headers()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    next.run(request).await
}
