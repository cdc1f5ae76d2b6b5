//! What the fleet goes through, on its way to those who watch and into the
//! ledger.
//!
//! ```text
//! keepers, hosts, recorder ─► chronicle ─► feed, at once
//!                                 └─ transitions ─► queue ─► writer ─► ledger
//! ```
//!
//! Telling never waits and never fails: a phone's keeper has better things to
//! do than to wait for a disk. What the ledger cannot take, or what finds the
//! queue full, is lost from the history of states, and that it was is logged
//! once and put on record when the ledger takes entries again. Commands and
//! operators' acts do not go this way. What a phone goes through faster than it
//! is worth recording one by one ([`limit`]) is told all the same, and summed up
//! in the ledger.
//!
//! Invariant: transitions of one phone are recorded in the order in which they
//! were told.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fleetgate_ledger::{Ledger, LedgerError, NewOperation, NewTransition};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_runner::Udid;
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, error, info_span, warn};

use crate::convert::state_name;
use crate::feed::Feed;
use crate::metrics::Counters;

mod limit;

use limit::Limits;

/// How many transitions may wait for the ledger: a thousand phones that lose
/// their usbmuxd, find it again and have their runners looked for.
const QUEUE: usize = 8192;

/// How many are handed to the ledger at once, which commits together what
/// waits.
const BATCH: usize = 256;

/// Tells what happens. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Chronicle {
    feed: Feed,
    counters: Counters,
    transitions: mpsc::Sender<NewTransition>,
    overflow: Arc<AtomicU64>,
}

/// The writer of transitions; it ends with this.
#[derive(Debug)]
pub(crate) struct ChronicleTask {
    stop: CancellationToken,
    writer: JoinSet<()>,
}

impl Chronicle {
    /// Tells to this feed and this ledger, and counts here.
    pub(crate) fn new(feed: Feed, ledger: Ledger, counters: Counters) -> (Self, ChronicleTask) {
        Self::with_queue(feed, ledger, counters, QUEUE)
    }

    fn with_queue(
        feed: Feed,
        ledger: Ledger,
        counters: Counters,
        queue: usize,
    ) -> (Self, ChronicleTask) {
        let (transitions, waiting) = mpsc::channel(queue);
        let (overflow, stop) = (Arc::<AtomicU64>::default(), CancellationToken::new());
        let writer = Writer {
            ledger,
            waiting,
            limits: Limits::default(),
            overflow: Arc::clone(&overflow),
            stop: stop.clone(),
            missing: 0,
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(writer.run().instrument(info_span!("chronicle")));
        let chronicle = Self {
            feed,
            counters,
            transitions,
            overflow,
        };
        let writer = tasks;
        (chronicle, ChronicleTask { stop, writer })
    }

    /// A phone came into another state, or went through something in the one
    /// that it is in. `message` gives the phone as a snapshot shows it by now;
    /// see [`Feed::publish`].
    pub(crate) fn moved(
        &self,
        device: &Udid,
        message: impl FnOnce() -> pb::Device,
        transition: pb::DeviceTransition,
    ) {
        self.counters.moved(&transition);
        let recorded = recorded(device, &transition);
        self.feed.publish(|| {
            Event::DeviceChanged(pb::DeviceChanged {
                device: Some(message()),
                transition: Some(transition),
            })
        });
        if self.transitions.try_send(recorded).is_err() {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A phone is not what it was, in the state that it is in.
    pub(crate) fn changed(&self, message: impl FnOnce() -> pb::Device) {
        self.feed.publish(|| {
            Event::DeviceChanged(pb::DeviceChanged {
                device: Some(message()),
                transition: None,
            })
        });
    }

    /// An alarm was raised or has ended.
    pub(crate) fn alarm(&self, device: &Udid, alarm: pb::Alarm, ended: bool) {
        if !ended {
            self.counters.alarmed(&alarm);
        }
        let changed = pb::AlarmChanged {
            device: device.to_string(),
            alarm: Some(alarm),
            ended,
        };
        self.feed.publish(|| Event::Alarm(changed));
    }

    /// A host was connected to or lost.
    pub(crate) fn host(&self, host: pb::MuxHost) {
        self.feed.publish(|| Event::HostChanged(host));
    }

    /// A command has a fate, or another one than was told.
    pub(crate) fn command(&self, fate: pb::CommandFate) {
        self.feed.publish(|| Event::Command(fate));
    }
}

impl ChronicleTask {
    /// Records what was told so far, as far as the ledger takes it, and nothing
    /// more.
    pub(crate) async fn shutdown(mut self) {
        self.stop.cancel();
        // A panic of the writer has been reported.
        while self.writer.join_next().await.is_some() {}
    }
}

fn recorded(device: &Udid, transition: &pb::DeviceTransition) -> NewTransition {
    NewTransition {
        device: device.clone(),
        from: state_name(transition.from()),
        to: state_name(transition.to()),
        reason: transition.reason.clone(),
        detail: transition.detail.clone(),
    }
}

#[derive(Debug)]
struct Writer {
    ledger: Ledger,
    waiting: mpsc::Receiver<NewTransition>,
    limits: Limits,
    /// How many found the queue full, since this was last looked at.
    overflow: Arc<AtomicU64>,
    stop: CancellationToken,
    /// How many are missing from the ledger, and not yet on record as missing.
    missing: u64,
}

impl Writer {
    async fn run(mut self) {
        let (mut told, mut batch) = (Vec::with_capacity(BATCH), Vec::new());
        let mut more = true;
        while more {
            more = self.next(&mut told).await;
            let now = Instant::now();
            for transition in told.drain(..) {
                self.limits.offer(transition, now, &mut batch);
            }
            if more {
                self.limits.release(now, &mut batch);
            } else {
                self.limits.finish(now, &mut batch);
            }
            let wanted = batch.len();
            let refused = self.write(&mut batch).await;
            self.count(refused.first(), refused.len());
            if refused.is_empty() {
                self.settle().await;
            } else if refused.len() == wanted && self.stop.is_cancelled() {
                // The gateway does not wait for a ledger that takes nothing.
                self.limits.finish(now, &mut batch);
                let rest = self.waiting.len() + batch.len();
                self.count(None, rest);
                break;
            }
        }
        if self.missing > 0 {
            warn!(self.missing, "transitions of phones are not on record");
        }
    }

    /// Hands over the batch and gives what the ledger answered to what it did
    /// not take. Phones go together; of one phone, each transition waits for the
    /// one before it, which nothing else would keep it behind.
    async fn write(&self, batch: &mut Vec<NewTransition>) -> Vec<LedgerError> {
        let mut phones = HashMap::<Udid, Vec<NewTransition>>::new();
        for entry in batch.drain(..) {
            phones.entry(entry.device.clone()).or_default().push(entry);
        }
        let phones = phones.into_values().map(|entries| async {
            let mut refused = Vec::new();
            for entry in entries {
                refused.extend(self.ledger.transition(entry).await.err());
            }
            refused
        });
        join_all(phones).await.concat()
    }

    /// Takes what waits, which is nothing when a summary is due; false if nothing
    /// ever comes any more.
    async fn next(&mut self, told: &mut Vec<NewTransition>) -> bool {
        if !self.waiting.is_closed() {
            let due = self.limits.due();
            let summary = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stop.cancelled() => self.waiting.close(),
                count = self.waiting.recv_many(told, BATCH) => return count > 0,
                () = summary => return true,
            }
        }
        self.waiting.recv_many(told, BATCH).await > 0
    }

    /// Counts what is lost; the first of an episode is logged.
    fn count(&mut self, refused: Option<&LedgerError>, lost: usize) {
        let overflow = self.overflow.swap(0, Ordering::Relaxed);
        let lost = overflow + u64::try_from(lost).unwrap_or(u64::MAX);
        if lost > 0 && self.missing == 0 {
            let why = refused.map(ToString::to_string);
            let why = why.as_deref().unwrap_or("the ledger is too slow");
            error!(why, "transitions of phones cannot be recorded");
        }
        self.missing = self.missing.saturating_add(lost);
    }

    /// The end of an episode: that something is missing goes on record.
    async fn settle(&mut self) {
        if self.missing == 0 {
            return;
        }
        let operation = NewOperation {
            who: "fleetgate".to_owned(),
            what: "transitions-lost".to_owned(),
            target: None,
            detail: [("count".to_owned(), self.missing.into())]
                .into_iter()
                .collect(),
        };
        if self.ledger.operation(operation).await.is_ok() {
            warn!(
                self.missing,
                "transitions are recorded again; some are missing"
            );
            self.missing = 0;
        }
    }
}

#[cfg(test)]
mod tests;
