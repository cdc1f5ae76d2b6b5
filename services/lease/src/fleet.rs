//! The phones and whose they are.
//!
//! Owns the slot of each phone and what is known of it. Refuses to decide who is
//! next. Invariant: a phone has one slot, whatever is known of it; one that was
//! seen is never forgotten.

use std::collections::{BTreeMap, BTreeSet};

use fleetgate_runner::Udid;

mod bits;
mod facts;

pub(crate) use bits::Bits;
use facts::Facts;

use crate::id::{Epoch, LeaseId};
use crate::lease::NewLease;
use crate::wants::{DeviceView, Service, Wants};

/// Whose a phone is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Nobody's.
    Free,
    /// It is kept for a lease that waits for it to be idle, if it is not yet.
    Reserved { lease: LeaseId, idle: bool },
    /// A lease has it.
    Held { lease: LeaseId },
    /// A lease had it, which waits for it to be idle, if it is not yet.
    Draining { lease: LeaseId, idle: bool },
}

/// A phone.
#[derive(Debug, Clone)]
pub(crate) struct Device {
    pub(crate) udid: Udid,
    pub(crate) view: Option<DeviceView>,
    slot: Slot,
    /// The last grant of it that is known.
    granted: Option<Epoch>,
}

impl Device {
    /// Whose it is.
    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Whether it can be granted; one that nobody has seen is not there.
    pub(crate) fn service(&self) -> Service {
        self.view
            .as_ref()
            .map_or(Service::Detached, |view| view.service)
    }
}

/// What has changed of a phone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) number: usize,
    /// What it matches may have changed.
    pub(crate) facts: bool,
    /// It went out of service.
    pub(crate) lost: bool,
}

/// All phones. Each has a number, which is its own for as long as this lives.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fleet {
    devices: Vec<Device>,
    numbers: BTreeMap<Udid, usize>,
    facts: Facts,
    free: Bits,
    in_service: Bits,
    /// Least recently granted first, then by UDID.
    order: BTreeSet<(Option<Epoch>, Udid, usize)>,
}

impl Fleet {
    /// A phone by its number.
    pub(crate) fn device(&self, number: usize) -> &Device {
        &self.devices[number]
    }

    /// The number of a phone, if it is known.
    pub(crate) fn number(&self, udid: &Udid) -> Option<usize> {
        self.numbers.get(udid).copied()
    }

    /// The number of a phone, which it gets if it has none.
    pub(crate) fn enrol(&mut self, udid: &Udid) -> usize {
        if let Some(number) = self.number(udid) {
            return number;
        }
        let number = self.devices.len();
        self.devices.push(Device {
            udid: udid.clone(),
            view: None,
            slot: Slot::Free,
            granted: None,
        });
        self.numbers.insert(udid.clone(), number);
        self.free.set(number, true);
        self.order.insert((None, udid.clone(), number));
        number
    }

    /// Takes in what a phone is now.
    pub(crate) fn see(&mut self, view: DeviceView) -> News {
        let number = self.enrol(&view.udid);
        let device = &mut self.devices[number];
        let was_in_service = device.service() == Service::InService;
        let is_in_service = view.service == Service::InService;
        self.in_service.set(number, is_in_service);
        let facts = device
            .view
            .as_ref()
            .is_none_or(|before| !same_facts(before, &view));
        if facts {
            self.facts.replace(number, device.view.as_ref(), &view);
        }
        device.view = Some(view);
        News {
            number,
            facts,
            lost: was_in_service && !is_in_service,
        }
    }

    /// Says whose a phone is now.
    pub(crate) fn put(&mut self, number: usize, slot: Slot) {
        self.free.set(number, slot == Slot::Free);
        self.devices[number].slot = slot;
    }

    /// Notes that a phone was granted.
    pub(crate) fn note_grant(&mut self, number: usize, epoch: Epoch) {
        let device = &mut self.devices[number];
        let before = (device.granted, device.udid.clone(), number);
        self.order.remove(&before);
        device.granted = Some(epoch);
        self.order.insert((Some(epoch), before.1, number));
    }

    /// Forgets when a phone was granted.
    #[cfg(test)]
    pub(crate) fn forget_grant(&mut self, number: usize) {
        let device = &mut self.devices[number];
        let granted = device.granted.take();
        let udid = device.udid.clone();
        self.order.remove(&(granted, udid.clone(), number));
        self.order.insert((None, udid, number));
    }

    /// The phones that match and that something is known of.
    pub(crate) fn matching(&self, wish: &NewLease) -> Bits {
        let within = self.facts.within(&wish.reach);
        match &wish.wants {
            Wants::Devices(devices) => {
                let numbers = devices.iter().filter_map(|udid| self.number(udid));
                let numbers: Bits = numbers.collect();
                numbers.common(&within)
            }
            Wants::Matching { selector, .. } => self.facts.matching(selector).common(&within),
        }
    }

    /// The phones that can be granted once they are free.
    pub(crate) fn in_service(&self) -> &Bits {
        &self.in_service
    }

    /// The phones that can be granted.
    pub(crate) fn grantable(&self) -> Bits {
        self.free.common(&self.in_service)
    }

    /// The numbers of all phones, the least recently granted first, then by
    /// UDID.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = usize> {
        self.order.iter().map(|(_, _, number)| *number)
    }

    /// The numbers of all phones by UDID.
    pub(crate) fn by_udid(&self) -> impl Iterator<Item = usize> {
        self.numbers.values().copied()
    }
}

fn same_facts(one: &DeviceView, other: &DeviceView) -> bool {
    one.labels == other.labels
        && one.model == other.model
        && one.os_version == other.os_version
        && one.host == other.host
}
