//! Which phones there are: those of the configuration, those that something was
//! ever set about or left behind at, and those that have been seen on a usbmuxd
//! since.
//!
//! A phone has one place under its canonical UDID, whatever it is called; it is
//! never forgotten while the process lives.
//!
//! Invariant: nobody waits for one lock while holding another. Whoever is told
//! of a phone looks at the phones, so that it is told of without their lock, and
//! looks without that of the news.

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
    /// Tells that one was taken in.
    news: watch::Sender<()>,
}

impl Roster {
    /// Takes a phone in.
    pub(super) fn add(&self, phone: Arc<Phone>) {
        {
            let mut phones = self.phones.write().unwrap_or_else(PoisonError::into_inner);
            phones.insert(phone.udid.clone(), phone);
        }
        self.news.send_replace(());
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

    /// Looks until there is something to be seen: now, and after each phone that
    /// is taken in.
    pub(super) async fn until<T>(&self, look: impl Fn() -> Option<T>) -> T {
        // From before the first look, so that nothing is missed between two.
        let mut news = self.news.subscribe();
        loop {
            // Not by `wait_for`, which looks under a lock.
            if let Some(seen) = look() {
                return seen;
            }
            // Cannot fail: the sender lives as long as this.
            news.changed().await.ok();
        }
    }

    fn read<T>(&self, look: impl FnOnce(&BTreeMap<Udid, Arc<Phone>>) -> T) -> T {
        // Nothing panics between two steps of a change, so that what is in a
        // poisoned lock is whole.
        look(&self.phones.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::time::{Duration, SystemTime};

    use futures_util::FutureExt;

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
    }

    /// Fails where this would go on for ever.
    fn in_time(work: impl FnOnce() + Send + 'static) {
        let (done, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            work();
            done.send(()).unwrap();
        });
        ended.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn a_phone_can_be_taken_in_while_somebody_looks_for_one() {
        in_time(|| {
            let roster = Roster::default();
            let wanted = phone("00008110-000978540290401E");
            let look = || {
                roster.add(Arc::clone(&wanted));
                roster.get(&wanted.udid)
            };
            assert!(roster.until(look).now_or_never().is_some());
        });
    }

    #[test]
    fn phones_can_be_looked_at_while_one_is_taken_in_and_not_told_of_yet() {
        in_time(|| {
            let roster = Arc::<Roster>::default();
            let (news, new) = (roster.news.subscribe(), phone("00008110-000978540290401E"));
            let nobody_is_told = news.borrow();
            let (other, its) = (Arc::clone(&roster), Arc::clone(&new));
            let adding = std::thread::spawn(move || other.add(its));
            while roster.get(&new.udid).is_none() {
                std::thread::yield_now();
            }
            drop(nobody_is_told);
            adding.join().unwrap();
        });
    }

    #[tokio::test]
    async fn whoever_looks_for_a_phone_sees_it_once_it_is_taken_in() {
        let (roster, new) = (Roster::default(), phone("00008110-000978540290401E"));
        let mut seen = pin!(roster.until(|| roster.get(&new.udid)));
        assert!(seen.as_mut().now_or_never().is_none());
        roster.add(phone("00008020-00060D691AD8003A"));
        assert!(seen.as_mut().now_or_never().is_none());
        roster.add(Arc::clone(&new));
        assert_eq!(seen.await.udid, new.udid);
    }
}
