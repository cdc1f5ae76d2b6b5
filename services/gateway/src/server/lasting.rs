//! Replies that last: whether their callers are still let in.
//!
//! A call is let in once, and a stream may go on for days. So its caller is
//! asked again, every now and then, with what it said at the beginning: a token
//! that was revoked, a JWT that has expired and a role that is another now end
//! the streams that were opened with them.
//!
//! Invariant: a reply ends by itself, or with a status.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;

/// A body that ends when its caller is not let in any more.
struct Lasting {
    /// Nothing follows once this is gone.
    body: Option<Body>,
    refused: BoxFuture<'static, Status>,
}

/// A reply that ends with what `refused` gives, if that comes before its end.
pub(super) fn until(
    refused: impl Future<Output = Status> + Send + 'static,
    reply: Response<Body>,
) -> Response<Body> {
    // What has failed has no body.
    if reply.headers().contains_key(Status::GRPC_STATUS) {
        return reply;
    }
    reply.map(|body| {
        Body::new(Lasting {
            body: Some(body),
            refused: refused.boxed(),
        })
    })
}

impl http_body::Body for Lasting {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let next = Pin::new(body).poll_frame(cx);
        let ends = match &next {
            Poll::Ready(Some(Ok(frame))) => frame.is_trailers(),
            Poll::Ready(Some(Err(_)) | None) => true,
            Poll::Pending => false,
        };
        if ends {
            return next;
        }
        // A stream that always has something to say is asked about as well.
        match self.refused.poll_unpin(cx) {
            Poll::Pending => next,
            Poll::Ready(status) => {
                self.body = None;
                let mut trailers = HeaderMap::new();
                let told = status.add_header(&mut trailers);
                Poll::Ready(Some(told.map(|()| Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body
            .as_ref()
            .is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use http_body_util::{BodyExt, StreamBody};
    use tonic::Code;

    use super::*;

    /// A reply that says one thing and goes on.
    fn going_on() -> Response<Body> {
        let said =
            futures_util::stream::iter([Ok::<_, Status>(Frame::data(Bytes::from_static(b"said")))]);
        let said = futures_util::StreamExt::chain(said, futures_util::stream::pending());
        Response::new(Body::new(StreamBody::new(said)))
    }

    #[tokio::test]
    async fn a_reply_goes_on_until_its_caller_is_refused() {
        let (refuse, refused) = tokio::sync::oneshot::channel();
        let refused = async { refused.await.unwrap() };
        let mut body = until(refused, going_on()).into_body();
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "said");
        refuse.send(Status::unauthenticated("gone")).unwrap();
        let trailers = body
            .frame()
            .await
            .unwrap()
            .unwrap()
            .into_trailers()
            .unwrap();
        let status = Status::from_header_map(&trailers).unwrap();
        assert_eq!(status.code(), Code::Unauthenticated);
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn nothing_more_is_told_to_a_caller_who_is_refused() {
        let refused = ready(Status::unauthenticated("gone"));
        let body = until(refused, going_on()).into_body();
        let collected = body.collect().await.unwrap();
        assert!(collected.trailers().is_some());
        assert!(collected.to_bytes().is_empty());
    }

    #[tokio::test]
    async fn a_reply_that_ends_by_itself_is_as_it_was() {
        let whole = Body::new(http_body_util::Full::new(Bytes::from_static(b"whole")));
        let reply = until(pending(), Response::new(whole));
        let body = reply.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "whole");
        let failed = Status::not_found("nothing").into_http::<Body>();
        let failed = until(pending(), failed);
        assert!(http_body::Body::is_end_stream(failed.body()));
    }
}
