//! How a connection to a usbmuxd is made: the one seam of this crate. Tests and
//! in-process labs dial a duplex stream instead of a socket.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::Address;

/// A byte stream in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A byte stream of whatever kind.
pub type BoxStream = Box<dyn Stream>;

type Dial = dyn Fn() -> BoxFuture<'static, io::Result<BoxStream>> + Send + Sync;

/// Makes connections to one usbmuxd.
#[derive(Clone)]
pub struct Dialer {
    label: Arc<str>,
    dial: Arc<Dial>,
}

impl Dialer {
    /// Dials a socket.
    pub fn to(address: Address) -> Self {
        let label = address.to_string();
        Self::from_fn(label, move || Box::pin(open(address.clone())))
    }

    /// Dials by calling a function. The label stands for it in logs.
    pub fn from_fn(
        label: impl Into<Arc<str>>,
        dial: impl Fn() -> BoxFuture<'static, io::Result<BoxStream>> + Send + Sync + 'static,
    ) -> Self {
        Self {
            label: label.into(),
            dial: Arc::new(dial),
        }
    }

    /// What this dials, for people.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The same, to be kept.
    pub(crate) fn shared_label(&self) -> Arc<str> {
        Arc::clone(&self.label)
    }

    pub(crate) async fn dial(&self) -> io::Result<BoxStream> {
        (self.dial)().await
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dialer({})", self.label)
    }
}

async fn open(address: Address) -> io::Result<BoxStream> {
    match address {
        Address::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
        Address::Tcp(address) => Ok(Box::new(connect(&address).await?)),
    }
}

/// How long a TCP connection may be idle before its other end is asked whether
/// it is still there.
const IDLE: Duration = Duration::from_secs(10);
/// How long it may take to answer before it is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// How many times it is asked before it is given up.
const ASK: u32 = 3;

/// Connects to a usbmuxd on another host. One that dies there without a word,
/// or behind a cable that was pulled, is noticed within half a minute although
/// a listening connection has nothing to send.
async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    // A request is one small write after another: do not hold them back.
    stream.set_nodelay(true)?;
    let asking = TcpKeepalive::new().with_time(IDLE);
    let asking = asking.with_interval(ASK_AGAIN).with_retries(ASK);
    SockRef::from(&stream).set_tcp_keepalive(&asking)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_usbmuxd_that_is_reached_over_tcp_is_asked_whether_it_is_still_there() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stream = connect(&address).await.unwrap();
        let socket = SockRef::from(&stream);
        assert!(socket.keepalive().unwrap() && stream.nodelay().unwrap());
        let given_up = socket.tcp_keepalive_time().unwrap()
            + socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert!(given_up <= Duration::from_secs(30), "{given_up:?}");
    }
}
