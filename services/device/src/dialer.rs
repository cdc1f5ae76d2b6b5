//! How a connection to a usbmuxd is made: the one seam of this crate. Tests and
//! in-process labs dial a duplex stream instead of a socket.

use std::fmt;
use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
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
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            // A request is one small write after another: do not hold them back.
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
    }
}
