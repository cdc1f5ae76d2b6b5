//! Which phones there are: those of the configuration, those that something was
//! ever set about or left behind at, and those that have been seen on a usbmuxd
//! since.
//!
//! A phone has one place under its canonical UDID, whatever it is called; it is
//! never forgotten while the process lives.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, PoisonError, RwLock};

use fleetgate_runner::Udid;
use tokio::sync::watch;

use super::phone::Phone;

/// Every phone by its UDID.
#[derive(Debug, Default)]
pub(super) struct Roster {
    phones: RwLock<BTreeMap<Udid, Arc<Phone>>>,
    /// How many there are.
    count: watch::Sender<usize>,
}

impl Roster {
    /// Takes a phone in.
    pub(super) fn add(&self, phone: Arc<Phone>) {
        let mut phones = self.phones.write().unwrap_or_else(PoisonError::into_inner);
        phones.insert(phone.udid.clone(), phone);
        self.count.send_replace(phones.len());
    }

    /// One phone.
    pub(super) fn get(&self, udid: &Udid) -> Option<Arc<Phone>> {
        self.read(|phones| phones.get(udid).cloned())
    }

    /// At most `limit` phones after `udid`, in order.
    pub(super) fn after(&self, udid: Option<&Udid>, limit: usize) -> Vec<Arc<Phone>> {
        let from = (udid.map_or(Unbounded, Excluded), Unbounded);
        self.read(|phones| {
            let rest = phones.range::<Udid, _>(from);
            rest.take(limit)
                .map(|(_, phone)| Arc::clone(phone))
                .collect()
        })
    }

    /// Changes whenever a phone is taken in.
    pub(super) fn count(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<Udid, Arc<Phone>>) -> T) -> T {
        // Nothing panics between two steps of a change, so that what is in a
        // poisoned lock is whole.
        look(&self.phones.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn phone(udid: &str) -> Arc<Phone> {
        let udid = udid.parse().unwrap();
        Arc::new(Phone::new(udid, None, None, SystemTime::UNIX_EPOCH))
    }

    #[test]
    fn phones_are_listed_in_order_from_any_point() {
        let roster = Roster::default();
        let (later, earlier) = (
            phone("00008110-000978540290401E"),
            phone("00008020-00060D691AD8003A"),
        );
        roster.add(Arc::clone(&later));
        roster.add(Arc::clone(&earlier));
        let after = |from: Option<&Udid>, limit| {
            let phones = roster.after(from, limit);
            let udids = phones.iter().map(|phone| phone.udid.as_str().to_owned());
            udids.collect::<Vec<_>>().join(" ")
        };
        let both = format!("{} {}", earlier.udid, later.udid);
        assert_eq!(after(None, 9), both);
        assert_eq!(after(None, 1), earlier.udid.as_str());
        assert_eq!(after(Some(&earlier.udid), 9), later.udid.as_str());
        assert_eq!(after(Some(&later.udid), 9), "");
        assert_eq!(*roster.count().borrow(), 2);
    }
}
