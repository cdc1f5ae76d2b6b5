//! A proxy as load balancers are: it resets every connection on which no
//! stream has had DATA from the server for some time. Pings and whatever else
//! keeps a connection alive impress it as little as what clients send.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::raw;

/// A proxy before a gateway; it ends with this.
#[derive(Debug)]
pub struct Impatient {
    /// Where it is, for clients.
    pub url: String,
    cut: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Impatient {
    /// A proxy before the gateway at `url` that bears so much silence.
    pub async fn before(url: &str, patience: Duration) -> Self {
        let gateway: SocketAddr = url
            .strip_prefix("http://")
            .and_then(|address| address.parse().ok())
            .expect("an address");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
        let address = listener.local_addr().expect("an address");
        let (cut, mut task) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        let count = Arc::clone(&cut);
        task.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let count = Arc::clone(&count);
                connections.spawn(async move {
                    // It ends by a reset on either side.
                    drop(serve(client, gateway, patience, &count).await);
                });
            }
        });
        Self {
            url: format!("http://{address}"),
            cut,
            _task: task,
        }
    }

    /// How many connections it has reset.
    pub fn cut(&self) -> usize {
        self.cut.load(Ordering::Relaxed)
    }
}

/// Carries one connection until it ends, and counts it if that was for its
/// silence.
async fn serve(
    client: TcpStream,
    gateway: SocketAddr,
    patience: Duration,
    count: &AtomicUsize,
) -> io::Result<()> {
    let server = TcpStream::connect(gateway).await?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let cut = tokio::select! {
        ended = copy(&mut from_client, &mut to_server) => ended.map(|_| false),
        cut = frames(&mut from_server, &mut to_client, patience) => cut,
    }?;
    if cut {
        count.fetch_add(1, Ordering::Relaxed);
        // Without a word of HTTP/2, and without one of TCP but a reset.
        to_client.as_ref().set_zero_linger()?;
        to_client.forget();
    }
    Ok(())
}

/// Passes the server's frames on; true once there was no DATA for too long.
async fn frames(
    from: &mut OwnedReadHalf,
    to: &mut OwnedWriteHalf,
    patience: Duration,
) -> io::Result<bool> {
    let mut until = Instant::now() + patience;
    loop {
        let mut header = [0; 9];
        let read = tokio::select! {
            biased;
            read = from.read_exact(&mut header) => read,
            () = sleep_until(until) => return Ok(true),
        };
        read?;
        let [high, middle, low, kind, ..] = header;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut frame = header.to_vec();
        frame.resize(header.len() + length as usize, 0);
        let payload = &mut frame[header.len()..];
        match timeout_at(until, from.read_exact(payload)).await {
            Ok(read) => read?,
            Err(_elapsed) => return Ok(true),
        };
        to.write_all(&frame).await?;
        if kind == raw::DATA {
            until = Instant::now() + patience;
        }
    }
}
