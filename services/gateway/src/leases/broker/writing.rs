//! The way into the ledger, and what follows.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use fleetgate_lease::{EndReason, Input, Lease, LeaseId};
use fleetgate_ledger::{LedgerError, NewLeaseWrite};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::ask::Answer;
use super::outbox::{Batch, Effect};
use super::spoilt::is_of_the_rows;
use super::{BEAT, Broker};
use crate::leases::board::LeaseView;

/// How long to wait before the ledger is offered again what it refused, and how
/// long at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

type Written = Result<(), LedgerError>;

/// A write.
pub(super) struct UnderWay {
    pub(super) batch: Batch,
    write: BoxFuture<'static, Written>,
}

impl UnderWay {
    /// Waits for its end.
    pub(super) fn end(&mut self) -> &mut BoxFuture<'static, Written> {
        &mut self.write
    }
}

/// The ledger takes nothing.
#[derive(Debug)]
pub(super) struct Failing {
    error: LedgerError,
    pause: Duration,
    pub(super) until: Instant,
}

impl Failing {
    /// Whether it is too early to try again.
    pub(super) fn is_pausing(&self) -> bool {
        self.until > Instant::now()
    }
}

impl Broker {
    /// Why nothing new is begun, if it is not.
    pub(super) fn refusing(&self) -> Option<LedgerError> {
        let failing = self.failing.as_ref();
        let failing = failing.filter(|failing| failing.is_pausing());
        failing.map(|failing| failing.error.clone())
    }

    /// Why nothing was put on record of late, if it was not.
    pub(super) fn failure(&self) -> Option<LedgerError> {
        self.failing.as_ref().map(|failing| failing.error.clone())
    }

    /// Hands over what was gathered, if nothing is under way.
    pub(super) fn flush(&mut self) {
        let is_pausing = self.failing.as_ref().is_some_and(Failing::is_pausing);
        if self.under_way.is_some() || is_pausing {
            return;
        }
        if self.alone.is_empty() && self.gathered.has_nothing_to_write() {
            if !self.gathered.is_empty() {
                let batch = std::mem::take(&mut self.gathered);
                self.on_record(batch);
            }
            if self.told.elapsed() < BEAT || !self.has_open() {
                return;
            }
        }
        self.write();
    }

    fn write(&mut self) {
        let batch = match self.alone.pop_front() {
            Some(id) => self.gathered.part(&id),
            None => std::mem::take(&mut self.gathered),
        };
        let write = NewLeaseWrite {
            rows: batch.rows.rows.iter().map(|(_, row)| row.clone()).collect(),
            operations: batch
                .operations
                .iter()
                .map(|(_, what)| what.clone())
                .collect(),
            clock: self.clock.now().as_duration(),
        };
        let ledger = self.around.ledger.clone();
        self.told = Instant::now();
        let write = async move { ledger.write_leases(write).await }.boxed();
        self.under_way = Some(UnderWay { batch, write });
    }

    /// A write has ended.
    pub(super) fn written(&mut self, written: Written) {
        let Some(UnderWay { batch, .. }) = self.under_way.take() else {
            return;
        };
        match written {
            Ok(()) => {
                if self.failing.take().is_some() {
                    info!("leases are on record again");
                }
                self.on_record(batch);
                for orphan in std::mem::take(&mut self.orphans) {
                    self.abandon(orphan);
                }
            }
            Err(error) if is_of_the_rows(&error) => self.sort_out(batch, &error),
            Err(error) => self.refused(batch, error),
        }
    }

    /// Offers it again later, but for the leases that are new.
    fn refused(&mut self, mut batch: Batch, error: LedgerError) {
        let attempted = batch.created.clone();
        batch.append(std::mem::take(&mut self.gathered));
        // Their callers are told that there are none; they are or may be on
        // record since an earlier write.
        let told = batch.effects.iter().filter_map(Effect::created);
        let on_record = told.filter(|id| !batch.created.contains(id));
        self.orphans.extend(on_record.cloned());
        let pause = if let Some(failing) = &self.failing {
            (failing.pause * 2).min(LONGEST_PAUSE)
        } else {
            error!(%error, "leases cannot be put on record");
            FIRST_PAUSE
        };
        for answer in batch.answers.drain(..) {
            let is_new = batch.created.contains(answer.view.lease.id());
            answer.fail(is_new, error.clone());
        }
        // Whatever the ledger did not say it has not written may be there.
        let may_be_there = matches!(
            error,
            LedgerError::Storage { .. } | LedgerError::Interrupted
        );
        let orphans = if may_be_there { attempted } else { Vec::new() };
        batch.created.retain(|id| !orphans.contains(id));
        self.orphans.extend(orphans);
        let gone: HashSet<_> = batch.created.drain(..).collect();
        batch.forget(&gone);
        self.gathered = batch;
        for id in gone {
            self.take_back(&id);
        }
        self.failing = Some(Failing {
            error,
            pause,
            until: Instant::now() + pause,
        });
    }

    /// Ends a lease of which nobody has heard.
    pub(super) fn take_back(&mut self, id: &LeaseId) {
        self.void.insert(id.clone());
        // Its request may come again, for another lease.
        self.origins.remove(id);
        self.requests.retain(|_, lease| lease != id);
        self.abandon(id.clone());
        let lease = self.scheduler.lease(id);
        if !lease.is_some_and(|lease| lease.state().is_open()) {
            self.void.remove(id);
        }
    }

    /// Ends a lease whose caller was told that there is none.
    fn abandon(&mut self, id: LeaseId) {
        let end = Input::End {
            id,
            how: EndReason::Released,
            by: None,
            detail: Some("its caller was told that it could not be put on record".to_owned()),
        };
        // Refused if it has ended by itself, or drains already.
        self.step(end).ok();
    }

    /// All that a batch says is on record: what follows from it.
    fn on_record(&mut self, batch: Batch) {
        let Batch {
            mut effects,
            answers,
            ..
        } = batch;
        self.let_run(&mut effects);
        let (mut moved, mut ended) = (BTreeSet::new(), HashMap::new());
        // First who may drive, then who is told so.
        for effect in &effects {
            match effect {
                Effect::Tell(lease, what) => {
                    self.gate.tell(Arc::clone(lease));
                    self.around.meters.changed(lease, *what);
                    if !lease.state().is_open() {
                        moved.extend(lease.devices().iter().cloned());
                        ended.insert(lease.id().clone(), Arc::clone(lease));
                    }
                }
                Effect::Open(device, lease, mark) => {
                    self.gate.open(device, lease, *mark);
                    moved.insert(device.clone());
                }
                Effect::Free(device, mark) => {
                    self.gate.free(device, *mark);
                    moved.insert(device.clone());
                }
                Effect::Recycle(lease, why) => {
                    for device in lease.devices() {
                        // Not what the next holder does there by now.
                        if self.gate.is_busy_with(device, lease.id()) {
                            self.around.fleet.recycle(device, true, why).ok();
                        }
                    }
                }
            }
        }
        for effect in &effects {
            if let Effect::Tell(lease, what) = effect {
                self.board.publish(lease, *what);
            }
        }
        self.has_moved = true;
        self.line_up();
        for device in &moved {
            self.around.fleet.tell_lease(device);
        }
        for Answer { view, to } in answers {
            let id = view.lease.id();
            let newest = self.board.get(id).or_else(|| {
                let lease = Arc::clone(ended.get(id)?);
                let position = None;
                Some(LeaseView { lease, position })
            });
            // Whoever asked may have stopped waiting.
            to.send(Ok(newest.unwrap_or(view))).ok();
        }
    }

    /// Lets the time run of leases whose phones are about to be opened to them,
    /// and tells it with their grants: a ledger that was long in coming takes
    /// nothing from them.
    ///
    /// That the time of a lease runs is told before it is on record. If the gateway
    /// goes in between the next one begins with the whole time again, which is
    /// never less than what was told.
    fn let_run(&mut self, effects: &mut [Effect]) {
        let opened: BTreeSet<_> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Open(_, id, _) => Some(id.clone()),
                Effect::Tell(..) | Effect::Free(..) | Effect::Recycle(..) => None,
            })
            .collect();
        for id in opened {
            // It may have ended meanwhile.
            self.step(Input::Opened { id: id.clone() }).ok();
            let since = self.scheduler.lease(&id).and_then(Lease::opened);
            let Some(since) = since else { continue };
            for effect in effects.iter_mut() {
                if let Effect::Tell(lease, _) = effect
                    && *lease.id() == id
                {
                    Arc::make_mut(lease).open_at(since);
                }
            }
        }
    }

    /// Puts what is known on record, and how far the clock has run, if the ledger
    /// takes it.
    pub(super) async fn finish(mut self) {
        self.asks.close();
        // Who waits to be heard is told that nobody listens.
        while self.asks.try_recv().is_ok() {}
        if let Some(under_way) = &mut self.under_way {
            let written = under_way.end().await;
            self.written(written);
        }
        self.write();
        if let Some(under_way) = &mut self.under_way {
            let written = under_way.end().await;
            if let Err(error) = &written {
                warn!(%error, "leases are not on record as they are");
            }
            self.written(written);
        }
    }
}
