//! One HTTP/1.1 POST on a pipe, in the form that a runner takes it.
//!
//! The connection is driven by the very future that awaits the reply, so that
//! nothing of it outlives that future. Every error here comes after the first
//! byte may have been written.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use fleetgate_runner::{MAX_REPLY_BYTES, SendError};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::pipe::Pipe;

const PATH: &str = "/command";
const HOST: &str = "127.0.0.1";
const JSON: &str = "application/json";

/// A runner's reply.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Informational: the envelope in the body decides.
    pub(crate) status: http::StatusCode,
    /// The whole body.
    pub(crate) body: Vec<u8>,
}

/// How many bytes a request with a body of this length has on the wire.
pub(crate) fn request_len(body: usize) -> usize {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: {JSON}\r\n\
         Content-Length: {body}\r\nConnection: close\r\n\r\n"
    )
    .len()
        + body
}

/// Sends a request and reads its reply.
pub(crate) async fn send(pipe: Pipe, body: Bytes) -> Result<Reply, SendError> {
    let request = http::Request::post(PATH)
        .header(http::header::HOST, HOST)
        .header(http::header::CONTENT_TYPE, JSON)
        .header(http::header::CONTENT_LENGTH, body.len())
        .header(http::header::CONNECTION, "close")
        .body(Full::new(body))
        .map_err(|error| SendError::Broken(Arc::new(error)))?;
    let (mut sender, connection) = http1::Builder::new()
        .title_case_headers(true)
        .handshake(TokioIo::new(ReplyFirst { pipe, deaf: false }))
        .await
        .map_err(broken)?;
    let mut reply = pin!(async move {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = read(response.into_body()).await?;
        Ok(Reply { status, body })
    });
    tokio::select! {
        biased;
        result = &mut reply => result,
        // The connection hands its own failure to the reply.
        _ = connection => reply.await,
    }
}

/// Reads a body within the limit, whether it is declared to break it or does.
async fn read(mut body: Incoming) -> Result<Vec<u8>, SendError> {
    let too_large = SendError::ReplyTooLarge {
        limit: MAX_REPLY_BYTES,
    };
    if body.size_hint().lower() > MAX_REPLY_BYTES as u64 {
        return Err(too_large);
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(broken)?.into_data() {
            if bytes.len() + data.len() > MAX_REPLY_BYTES {
                return Err(too_large);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

fn broken(error: hyper::Error) -> SendError {
    SendError::Broken(Arc::new(error))
}

/// A pipe whose far end may stop listening in the middle of a request and still
/// say why. A failed write must not keep that reply from being read, so writes
/// go nowhere after it, and reading tells how the exchange ends.
struct ReplyFirst {
    pipe: Pipe,
    deaf: bool,
}

impl ReplyFirst {
    fn written(&mut self, outcome: io::Result<usize>, all: usize) -> io::Result<usize> {
        outcome.or_else(|error| {
            let hung_up = matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            );
            self.deaf |= hung_up;
            if hung_up { Ok(all) } else { Err(error) }
        })
    }
}

impl AsyncRead for ReplyFirst {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, buffer)
    }
}

impl AsyncWrite for ReplyFirst {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let outcome = ready!(Pin::new(&mut self.pipe).poll_write(cx, bytes));
        Poll::Ready(self.written(outcome, bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = slices.iter().map(|slice| slice.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(all));
        }
        let outcome = ready!(Pin::new(&mut self.pipe).poll_write_vectored(cx, slices));
        Poll::Ready(self.written(outcome, all))
    }

    fn is_write_vectored(&self) -> bool {
        self.pipe.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deaf {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.deaf {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
