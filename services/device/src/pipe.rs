//! A connection through usbmuxd to a port of a phone.
//!
//! The first bytes of the pipe may have come together with usbmuxd's answer;
//! they are read first, so that none is lost.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::dialer::BoxStream;
use crate::inventory::Route;

/// A byte stream to a port of a phone. Dropping it closes the connection.
pub struct Pipe {
    early: Bytes,
    stream: BoxStream,
    route: Route,
}

impl Pipe {
    pub(crate) fn new(early: Bytes, stream: BoxStream, route: Route) -> Self {
        Self {
            early,
            stream,
            route,
        }
    }

    /// By which of usbmuxd's numbers the phone was reached.
    pub fn route(&self) -> Route {
        self.route
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe")
            .field("route", &self.route)
            .finish_non_exhaustive()
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.early.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        let fits = self.early.len().min(buffer.remaining());
        buffer.put_slice(&self.early[..fits]);
        self.early.advance(fits);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
