//! A lease as somebody knows it who follows it by `WatchLease`.

use std::time::Duration;

use fleetgate_proto::v1::{Lease, LeaseChange, WatchLeaseResponse};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tonic::{Status, Streaming};

use crate::{PATIENCE, facts};

/// One message.
#[derive(Debug, Clone)]
pub struct Told {
    /// What had changed.
    pub change: LeaseChange,
    /// The lease since.
    pub lease: Lease,
    /// When it came.
    pub at: Instant,
}

impl Told {
    /// What was left to the lease.
    pub fn remaining(&self) -> Duration {
        facts::wait(self.lease.remaining)
    }
}

/// All that a follower was told.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Message by message.
    pub news: Vec<Told>,
    /// How the stream ended, if it has.
    pub ended: Option<Result<(), Status>>,
}

impl Log {
    /// What the messages were about, but for heartbeats.
    pub fn changes(&self) -> Vec<LeaseChange> {
        let changes = self.news.iter().map(|told| told.change);
        let changes = changes.filter(|change| *change != LeaseChange::Heartbeat);
        changes.collect()
    }

    /// The first message that is about this.
    pub fn first(&self, change: LeaseChange) -> Option<&Told> {
        self.news.iter().find(|told| told.change == change)
    }
}

/// Somebody who follows a lease; it ends with this.
#[derive(Debug)]
pub struct Watching {
    log: watch::Receiver<Log>,
    _task: JoinSet<()>,
}

impl Watching {
    /// Takes down what a stream says.
    pub fn follow(mut stream: Streaming<WatchLeaseResponse>) -> Self {
        let (tell, log) = watch::channel(Log::default());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let ended = loop {
                match stream.message().await {
                    Ok(Some(message)) => {
                        let told = Told {
                            change: message.change(),
                            lease: message.lease.expect("every message has the lease"),
                            at: Instant::now(),
                        };
                        tell.send_modify(|log| log.news.push(told));
                    }
                    Ok(None) => break Ok(()),
                    Err(status) => break Err(status),
                }
            };
            tell.send_modify(|log| log.ended = Some(ended));
        });
        Self { log, _task: task }
    }

    /// What was told so far.
    pub fn log(&self) -> Log {
        self.log.borrow().clone()
    }

    /// Waits for the first message that is about this.
    pub async fn until(&mut self, change: LeaseChange) -> Told {
        let is = |log: &Log| log.first(change).is_some();
        let log = self.wait(change.as_str_name(), is).await;
        log.first(change).expect("it has come").clone()
    }

    /// Waits until what was told is like this.
    pub async fn wait(&mut self, what: &str, is: impl FnMut(&Log) -> bool) -> Log {
        // The stream may end meanwhile; what was told then stays.
        if let Ok(Ok(log)) = timeout(PATIENCE, self.log.wait_for(is)).await {
            return log.clone();
        }
        panic!("{what} did not come; this did: {:#?}", self.log.borrow());
    }

    /// Waits until the stream has ended by itself, as it does when the lease has.
    pub async fn end(&mut self) -> Log {
        let log = self.wait("the end", |log| log.ended.is_some()).await;
        assert!(matches!(log.ended, Some(Ok(()))), "{log:#?}");
        log
    }
}
