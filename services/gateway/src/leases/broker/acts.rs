//! What the scheduler wants done.

use std::sync::Arc;

use fleetgate_lease::{Act, Input, Lease, LeaseId, Refused, What};
use fleetgate_runner::Udid;
use futures_util::FutureExt;
use tracing::{debug, info};

use super::outbox::Effect;
use super::{Broker, RECENT};
use crate::leases::board::LeaseView;
use crate::leases::clock::wall_now;
use crate::leases::gate::{Closed, Mark};
use crate::leases::refused::how_it_ended;
use crate::leases::rows::{operation, row};

impl Broker {
    /// Tells the scheduler something, does what it wants done, and tells it which
    /// phones are idle until that is all.
    pub(super) fn step(&mut self, input: Input) -> Result<(), Refused> {
        let now = self.clock.now();
        let acts = self.scheduler.step(input, now, wall_now())?;
        self.carry_out(acts);
        Ok(())
    }

    /// Does it, in order.
    pub(super) fn carry_out(&mut self, acts: Vec<Act>) {
        let mut more = Some(acts);
        while let Some(acts) = more {
            self.has_moved |= !acts.is_empty();
            for act in acts {
                self.act(act);
            }
            more = self.next_idle();
        }
    }

    /// What the scheduler wants done about the next phone that is idle.
    fn next_idle(&mut self) -> Option<Vec<Act>> {
        while let Some((device, mark)) = self.idle.pop_front() {
            // Not any more if it was closed for another since, or freed.
            if self.questions.get(&device) != Some(&mark) {
                continue;
            }
            self.questions.remove(&device);
            let input = Input::Idle { device };
            let now = self.clock.now();
            match self.scheduler.step(input, now, wall_now()) {
                Ok(acts) => return Some(acts),
                Err(error) => debug!(%error, "a phone is idle that nobody waits for"),
            }
        }
        None
    }

    /// Nothing is under way any more behind a door that was closed.
    pub(super) fn is_idle(&mut self, device: Udid, mark: Mark) {
        // A runner that was ended for it is not the next one's.
        self.follow();
        self.awaited.remove(&device);
        match self.questions.get(&device) {
            Some(question) if *question == mark => self.idle.push_back((device, mark)),
            // It was closed again since.
            Some(_) => {
                let closed = self.gate.closed(&device);
                self.ask_when_idle(&device, closed);
            }
            None => {}
        }
        self.carry_out(Vec::new());
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Close(device, lease) => self.close(&device, &lease),
            Act::Changed(lease, what) => self.changed(*lease, what),
            Act::Open(device, lease) => {
                if !self.void.contains(&lease) {
                    let mark = self.gate.mark(&device);
                    let effects = &mut self.gathered.effects;
                    effects.push(Effect::Open(device, lease, mark));
                }
            }
            Act::Free(device) => {
                self.questions.remove(&device);
                let mark = self.gate.mark(&device);
                self.gathered.effects.push(Effect::Free(device, mark));
            }
        }
    }

    fn close(&mut self, device: &Udid, id: &LeaseId) {
        let lease = self.scheduler.lease(id);
        let ended = lease.and_then(|lease| lease.end().map(|end| (lease, end)));
        let closed = match ended {
            Some((lease, end)) => {
                let why = how_it_ended(lease, end).withdrawn();
                if !self.void.contains(id) {
                    self.gate.tell(Arc::new(lease.clone()));
                }
                self.gate.withdraw(device, id, why)
            }
            None => self.gate.reserve(device, id),
        };
        self.ask_when_idle(device, closed);
    }

    fn ask_when_idle(&mut self, device: &Udid, closed: Closed) {
        self.questions.insert(device.clone(), closed.mark());
        if closed.is_idle() {
            self.idle.push_back((device.clone(), closed.mark()));
        } else if self.awaited.insert(device.clone()) {
            self.busy.push(closed.idle().boxed());
        }
    }

    fn changed(&mut self, lease: Lease, what: What) {
        let id = lease.id().clone();
        let (state, device) = (lease.state(), lease.devices().iter().next());
        info!(lease.id = %id, ?what, %state, device.id = device.map(Udid::as_str), "lease changed");
        let lease = Arc::new(lease);
        if self.void.contains(&id) {
            if what == What::Ended {
                self.void.remove(&id);
            }
            return;
        }
        self.record(&lease, what);
        if what == What::Created {
            self.gathered.created.push(id);
        }
        self.gathered.tell(Arc::clone(&lease), what);
        if !lease.state().is_open() {
            self.forget(&lease);
        }
    }

    fn record(&mut self, lease: &Lease, what: What) {
        let id = lease.id();
        let origin = self.origins.get(id).cloned().unwrap_or_default();
        let by_force = self.by_force.as_ref() == Some(id);
        let operation = operation(lease, what, by_force);
        let operation = operation.map(|mut operation| {
            if let (What::Created, Some(address)) = (what, &origin.address) {
                let detail = &mut operation.detail;
                detail.insert("address".to_owned(), address.clone().into());
            }
            (id.clone(), operation)
        });
        self.gathered.operations.extend(operation);
        self.gathered.rows.put(id.clone(), row(lease, &origin));
    }

    /// A lease has ended. Its request is remembered for a while.
    fn forget(&mut self, lease: &Lease) {
        let origin = self.origins.remove(lease.id()).unwrap_or_default();
        if let Some(request_id) = origin.request_id {
            let request = (lease.owner().to_owned(), request_id);
            self.requests.remove(&request);
            self.recent.push_back(request);
            if self.recent.len() > RECENT {
                self.recent.pop_front();
            }
        }
    }

    /// A lease as it is by what is decided, whether that is on record or not.
    pub(super) fn decided(&self, id: &LeaseId) -> Option<LeaseView> {
        let lease = match self.scheduler.lease(id) {
            Some(lease) => Arc::new(lease.clone()),
            None => self.last_told(id)?,
        };
        let position = self.scheduler.position(id);
        Some(LeaseView { lease, position })
    }

    fn last_told(&self, id: &LeaseId) -> Option<Arc<Lease>> {
        let gathered = self.gathered.last_told(id);
        let under_way = || self.under_way.as_ref()?.batch.last_told(id);
        gathered.or_else(under_way).map(Arc::clone)
    }
}
