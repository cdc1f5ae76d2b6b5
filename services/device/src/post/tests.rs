//! A far end that stops listening before it speaks.

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;
use crate::{MuxDeviceId, Route};

/// Takes this many bytes and then fails to take more, while it can still be
/// read from: a socket whose other end has shut down its reading half.
struct Deaf {
    stream: DuplexStream,
    takes: usize,
}

impl AsyncRead for Deaf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Deaf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.takes == 0 {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let fits = bytes.len().min(self.takes);
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &bytes[..fits]))?;
        self.takes -= written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
    }
}

const TAKEN: usize = 1000;

async fn posted(far_side: impl AsyncFnOnce(DuplexStream)) -> Result<Reply, SendError> {
    let (stream, mut far) = duplex(64 * 1024);
    let deaf = Deaf {
        stream,
        takes: TAKEN,
    };
    let route = Route {
        host: 0,
        device: MuxDeviceId(1),
        generation: 1,
    };
    let pipe = Pipe::new(Bytes::new(), Box::new(deaf), route);
    let body = Bytes::from(vec![b'x'; 100_000]);
    let (reply, ()) = tokio::join!(send(pipe, body), async {
        far.read_exact(&mut [0; TAKEN]).await.unwrap();
        // By now the next write has failed.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        far_side(far).await;
    });
    reply
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_read_although_the_request_could_not_be_written_whole() {
    let reply = posted(async |mut far| {
        far.write_all(b"HTTP/1.1 413 Error\r\nContent-Length: 2\r\n\r\n{}")
            .await
            .unwrap();
    });
    let reply = reply.await.unwrap();
    assert_eq!((reply.status.as_u16(), &reply.body[..]), (413, &b"{}"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_could_not_be_written_and_has_no_reply_is_broken() {
    let error = posted(async |far| drop(far)).await.unwrap_err();
    assert!(matches!(error, SendError::Broken(_)), "{error:?}");
}
