//! What is done for callers.

use std::sync::Arc;

use fleetgate_lease::{
    Change, EndReason, Epoch, Explanation, Input, Lease, LeaseId, LeaseState, Obstacle,
    Refused as Unfit,
};
use tokio::sync::oneshot;

use super::Broker;
use super::ask::{Answer, Ask, Explained, LeaseError, Order, To};
use super::outbox::Effect;
use crate::convert::fits_a_lease;
use crate::leases::refused::{Refused, how_it_ended};
use crate::leases::rows::{Origin, forced};

impl Broker {
    pub(super) fn hear(&mut self, ask: Ask) {
        match ask {
            Ask::Create(order, to) => {
                let made = self.create(*order);
                self.answer_when_on_record(made, to);
            }
            Ask::Renew {
                id,
                owner,
                epoch,
                to,
            } => {
                let renewed = self.renew(&id, &owner, epoch);
                self.answer_when_on_record(renewed.map(|()| id), to);
            }
            Ask::Update {
                id,
                owner,
                change,
                to,
            } => {
                let updated = self.update(&id, &owner, change);
                self.answer_when_on_record(updated.map(|()| id), to);
            }
            Ask::Release { id, owner, to } => {
                let released = self.release(&id, owner);
                self.answer_when_on_record(released.map(|()| id), to);
            }
            Ask::Revoke {
                id,
                by,
                reason,
                now,
                to,
            } => {
                let revoked = self.revoke(&id, by, reason, now);
                self.answer_when_on_record(revoked.map(|()| id), to);
            }
            Ask::Explain { id, to } => self.explain(&id, to),
        }
    }

    /// Tells a caller what was done once it is on record, or why it was not.
    fn answer_when_on_record(&mut self, done: Result<LeaseId, LeaseError>, to: To) {
        let done = done.and_then(|id| self.decided(&id).ok_or(LeaseError::NotOpen));
        match done {
            Ok(view) => {
                let answers = &mut self.gathered.answers;
                if self.failing.is_some() {
                    // Whoever has stopped waiting waits for nothing.
                    answers.retain(|answer| !answer.to.is_closed());
                }
                answers.push(Answer { view, to });
            }
            // Whoever asked may have stopped waiting.
            Err(error) => drop(to.send(Err(error))),
        }
    }

    fn create(&mut self, order: Order) -> Result<LeaseId, LeaseError> {
        if let Some(error) = self.refusing() {
            return Err(LeaseError::Ledger(error));
        }
        let Order {
            lease,
            request_id,
            asked,
            address,
        } = order;
        let request = request_id.clone().map(|id| (lease.owner.clone(), id));
        if let Some(request) = &request {
            if let Some(id) = self.requests.get(request) {
                let before = self
                    .origins
                    .get(id)
                    .and_then(|origin| origin.asked.as_ref());
                let fields = before.map_or_else(Vec::new, |before| before.differing(&asked));
                if !fields.is_empty() {
                    return Err(LeaseError::Differs { fields });
                }
                // Its caller has come back for it.
                self.orphans.remove(id);
                return Ok(id.clone());
            }
            if self.recent.contains(request) {
                return Err(LeaseError::LookAgain);
            }
        }
        let limit = self.around.max_open;
        if self.open_of(&lease.owner) >= limit {
            return Err(LeaseError::Quota { limit });
        }
        let known = self.views.values();
        let matching = known.filter(|view| lease.matches(view)).count();
        if matching < lease.wants.count() {
            // One that was taken in just now may not have been told of yet.
            self.look_for_new();
        }
        let id = lease.id.clone();
        let origin = Origin {
            asked: request_id.is_some().then_some(asked),
            request_id,
            address,
        };
        self.origins.insert(id.clone(), origin);
        if let Some(request) = &request {
            self.requests.insert(request.clone(), id.clone());
        }
        if let Err(unfit) = self.step(Input::Create(lease)) {
            self.origins.remove(&id);
            if let Some(request) = &request {
                self.requests.remove(request);
            }
            return Err(unfit.into());
        }
        Ok(id)
    }

    /// How many leases an owner has. What it has given back is not held against
    /// it.
    fn open_of(&self, owner: &str) -> usize {
        let open = self.scheduler.open();
        let counts = |lease: &&Lease| {
            lease.owner() == owner
                && lease.state() != LeaseState::Draining
                && !self.void.contains(lease.id())
        };
        open.filter(counts).count()
    }

    fn renew(&mut self, id: &LeaseId, owner: &str, epoch: Option<Epoch>) -> Result<(), LeaseError> {
        let lease = self.own(id, owner)?;
        if let Some(end) = lease.end() {
            return Err(how_it_ended(&lease, end).into());
        }
        let granted = lease.epoch();
        // Of a grant that is not on record nobody has heard.
        let told = self.board.get(id).and_then(|view| view.lease.epoch());
        if epoch != granted && (epoch.is_some() || told.is_some()) {
            return Err(Refused::EpochStale {
                lease: id.clone(),
                granted,
            }
            .into());
        }
        let renewed = self.step(Input::Renew { id: id.clone() });
        renewed.map_err(|unfit| self.unfit(id, unfit))
    }

    fn update(&mut self, id: &LeaseId, owner: &str, change: Change) -> Result<(), LeaseError> {
        // Each is an operation, which would have to be kept.
        if let Some(error) = self.failure() {
            return Err(LeaseError::Ledger(error));
        }
        let lease = self.own(id, owner)?;
        if let Some(end) = lease.end() {
            return Err(how_it_ended(&lease, end).into());
        }
        let mut labels = lease.labels().clone();
        labels.retain(|key, _| !change.remove_labels.contains(key));
        labels.extend(change.set_labels.clone());
        if !fits_a_lease(&labels, lease.context()) {
            return Err(LeaseError::TooManyLabels);
        }
        let id = id.clone();
        let updated = self.step(Input::Update {
            id: id.clone(),
            change,
        });
        updated.map_err(|unfit| self.unfit(&id, unfit))
    }

    fn release(&mut self, id: &LeaseId, owner: String) -> Result<(), LeaseError> {
        let lease = self.own(id, &owner)?;
        if !lease.state().is_open() {
            return Ok(());
        }
        self.end(id, EndReason::Released, owner, None)
    }

    fn revoke(
        &mut self,
        id: &LeaseId,
        by: String,
        reason: String,
        now: bool,
    ) -> Result<(), LeaseError> {
        let lease = self.known(id)?;
        if !lease.state().is_open() {
            return Ok(());
        }
        self.by_force = now.then(|| id.clone());
        let revoked = self.end(id, EndReason::Revoked, by.clone(), Some(reason.clone()));
        self.by_force = None;
        revoked?;
        if now && lease.epoch().is_some() {
            let ended = self.decided(id).map(|view| view.lease);
            let ended = ended.as_ref().unwrap_or(&lease);
            let how = ended.end().map(|end| end.reason);
            if lease.end().is_some() || how != Some(EndReason::Revoked) {
                // It had ended already, or its time was over: this is what has
                // been done since.
                let operation = forced(ended, by, &reason);
                self.gathered.operations.push((id.clone(), operation));
            }
            let recycle = Effect::Recycle(Arc::clone(ended), reason);
            self.gathered.effects.push(recycle);
        }
        Ok(())
    }

    /// Ends a lease; one that has ended stays as it is.
    fn end(
        &mut self,
        id: &LeaseId,
        how: EndReason,
        by: String,
        detail: Option<String>,
    ) -> Result<(), LeaseError> {
        let end = Input::End {
            id: id.clone(),
            how,
            by: Some(by),
            detail,
        };
        Ok(self.step(end)?)
    }

    fn explain(&mut self, id: &LeaseId, to: oneshot::Sender<Option<Explained>>) {
        let explained = || {
            let view = self.board.get(id)?;
            let mut why = self.scheduler.explain(id, self.clock.now())?;
            as_told(&view.lease, &mut why);
            Some(Explained { view, why })
        };
        // Whoever asked may have stopped waiting.
        to.send(explained()).ok();
    }

    /// A lease that is open, or whose end is not on record yet.
    fn known(&self, id: &LeaseId) -> Result<Arc<Lease>, LeaseError> {
        let view = self.decided(id).filter(|_| !self.void.contains(id));
        Ok(view.ok_or(LeaseError::NotOpen)?.lease)
    }

    fn own(&self, id: &LeaseId, owner: &str) -> Result<Arc<Lease>, LeaseError> {
        let lease = self.known(id)?;
        if lease.owner() != owner {
            return Err(Refused::NotOwner(id.clone()).into());
        }
        Ok(lease)
    }

    /// What a caller is told of what the scheduler refused.
    fn unfit(&mut self, id: &LeaseId, unfit: Unfit) -> LeaseError {
        match unfit {
            Unfit::Ended(_) => {
                // Its time is over by now, at the latest.
                self.tick();
                let view = self.decided(id);
                let told = view.and_then(|view| {
                    let end = view.lease.end()?;
                    Some(how_it_ended(&view.lease, end))
                });
                told.map_or(LeaseError::NotOpen, LeaseError::Refused)
            }
            Unfit::NotFound | Unfit::NotWaiting | Unfit::Unusable(_) => unfit.into(),
        }
    }
}

/// Puts why a lease waits as if nothing had been decided that is not on record:
/// whoever is told of it is told of a lease that waits, although its phones are
/// its own by now.
fn as_told(lease: &Lease, why: &mut Explanation) {
    why.state = lease.state();
    if lease.epoch().is_some() {
        return;
    }
    for device in &mut why.devices {
        if let Obstacle::Leased { lease: holder, .. } = &device.obstacle
            && holder == lease.id()
        {
            device.obstacle = Obstacle::Busy;
        }
    }
}
