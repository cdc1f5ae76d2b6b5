//! How much metadata a call may bring: room for credentials and trace context,
//! and no more.
//!
//! HTTP/2 has a limit of its own, and one that is exceeded by far ends the
//! connection with all that others do on it. So that one is set to several times
//! ours ([`MAX_BLOCK_BYTES`]), and here the call alone is refused, with
//! `RESOURCE_EXHAUSTED`.

use std::future::{Ready, ready};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::{HeaderMap, Request, Response};
use tonic::body::Body;
use tower::{Layer, Service};

use crate::status;

/// The most metadata that is taken, as HTTP/2 counts it.
const MAX_METADATA_BYTES: usize = 16 * 1024;

/// From here on the connection has to answer for it: at once with HTTP's own
/// status, and for four times as much with its end.
pub(super) const MAX_BLOCK_BYTES: u32 = 128 * 1024;

/// What HTTP/2 adds to the lengths of a field's name and value.
const FIELD_BYTES: usize = 32;

/// Adds [`Metadata`] to a service.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MetadataLayer;

impl<S> Layer<S> for MetadataLayer {
    type Service = Metadata<S>;

    fn layer(&self, inner: S) -> Metadata<S> {
        Metadata { inner }
    }
}

/// A service that is not asked by calls with too much metadata.
#[derive(Debug, Clone)]
pub(super) struct Metadata<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Metadata<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<Body>, S::Error>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let bytes = size(request.headers());
        if bytes <= MAX_METADATA_BYTES {
            Either::Left(self.inner.call(request))
        } else {
            let refused = status::metadata_too_large(bytes, MAX_METADATA_BYTES);
            Either::Right(ready(Ok(refused.into_http())))
        }
    }
}

fn size(headers: &HeaderMap) -> usize {
    let fields = headers.iter();
    fields
        .map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES)
        .sum()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tonic::{Code, Status};
    use tower::{ServiceExt, service_fn};

    use super::*;

    async fn code(value: usize) -> Option<Code> {
        let inner =
            service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(Body::empty())));
        let request = Request::builder()
            .header("x-name", "v".repeat(value))
            .body(())
            .unwrap();
        let response = MetadataLayer.layer(inner).oneshot(request).await.unwrap();
        Status::from_header_map(response.headers()).map(|status| status.code())
    }

    #[tokio::test]
    async fn what_fits_passes_and_a_byte_more_is_refused() {
        let room = MAX_METADATA_BYTES - FIELD_BYTES - "x-name".len();
        assert_eq!(code(room).await, None);
        assert_eq!(code(room + 1).await, Some(Code::ResourceExhausted));
    }
}
