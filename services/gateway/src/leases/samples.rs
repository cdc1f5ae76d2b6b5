//! Leases for tests, each as the scheduler makes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fleetgate_lease::{
    Act, DeviceView, EndReason, Input, Lease, LeaseTime, NewLease, Priority, Reach, Scheduler,
    Service, Terms, Wants,
};
use fleetgate_runner::Udid;

use super::clock::wall_now;
use super::rows::mint;

/// The phone of this number.
pub(crate) fn phone(number: u64) -> Udid {
    Udid::from_parts(0x8110, number)
}

/// A wish for the phones of these numbers.
pub(crate) fn wish(owner: &str, phones: &[u64]) -> NewLease {
    NewLease {
        id: mint(),
        owner: owner.to_owned(),
        wants: Wants::Devices(phones.iter().copied().map(phone).collect()),
        reach: Reach::Everywhere,
        priority: Priority(0),
        terms: Terms {
            ttl: Duration::from_secs(60),
            max_duration: Duration::from_secs(600),
            queue_timeout: Duration::from_secs(300),
        },
        begin: None,
        labels: BTreeMap::new(),
        context: BTreeMap::new(),
        created: wall_now(),
    }
}

/// One lease on its way.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    scheduler: Scheduler,
    phones: BTreeSet<Udid>,
    lease: Arc<Lease>,
}

impl Sample {
    /// It waits.
    pub(crate) fn queued(owner: &str, phones: &[u64], last_epoch: u64) -> Self {
        let wish = wish(owner, phones);
        let (mut scheduler, _) = Scheduler::resume(Vec::new(), last_epoch + 1, LeaseTime::ZERO);
        let phones: BTreeSet<_> = phones.iter().copied().map(phone).collect();
        step(&mut scheduler, views(&phones, Service::NotReady));
        let id = wish.id.clone();
        step(&mut scheduler, Input::Create(wish));
        Self {
            lease: Arc::new(scheduler.lease(&id).unwrap().clone()),
            scheduler,
            phones,
        }
    }

    /// It has its phones; the number of its grant is 7.
    pub(crate) fn granted(owner: &str, phones: &[u64]) -> Self {
        Self::queued(owner, phones, 6).granting()
    }

    /// The same that has waited.
    pub(crate) fn granting(mut self) -> Self {
        self.step(views(&self.phones, Service::InService));
        self.idle();
        let id = self.lease.id().clone();
        self.step(Input::Opened { id });
        self
    }

    /// The same once it was kept for another ttl.
    pub(crate) fn renewed(mut self) -> Self {
        let id = self.lease.id().clone();
        self.step(Input::Renew { id });
        self
    }

    /// It ends, and drains if it was granted.
    pub(crate) fn ending(mut self, how: EndReason) -> Self {
        self.step(Input::End {
            id: self.lease.id().clone(),
            how,
            by: Some("token:ci".to_owned()),
            detail: Some("needed elsewhere".to_owned()),
        });
        self
    }

    /// It has ended, and its phones are free.
    pub(crate) fn ended(self, how: EndReason) -> Self {
        let mut sample = self.ending(how);
        sample.idle();
        sample
    }

    /// As it is.
    pub(crate) fn lease(&self) -> Arc<Lease> {
        Arc::clone(&self.lease)
    }

    fn idle(&mut self) {
        for device in self.phones.clone() {
            self.step(Input::Idle { device });
        }
    }

    fn step(&mut self, input: Input) {
        for act in step(&mut self.scheduler, input) {
            if let Act::Changed(lease, _) = act {
                self.lease = Arc::new(*lease);
            }
        }
    }
}

fn step(scheduler: &mut Scheduler, input: Input) -> Vec<Act> {
    let at = LeaseTime::new(Duration::from_secs(1));
    scheduler.step(input, at, wall_now()).unwrap()
}

fn views(phones: &BTreeSet<Udid>, service: Service) -> Input {
    let view = |udid: &Udid| DeviceView {
        udid: udid.clone(),
        labels: BTreeMap::new(),
        model: None,
        os_version: None,
        host: None,
        service,
    };
    Input::Devices(phones.iter().map(view).collect())
}
