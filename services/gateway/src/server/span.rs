//! One span per call, by the OpenTelemetry conventions for RPC servers.
//!
//! It opens with the request's headers and ends with the reply's last byte or
//! with the caller's departure, so that a stream is one span. What is known
//! only later is recorded by whoever learns it; a request's body never is.

use std::task::{Context, Poll};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::BodyExt;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::{Layer, Service};
use tracing::field::Empty;
use tracing::{Instrument, Span, info_span};

use crate::access::find;

/// Adds [`ServerSpan`] to a service.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServerSpanLayer;

impl<S> Layer<S> for ServerSpanLayer {
    type Service = ServerSpan<S>;

    fn layer(&self, inner: S) -> ServerSpan<S> {
        ServerSpan { inner }
    }
}

/// A service each of whose calls runs in a span of its own.
#[derive(Debug, Clone)]
pub(crate) struct ServerSpan<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for ServerSpan<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // A path that is none of ours is whatever its caller wanted it to be.
        let method = find(request.uri().path()).map_or("unknown", |row| row.path);
        let method = method.trim_start_matches('/');
        let span = info_span!(
            "rpc",
            otel.name = method,
            otel.kind = "server",
            rpc.system.name = "grpc",
            rpc.method = method,
            rpc.response.status_code = Empty,
            "error.type" = Empty,
            "enduser.id" = Empty,
            device.id = Empty,
            fleetgate.command.id = Empty,
            fleetgate.command.kind = Empty,
            fleetgate.command.attempts = Empty,
            fleetgate.command.fate = Empty,
        );
        let reply = span.in_scope(|| self.inner.call(request));
        reply
            .map(|reply| Ok(until_the_last_byte(reply?)))
            .instrument(span)
            .boxed()
    }
}

/// Keeps the current span open for as long as the body is, and records the
/// status wherever it comes.
fn until_the_last_byte(response: Response<Body>) -> Response<Body> {
    let span = Span::current();
    record_status(&span, response.headers());
    response.map(|body| {
        Body::new(body.map_frame(move |frame: Frame<_>| {
            if let Some(trailers) = frame.trailers_ref() {
                record_status(&span, trailers);
            }
            frame
        }))
    })
}

fn record_status(span: &Span, headers: &HeaderMap) {
    let Some(status) = Status::from_header_map(headers) else {
        return;
    };
    let name = code_name(status.code());
    span.record("rpc.response.status_code", name);
    if status.code() != Code::Ok {
        span.record("error.type", name);
    }
}

fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
