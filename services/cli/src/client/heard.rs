//! Waiting for the other side's first word.
//!
//! Of TLS 1.3 this side is done before the gateway has judged its certificate:
//! only the gateway's first bytes tell that it has taken it. A call that was sent
//! before would end as one whose fate nobody knows. Without TLS they tell whether
//! the gateway wants it.
//!
//! A gateway that refuses says why and hangs up, so that what is written to it may
//! fail before its reason is read. Until something was heard such a failure is
//! none: the read that follows tells.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

/// What a record of TLS begins with that refuses what came: an alert. No frame
/// of HTTP/2 that comes first is so long that it begins with it.
const ALERT: u8 = 0x15;

/// Somebody who was spoken to without TLS does not answer so, or not at all.
#[derive(Debug)]
pub(crate) enum NotInPlain {
    /// It speaks TLS.
    Tls,
    /// It has gone away.
    Gone(io::Error),
}

impl fmt::Display for NotInPlain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls => f.write_str("it answers in TLS"),
            Self::Gone(why) => write!(f, "it ended the connection: {why}"),
        }
    }
}

impl Error for NotInPlain {}

/// A stream that tells when it was first heard of.
#[derive(Debug)]
pub(super) struct Heard<S> {
    stream: S,
    first: Option<oneshot::Sender<io::Result<u8>>>,
}

/// Whether the other side has said anything.
#[derive(Debug)]
pub(super) struct FirstWord(oneshot::Receiver<io::Result<u8>>);

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

    /// What a failure to write comes to.
    fn unheard<T>(&self, error: io::Error, done: T) -> io::Result<T> {
        if self.first.is_some() {
            Ok(done)
        } else {
            Err(error)
        }
    }

    fn tell(&mut self, word: io::Result<u8>) {
        if let Some(first) = self.first.take() {
            // Whoever does not wait any more need not know.
            let _gone = first.send(word);
        }
    }
}

impl FirstWord {
    /// Waits for it.
    pub(super) async fn came(self) -> io::Result<()> {
        self.first().await.map(|_byte| ())
    }

    /// Waits for it, where no TLS is spoken.
    pub(super) async fn came_in_plain(self) -> Result<(), NotInPlain> {
        match self.first().await {
            Ok(ALERT) => Err(NotInPlain::Tls),
            Ok(_) => Ok(()),
            Err(why) => Err(NotInPlain::Gone(why)),
        }
    }

    async fn first(self) -> io::Result<u8> {
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
            Ok(()) => {
                let first = buffer.filled().get(before).copied();
                self.tell(first.ok_or_else(|| ErrorKind::UnexpectedEof.into()));
            }
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
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        Poll::Ready(written.or_else(|error| self.unheard(error, bytes.len())))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(flushed.or_else(|error| self.unheard(error, ())))
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
    async fn a_plain_word_is_told_from_one_of_tls_and_from_none() {
        let heard = async |bytes: &[u8]| {
            let (near, mut far) = tokio::io::duplex(64);
            let (mut near, word) = Heard::new(near);
            far.write_all(bytes).await.unwrap();
            drop(far);
            near.read_to_end(&mut Vec::new()).await.unwrap();
            word.came_in_plain().await
        };
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        assert!(heard(&settings).await.is_ok());
        let alert = [0x15, 3, 3, 0, 2, 2, 50];
        assert!(matches!(heard(&alert).await, Err(NotInPlain::Tls)));
        assert!(matches!(heard(&[]).await, Err(NotInPlain::Gone(_))));
    }

    #[tokio::test]
    async fn a_reason_is_heard_although_nothing_can_be_written_any_more() {
        let (near, mut far) = tokio::io::duplex(64);
        let (mut near, word) = Heard::new(near);
        far.write_all(&[ALERT]).await.unwrap();
        drop(far);
        near.write_all(b"a call").await.unwrap();
        near.flush().await.unwrap();
        assert_eq!(near.read_u8().await.unwrap(), ALERT);
        assert!(matches!(word.came_in_plain().await, Err(NotInPlain::Tls)));
        let late = near.write_all(b"a call").await.unwrap_err();
        assert_eq!(late.kind(), ErrorKind::BrokenPipe);
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
