//! The newest events, by position: pure state without I/O.
//!
//! Events are numbered from 1, without holes. A position is the number of the
//! last event that a reader knows; 0 knows none. The ring keeps the newest
//! events, as many as its limits allow, and forgets the others, whoever has not
//! read them yet: it knows no readers.
//!
//! Invariant: what follows a position is told whole and in order, or its loss
//! is.

use std::collections::VecDeque;

/// How much is kept; the newest event always is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// So many events at most.
    pub(super) events: usize,
    /// And no more than have so many bytes together.
    pub(super) bytes: usize,
}

/// The newest events.
#[derive(Debug)]
pub(super) struct Ring<T> {
    limits: Limits,
    /// The number of the newest event; 0 before the first.
    head: u64,
    events: VecDeque<Kept<T>>,
    /// Of all that are kept.
    bytes: usize,
}

#[derive(Debug)]
struct Kept<T> {
    event: T,
    bytes: usize,
}

/// Why nothing follows a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// What followed it is not kept any more; so many events are newer than the
    /// position.
    Forgotten { missed: u64 },
    /// No event has its number yet.
    Ahead,
}

impl<T: Clone> Ring<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            head: 0,
            events: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The number of the newest event.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Adds the event that is made for the next number, and how many bytes it
    /// has; gives the number.
    pub(super) fn push(&mut self, event: impl FnOnce(u64) -> (T, usize)) -> u64 {
        self.head += 1;
        let (event, bytes) = event(self.head);
        self.events.push_back(Kept { event, bytes });
        self.bytes += bytes;
        let Limits {
            events: most,
            bytes: limit,
        } = self.limits;
        while self.events.len() > 1 && (self.events.len() > most || self.bytes > limit) {
            self.bytes -= self.events.pop_front().map_or(0, |oldest| oldest.bytes);
        }
        self.head
    }

    /// At most `limit` events after `position`, the oldest first. None if it is
    /// the newest.
    pub(super) fn after(&self, position: u64, limit: usize) -> Result<Vec<T>, Lost> {
        let missed = self.head.checked_sub(position).ok_or(Lost::Ahead)?;
        let kept = self.events.len();
        // More than can be counted are more than are kept.
        let wanted = usize::try_from(missed).unwrap_or(usize::MAX);
        let first = kept.checked_sub(wanted).ok_or(Lost::Forgotten { missed })?;
        let events = self.events.range(first..).take(limit);
        Ok(events.map(|kept| kept.event.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ring of events of one byte each.
    fn ring(most: usize, events: u64) -> Ring<u64> {
        let mut ring = Ring::new(Limits {
            events: most,
            bytes: 1000,
        });
        for expected in 1..=events {
            assert_eq!(ring.push(|seq| (seq, 1)), expected);
        }
        ring
    }

    #[test]
    fn what_follows_a_position_comes_in_order_and_in_parts() {
        let ring = ring(8, 5);
        assert_eq!(ring.after(0, 2), Ok(vec![1, 2]));
        assert_eq!(ring.after(2, 9), Ok(vec![3, 4, 5]));
        assert_eq!(ring.after(5, 9), Ok(vec![]));
    }

    #[test]
    fn what_was_forgotten_is_counted_and_what_is_to_come_is_no_position() {
        let ring = ring(3, 10);
        assert_eq!(ring.after(7, 9), Ok(vec![8, 9, 10]));
        assert_eq!(ring.after(6, 9), Err(Lost::Forgotten { missed: 4 }));
        assert_eq!(ring.after(11, 9), Err(Lost::Ahead));
        assert_eq!(ring.after(u64::MAX, 9), Err(Lost::Ahead));
    }

    #[test]
    fn large_events_take_the_place_of_many_and_the_newest_is_always_kept() {
        let mut ring = ring(100, 100);
        ring.push(|seq| (seq, 950));
        assert_eq!(ring.after(50, 99).map(|events| events.len()), Ok(51));
        assert_eq!(ring.after(49, 99), Err(Lost::Forgotten { missed: 52 }));
        ring.push(|seq| (seq, 5000));
        assert_eq!(ring.after(101, 99), Ok(vec![102]));
        assert_eq!(ring.after(100, 99), Err(Lost::Forgotten { missed: 2 }));
        ring.push(|seq| (seq, 1));
        assert_eq!(ring.after(102, 99), Ok(vec![103]));
    }

    /// What happens to a ring with one reader.
    #[derive(Debug, Clone)]
    enum Step {
        Push(usize),
        Read(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..12_usize).prop_map(Step::Push),
            1 => (1..6_usize).prop_map(Step::Read),
        ];
        prop::collection::vec(step, 0..80)
    }

    proptest! {
        #[test]
        fn a_reader_is_told_every_event_once_or_how_many_it_missed(
            events in 1..9_usize,
            bytes in 1..60_usize,
            steps in steps(),
        ) {
            let mut ring = Ring::new(Limits { events, bytes });
            let mut position = 0;
            for step in steps {
                match step {
                    Step::Push(bytes) => {
                        ring.push(|seq| (seq, bytes));
                    }
                    Step::Read(limit) => match ring.after(position, limit) {
                        Ok(events) => {
                            prop_assert!(events.len() <= limit);
                            prop_assert_eq!(events.is_empty(), position == ring.head());
                            for event in events {
                                prop_assert_eq!(event, position + 1);
                                position = event;
                            }
                        }
                        Err(Lost::Forgotten { missed }) => {
                            prop_assert_eq!(position + missed, ring.head());
                            position = ring.head();
                        }
                        Err(Lost::Ahead) => prop_assert!(false, "never ahead"),
                    },
                }
                let held: usize = ring.events.iter().map(|kept| kept.bytes).sum();
                prop_assert_eq!(ring.bytes, held);
                prop_assert!(ring.events.len() <= events);
                prop_assert!(ring.bytes <= bytes || ring.events.len() == 1);
            }
        }
    }
}
