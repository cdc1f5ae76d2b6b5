//! Waiting for the other side's first word.
//!
//! Of TLS 1.3 this side is done before the gateway has judged its certificate:
//! only the gateway's first bytes tell that it has taken it. A call that was sent
//! before would end as one whose fate nobody knows.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// A stream that tells when it was first heard of.
#[derive(Debug)]
pub(super) struct Heard<S> {
    stream: S,
    first: Option<oneshot::Sender<io::Result<()>>>,
}

/// Whether the other side has said anything.
#[derive(Debug)]
pub(super) struct FirstWord(oneshot::Receiver<io::Result<()>>);

impl<S> Heard<S> {
    /// A stream that has not been read from.
    pub(super) fn new(stream: S) -> (Self, FirstWord) {
        let (first, word) = oneshot::channel();
        let heard = Self {
            stream,
            first: Some(first),
        };
        (heard, FirstWord(word))
    }

    fn tell(&mut self, word: io::Result<()>) {
        if let Some(first) = self.first.take() {
            // Whoever does not wait any more need not know.
            let _gone = first.send(word);
        }
    }
}

impl FirstWord {
    /// Waits for it.
    pub(super) async fn came(self) -> io::Result<()> {
        let gone = |_| Err(io::Error::from(ErrorKind::UnexpectedEof));
        self.0.await.unwrap_or_else(gone)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match ready!(Pin::new(&mut self.stream).poll_read(cx, buffer)) {
            Ok(()) if buffer.filled().len() > before => self.tell(Ok(())),
            Ok(()) => self.tell(Err(ErrorKind::UnexpectedEof.into())),
            Err(error) if self.first.is_some() => {
                let kind = error.kind();
                self.tell(Err(error));
                return Poll::Ready(Err(kind.into()));
            }
            Err(error) => return Poll::Ready(Err(error)),
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn the_first_word_is_told_and_not_taken_away() {
        let (near, mut far) = tokio::io::duplex(64);
        let (mut near, word) = Heard::new(near);
        far.write_all(b"words").await.unwrap();
        let mut read = [0; 5];
        near.read_exact(&mut read).await.unwrap();
        word.came().await.unwrap();
        assert_eq!(&read, b"words");
    }

    #[tokio::test]
    async fn an_end_before_any_word_is_an_error() {
        let (near, far) = tokio::io::duplex(64);
        let (mut near, word) = Heard::new(near);
        drop(far);
        assert_eq!(near.read(&mut [0; 5]).await.unwrap(), 0);
        assert_eq!(
            word.came().await.unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
        let (never, word) = Heard::new(tokio::io::duplex(64).0);
        drop(never);
        assert!(word.came().await.is_err());
    }
}
