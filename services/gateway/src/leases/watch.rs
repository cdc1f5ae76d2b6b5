//! `WatchLease`: one lease as it is, then every change.
//!
//! ```text
//!   SNAPSHOT ──► WAITING ── changed ──► what is new of it, in the order of its
//!      │          │  ▲  │               life ── it has ended ──► the end
//!      │          │  └──┴── little is left: EXPIRING; nothing for long: HEARTBEAT
//!      │          └── stop ──► UNAVAILABLE
//!      └── it had ended ──► the end
//! ```
//!
//! Whoever may not hear of the lease any more, by the phones that it has got or
//! by their labels, is told that there is none, and nothing after that.
//!
//! Of places in the line, and of renewals, a slow reader sees the newest only.
//!
//! Invariant: that it was granted, drains and has ended is told once each, and
//! nothing follows the end.

use std::collections::VecDeque;
use std::time::Duration;

use fleetgate_lease::{Lease, LeaseId, LeaseState, LeaseTime};
use fleetgate_proto::v1 as pb;
use futures_util::Stream;
use futures_util::future::OptionFuture;
use futures_util::stream::unfold;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::board::{Bulletin, LeaseView};
use super::clock::LeaseClock;
use crate::convert;
use crate::deadline::Deadline;
use crate::status;

#[cfg(test)]
mod tests;

/// What a stream is made of.
#[derive(Debug)]
pub(crate) struct WatchConfig {
    pub(crate) clock: LeaseClock,
    pub(crate) heartbeat: Duration,
    pub(crate) deadline: Deadline,
    /// Ends it.
    pub(crate) stop: CancellationToken,
}

/// What there is to be followed.
#[derive(Debug)]
pub(crate) enum Followed {
    /// A lease that is open.
    Open(Follower),
    /// One that has ended.
    Ended(LeaseView),
}

/// Hears of one lease.
#[derive(Debug)]
pub(crate) struct Follower(pub(super) watch::Receiver<Bulletin>);

/// One watcher.
#[derive(Debug)]
struct Watcher {
    config: WatchConfig,
    bulletin: Option<watch::Receiver<Bulletin>>,
    view: LeaseView,
    seen: Seen,
    news: VecDeque<(pb::LeaseChange, LeaseView)>,
    told: Instant,
}

/// What was told of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    state: Option<LeaseState>,
    position: Option<usize>,
    updates: u64,
    granted: bool,
    draining: bool,
    ended: bool,
    /// The end that it was said to be close to.
    expiring: Option<LeaseTime>,
}

/// Why a stream ends.
#[derive(Debug)]
enum End {
    Complete,
    Draining,
    Hidden(LeaseId),
}

/// The messages of one watcher, each of them if it may hear of the lease then.
pub(crate) fn watch(
    followed: Followed,
    config: WatchConfig,
    may_hear: impl Fn(&Lease) -> bool + Send + Sync,
) -> impl Stream<Item = Result<pb::WatchLeaseResponse, Status>> + Send {
    let (bulletin, view, seen) = match followed {
        Followed::Open(Follower(mut bulletin)) => {
            let now = bulletin.borrow_and_update().clone();
            (Some(bulletin), now.view.clone(), Seen::of(&now))
        }
        Followed::Ended(view) => (None, view, Seen::default()),
    };
    let deadline = config.deadline;
    let watcher = Watcher {
        config,
        bulletin,
        news: VecDeque::from([(pb::LeaseChange::Snapshot, view.clone())]),
        view,
        seen,
        told: Instant::now(),
    };
    unfold(Some((watcher, may_hear)), move |watcher| async move {
        let (mut watcher, may_hear) = watcher?;
        match deadline.wait(watcher.next(&may_hear)).await {
            Ok(Ok(message)) => Some((Ok(message), Some((watcher, may_hear)))),
            Ok(Err(End::Complete)) => None,
            Ok(Err(End::Draining)) => Some((Err(status::watch_draining()), None)),
            Ok(Err(End::Hidden(id))) => Some((Err(status::lease_unknown(&id)), None)),
            Err(_passed) => Some((Err(status::deadline_exceeded()), None)),
        }
    })
}

impl Watcher {
    async fn next(
        &mut self,
        may_hear: &(impl Fn(&Lease) -> bool + Sync),
    ) -> Result<pb::WatchLeaseResponse, End> {
        loop {
            if let Some((change, view)) = self.news.pop_front() {
                if !may_hear(&view.lease) {
                    return Err(End::Hidden(view.lease.id().clone()));
                }
                self.told = Instant::now();
                return Ok(pb::WatchLeaseResponse {
                    change: change.into(),
                    lease: Some(convert::lease(&view, self.config.clock)),
                });
            }
            self.wait().await?;
        }
    }

    /// Waits until there is news.
    async fn wait(&mut self) -> Result<(), End> {
        let Some(bulletin) = self.bulletin.as_mut().filter(|_| !self.seen.ended) else {
            return Err(End::Complete);
        };
        let expiring = self.seen.expiring(&self.view.lease);
        let expiring = expiring.map(|at| sleep_until(self.config.clock.instant(at)));
        let beat = self.told + self.config.heartbeat;
        tokio::select! {
            biased;
            changed = bulletin.changed() => {
                // Nobody tells of it any more although it has not ended.
                changed.map_err(|_closed| End::Draining)?;
                let now = bulletin.borrow_and_update().clone();
                self.news.extend(self.seen.news(&now));
                self.view = now.view;
            }
            () = self.config.stop.cancelled() => return Err(End::Draining),
            Some(()) = OptionFuture::from(expiring) => {
                self.seen.expiring = self.view.lease.deadline();
                self.news.push_back((pb::LeaseChange::Expiring, self.view.clone()));
            }
            () = sleep_until(beat) => {
                self.news.push_back((pb::LeaseChange::Heartbeat, self.view.clone()));
            }
        }
        Ok(())
    }
}

impl Seen {
    /// What a snapshot tells.
    fn of(bulletin: &Bulletin) -> Self {
        Self {
            state: Some(bulletin.view.lease.state()),
            position: bulletin.view.position,
            updates: bulletin.updates,
            granted: bulletin.view.lease.epoch().is_some(),
            draining: bulletin.view.lease.end().is_some(),
            ended: bulletin.ended.is_some(),
            expiring: None,
        }
    }

    /// When it is to be told that little is left, unless it was.
    fn expiring(&self, lease: &Lease) -> Option<LeaseTime> {
        let at = lease.expiring_at()?;
        (self.expiring != lease.deadline()).then_some(at)
    }

    /// What is new, in the order of a lease's life.
    fn news(&mut self, now: &Bulletin) -> Vec<(pb::LeaseChange, LeaseView)> {
        let before = std::mem::replace(self, Self::of(now));
        self.expiring = before.expiring;
        let newest = || now.view.clone();
        let then = |lease: &Option<std::sync::Arc<Lease>>| {
            let lease = lease.clone().unwrap_or_else(|| newest().lease);
            let position = None;
            LeaseView { lease, position }
        };
        let mut news = Vec::new();
        let has_moved = before.position != self.position || before.state != self.state;
        if self.state == Some(LeaseState::Queued) && has_moved {
            news.push((pb::LeaseChange::Queued, newest()));
        }
        if self.granted && !before.granted {
            news.push((pb::LeaseChange::Granted, then(&now.granted)));
        }
        if self.updates != before.updates && !self.draining {
            news.push((pb::LeaseChange::Updated, newest()));
        }
        if now.draining.is_some() && !before.draining {
            news.push((pb::LeaseChange::Draining, then(&now.draining)));
        }
        if self.ended && !before.ended {
            news.push((pb::LeaseChange::Ended, then(&now.ended)));
        }
        news
    }
}
