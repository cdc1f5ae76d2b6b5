//! usbmuxd's sockets: unix and TCP.
//!
//! A socket is there exactly while the daemon is: when the daemon goes, the
//! unix socket is removed and the TCP port closed, and both come back at the
//! same place with the next daemon.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;
use tracing::{info_span, warn};

use crate::lab::LabCore;
use crate::mux::{Daemon, Table};
use crate::usbmuxd;

/// Before something is tried again that the system refused.
const AGAIN: Duration = Duration::from_millis(50);

/// Serves on a unix socket.
pub(crate) async fn serve_unix(core: &Arc<LabCore>, path: PathBuf) -> io::Result<()> {
    remove_stale(&path).await?;
    let place = Place::Unix(path);
    let socket = place.bind().await?;
    spawn(core, place, socket);
    Ok(())
}

/// Serves on a TCP port.
pub(crate) async fn serve_tcp(core: &Arc<LabCore>, address: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    spawn(core, Place::Tcp(address), Socket::Tcp(listener));
    Ok(address)
}

/// Where a socket is and comes back to.
#[derive(Debug)]
enum Place {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A socket that listens.
#[derive(Debug)]
enum Socket {
    Unix {
        listener: UnixListener,
        _file: SocketFile,
    },
    Tcp(TcpListener),
}

/// Removes a unix socket's file when the socket goes.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            warn!(path = %self.0.display(), %error, "the socket could not be removed");
        }
    }
}

impl Place {
    async fn bind(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(path) => {
                let listener = UnixListener::bind(path)?;
                Ok(Socket::Unix {
                    listener,
                    _file: SocketFile(path.clone()),
                })
            }
            Self::Tcp(address) => TcpListener::bind(address).await.map(Socket::Tcp),
        }
    }
}

impl Socket {
    /// Accepts one client and talks to it in a task of its own.
    async fn accept(&self, core: &Arc<LabCore>) -> io::Result<()> {
        let lab = Arc::clone(core);
        match self {
            Self::Unix { listener, .. } => {
                let (stream, _) = listener.accept().await?;
                let talk = async move { usbmuxd::converse(&lab, stream).await };
                core.spawn(info_span!("usbmuxd", client = "unix"), talk);
            }
            Self::Tcp(listener) => {
                let (stream, client) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let talk = async move { usbmuxd::converse(&lab, stream).await };
                core.spawn(info_span!("usbmuxd", %client), talk);
            }
        }
        Ok(())
    }
}

fn spawn(core: &Arc<LabCore>, place: Place, socket: Socket) {
    let lab = Arc::clone(core);
    let span = info_span!("usbmuxd socket", ?place);
    core.spawn(span, async move { come_and_go(&lab, &place, socket).await });
}

/// Listens while the daemon is there.
async fn come_and_go(core: &Arc<LabCore>, place: &Place, mut socket: Socket) {
    let mut table = core.mux.watch();
    loop {
        tokio::select! {
            biased;
            () = until(&mut table, |daemon| daemon == Daemon::Down) => {}
            () = accept_all(core, &socket) => {}
        }
        drop(socket);
        until(&mut table, |daemon| daemon != Daemon::Down).await;
        socket = loop {
            match place.bind().await {
                Ok(socket) => break socket,
                Err(error) => warn!(%error, "the socket cannot come back yet"),
            }
            tokio::time::sleep(AGAIN).await;
        };
    }
}

async fn accept_all(core: &Arc<LabCore>, socket: &Socket) {
    loop {
        if let Err(error) = socket.accept(core).await {
            warn!(%error, "a client could not be accepted");
            tokio::time::sleep(AGAIN).await;
        }
    }
}

async fn until(table: &mut watch::Receiver<Table>, is_it: impl Fn(Daemon) -> bool) {
    // The sender lives as long as the lab that runs this.
    drop(table.wait_for(|table| is_it(table.daemon)).await.map(drop));
}

/// Removes the socket of a server that is gone; anything else at that path is
/// left alone, and binding fails.
async fn remove_stale(path: &Path) -> io::Result<()> {
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        Ok(_) | Err(_) => Ok(()),
    }
}
