//! What happens to the fleet, for whoever watches: a bounded ring of events,
//! read by position.
//!
//! ```text
//! publishers ─► ring (the newest) ◄─ readers, each with its position
//!                 └─ head ─► watch: wakes them
//! ```
//!
//! Publishing never waits and knows no readers. A reader owns a position and
//! nothing else, so that a slow one costs nothing: it finds out, when it reads
//! again, how much it has missed. All readers share the events themselves.
//!
//! Invariant: no reader is told an event twice, and none is left out but with
//! word of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use prost::Message;
use tokio::sync::watch;

mod cursor;
mod ring;

pub(crate) use cursor::Cursor;
use cursor::Instance;

use crate::convert::timestamp;
use ring::{Limits, Lost, Ring};

/// How much is kept: half a minute of a thousand phones that each do something
/// every four seconds. Most events have some hundred bytes; those of a phone
/// with the longest labels have 25,000.
const LIMITS: Limits = Limits {
    events: 8192,
    bytes: 16 * 1024 * 1024,
};

/// All that happened of late. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Feed(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    instance: Instance,
    ring: Mutex<Ring<Arc<pb::FleetEvent>>>,
    head: watch::Sender<u64>,
}

/// What follows a cursor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Followed {
    /// These, the oldest first; none if nothing happened since.
    Events(Vec<Arc<pb::FleetEvent>>),
    /// Events that are not here any more, if they ever were.
    Gap {
        /// How many are newer than the cursor, if that is known.
        missed: Option<u64>,
        /// Where to go on, having missed them.
        resume: Cursor,
    },
}

impl Default for Feed {
    fn default() -> Self {
        Self::limited(LIMITS)
    }
}

impl Feed {
    fn limited(limits: Limits) -> Self {
        Self(Arc::new(Shared {
            instance: Instance::mint(),
            ring: Mutex::new(Ring::new(limits)),
            head: watch::Sender::new(0),
        }))
    }

    /// Tells everybody. What an event says must show in whatever a snapshot is
    /// made of before this is called: a watcher takes its snapshot after it has
    /// noted the newest event.
    ///
    /// The event is made when its turn has come, so that of two that tell of
    /// one thing the later one tells the newer. Making it must neither wait nor
    /// tell anything itself.
    pub(crate) fn publish(&self, event: impl FnOnce() -> Event) {
        let mut ring = self.ring();
        let head = ring.push(|seq| {
            let event = pb::FleetEvent {
                seq,
                time: Some(timestamp(SystemTime::now())),
                event: Some(event()),
            };
            let bytes = event.encoded_len();
            (Arc::new(event), bytes)
        });
        // Under the lock, so that the head never goes back.
        self.0.head.send_replace(head);
    }

    /// Behind the newest event.
    pub(crate) fn now(&self) -> Cursor {
        self.at(self.ring().head())
    }

    /// At most `limit` events after a cursor.
    pub(crate) fn after(&self, cursor: Cursor, limit: usize) -> Followed {
        let ring = self.ring();
        let resume = self.at(ring.head());
        if cursor.instance != self.0.instance {
            return Followed::Gap {
                missed: None,
                resume,
            };
        }
        match ring.after(cursor.seq, limit) {
            Ok(events) => Followed::Events(events),
            Err(Lost::Forgotten { missed }) => Followed::Gap {
                missed: Some(missed),
                resume,
            },
            Err(Lost::Ahead) => Followed::Gap {
                missed: None,
                resume,
            },
        }
    }

    /// The number of the newest event, published with each.
    pub(crate) fn head(&self) -> watch::Receiver<u64> {
        self.0.head.subscribe()
    }

    /// The cursor behind the event of this number.
    pub(crate) fn at(&self, seq: u64) -> Cursor {
        Cursor {
            instance: self.0.instance,
            seq,
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring<Arc<pb::FleetEvent>>> {
        // Nothing panics between two steps of a change, so that a poisoned ring
        // is whole.
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Event {
        Event::HostChanged(pb::MuxHost {
            name: name.to_owned(),
            ..pb::MuxHost::default()
        })
    }

    fn seqs(followed: Followed) -> Vec<u64> {
        match followed {
            Followed::Events(events) => events.iter().map(|event| event.seq).collect(),
            Followed::Gap { .. } => panic!("a gap: {followed:?}"),
        }
    }

    #[test]
    fn readers_share_the_events_and_go_their_own_ways() {
        let feed = Feed::default();
        let start = feed.now();
        feed.publish(|| host("one"));
        feed.publish(|| host("two"));
        let (Followed::Events(first), Followed::Events(second)) =
            (feed.after(start, 9), feed.after(start, 9))
        else {
            panic!("no gap")
        };
        assert!(Arc::ptr_eq(&first[0], &second[0]));
        assert_eq!(seqs(feed.after(start, 1)), [1]);
        assert_eq!(seqs(feed.after(feed.at(1), 9)), [2]);
        assert_eq!(seqs(feed.after(feed.now(), 9)), [] as [u64; 0]);
    }

    #[test]
    fn a_cursor_of_another_gateway_or_of_no_event_is_a_gap_of_unknown_size() {
        let (feed, earlier) = (Feed::default(), Feed::default());
        feed.publish(|| host("one"));
        let gap = Followed::Gap {
            missed: None,
            resume: feed.at(1),
        };
        assert_eq!(feed.after(earlier.now(), 9), gap);
        assert_eq!(feed.after(feed.at(2), 9), gap);
    }

    #[test]
    fn who_falls_behind_is_told_by_how_much_and_goes_on_at_the_head() {
        let feed = Feed::limited(Limits {
            events: 2,
            bytes: 1000,
        });
        let start = feed.now();
        for name in ["one", "two", "three"] {
            feed.publish(|| host(name));
        }
        let gap = Followed::Gap {
            missed: Some(3),
            resume: feed.now(),
        };
        assert_eq!(feed.after(start, 9), gap);
    }

    #[tokio::test]
    async fn publishing_wakes_whoever_waits() {
        let feed = Feed::default();
        let mut head = feed.head();
        let waiting = async {
            head.changed().await.unwrap();
            *head.borrow_and_update()
        };
        let (told, ()) = tokio::join!(waiting, async { feed.publish(|| host("one")) });
        assert_eq!(told, 1);
    }
}
