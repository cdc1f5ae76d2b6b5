//! A way to the gateway that can be cut, and led elsewhere.

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A TCP port that leads to a gateway.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Where it begins.
    pub(crate) server: String,
    target: watch::Sender<String>,
    cuts: watch::Sender<u64>,
    _task: JoinSet<()>,
}

impl Pipe {
    /// A way to this gateway.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (target, leads) = watch::channel(place(server));
        let (cuts, cut) = watch::channel(0);
        let mut task = JoinSet::new();
        task.spawn(carry(listener, leads, cut));
        Self {
            server: format!("http://{address}"),
            target,
            cuts,
            _task: task,
        }
    }

    /// Breaks every connection; new ones are carried again.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Carries new connections to another gateway.
    pub(crate) fn lead_to(&self, server: &str) {
        self.target.send_replace(place(server));
    }
}

fn place(server: &str) -> String {
    server.trim_start_matches("http://").to_owned()
}

async fn carry(
    listener: TcpListener,
    leads: watch::Receiver<String>,
    mut cut: watch::Receiver<u64>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (mut near, _) = accepted.unwrap();
                let target = leads.borrow().clone();
                connections.spawn(async move {
                    if let Ok(mut far) = TcpStream::connect(target).await {
                        let _broken = copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
            Ok(()) = cut.changed() => connections.shutdown().await,
            Some(_) = connections.join_next() => {}
        }
    }
}
