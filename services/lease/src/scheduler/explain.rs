//! Why a lease waits.
//!
//! Owns what is said to stand in the way of each phone. Invariant: a lease that
//! waits after a step, and for which no phones are kept, finds fewer phones
//! without an obstacle than it wants.

use std::collections::BTreeMap;

use super::{Entry, Scheduler, order, place};
use crate::explanation::{DeviceExplanation, Explanation, Obstacle};
use crate::fleet::Slot;
use crate::id::LeaseId;
use crate::lease::Lease;
use crate::state::LeaseState;
use crate::time::LeaseTime;
use crate::wants::Service;

pub(super) fn explain(scheduler: &Scheduler, entry: &Entry, now: LeaseTime) -> Explanation {
    let lease = &entry.lease;
    let waits = lease.state == LeaseState::Queued;
    let ahead = || {
        let before = scheduler.waiting.range(..place(lease));
        before.map(|(_, id)| id).filter(|_| waits)
    };
    let mut kept_back = BTreeMap::new();
    let wishes = scheduler.wishes(ahead());
    for (id, phones) in order::kept_back(&scheduler.fleet, wishes) {
        for number in phones.iter() {
            kept_back.insert(number, id);
        }
    }
    let matching = scheduler.fleet.matching(&lease.asked);
    let numbers = scheduler.fleet.by_udid();
    let devices = numbers.filter(|number| matching.contains(*number));
    let devices = devices.map(|number| DeviceExplanation {
        udid: scheduler.fleet.device(number).udid.clone(),
        obstacle: obstacle(scheduler, lease.id(), number, &kept_back, now),
    });
    Explanation {
        state: lease.state,
        wanted: lease.asked.wants.count(),
        devices: devices.collect(),
        ahead: ahead().cloned().collect(),
    }
}

fn obstacle(
    scheduler: &Scheduler,
    asking: &LeaseId,
    number: usize,
    kept_back: &BTreeMap<usize, &LeaseId>,
    now: LeaseTime,
) -> Obstacle {
    let device = scheduler.fleet.device(number);
    // First of all what is there to stay: that it is leased besides does not
    // matter while it could not be granted anyway.
    match device.service() {
        Service::InService => {}
        Service::Detached => return Obstacle::Detached,
        Service::Quarantined => return Obstacle::Quarantined,
        Service::Cordoned => return Obstacle::Cordoned,
        Service::NotReady => return Obstacle::NotReady,
    }
    match device.slot() {
        Slot::Held { lease } | Slot::Draining { lease, .. } => {
            let holder = scheduler.lease(lease);
            let until = holder.and_then(Lease::latest_end);
            Obstacle::Leased {
                lease: lease.clone(),
                until: until.filter(|until| *until > now),
            }
        }
        Slot::Reserved { lease, idle } if lease == asking => {
            if *idle {
                Obstacle::None
            } else {
                Obstacle::Busy
            }
        }
        Slot::Reserved { lease, .. } => Obstacle::Reserved {
            lease: lease.clone(),
        },
        Slot::Free => kept_back
            .get(&number)
            .map_or(Obstacle::None, |lease| Obstacle::Reserved {
                lease: (*lease).clone(),
            }),
    }
}
