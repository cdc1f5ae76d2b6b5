//! A way to the gateway that can be cut, and led elsewhere.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional, sink};
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
    deafens: watch::Sender<bool>,
    _task: JoinSet<()>,
}

impl Pipe {
    /// A way to this gateway.
    pub(crate) async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (target, leads) = watch::channel(place(server));
        let (cuts, cut) = watch::channel(0);
        let (deafens, deaf) = watch::channel(false);
        let mut task = JoinSet::new();
        task.spawn(carry(listener, leads, cut, deaf));
        Self {
            server: format!("http://{address}"),
            target,
            cuts,
            deafens,
            _task: task,
        }
    }

    /// Breaks every connection; new ones are carried again.
    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Of new connections nothing comes back but the gateway's first word, by
    /// which it is known as one: every answer is lost.
    pub(crate) fn lose_answers(&self, lose: bool) {
        self.deafens.send_replace(lose);
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
    deaf: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (mut near, _) = accepted.unwrap();
                let (target, is_deaf) = (leads.borrow().clone(), *deaf.borrow());
                connections.spawn(async move {
                    let Ok(mut far) = TcpStream::connect(target).await else {
                        return;
                    };
                    let _broken = if is_deaf {
                        one_word_back(near, far).await
                    } else {
                        copy_bidirectional(&mut near, &mut far).await.map(drop)
                    };
                });
            }
            Ok(()) = cut.changed() => connections.shutdown().await,
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn one_word_back(near: TcpStream, far: TcpStream) -> io::Result<()> {
    let ((mut asks, mut hears), (mut says, mut takes)) = (near.into_split(), far.into_split());
    let back = async {
        let mut word = [0; 4096];
        let length = says.read(&mut word).await?;
        hears.write_all(&word[..length]).await?;
        copy(&mut says, &mut sink()).await
    };
    tokio::try_join!(copy(&mut asks, &mut takes), back).map(drop)
}
