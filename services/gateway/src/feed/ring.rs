//! The newest events, by position: pure state without I/O.
//!
//! Events are numbered from 1, without holes. A position is the number of the
//! last event that a reader knows; 0 knows none. The ring keeps the newest
//! `capacity` events and forgets the others, whoever has not read them yet: it
//! knows no readers.
//!
//! Invariant: what follows a position is told whole and in order, or its loss
//! is.

use std::collections::VecDeque;
use std::num::NonZeroUsize;

/// The newest events.
#[derive(Debug)]
pub(super) struct Ring<T> {
    capacity: NonZeroUsize,
    /// The number of the newest event; 0 before the first.
    head: u64,
    events: VecDeque<T>,
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
    pub(super) fn new(capacity: NonZeroUsize) -> Self {
        Self {
            capacity,
            head: 0,
            events: VecDeque::new(),
        }
    }

    /// The number of the newest event.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Adds the event that is made for the next number, and gives the number.
    pub(super) fn push(&mut self, event: impl FnOnce(u64) -> T) -> u64 {
        self.head += 1;
        if self.events.len() == self.capacity.get() {
            self.events.pop_front();
        }
        self.events.push_back(event(self.head));
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
        Ok(self.events.range(first..).take(limit).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ring(capacity: usize, events: u64) -> Ring<u64> {
        let mut ring = Ring::new(NonZeroUsize::new(capacity).unwrap());
        for expected in 1..=events {
            assert_eq!(ring.push(|seq| seq), expected);
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

    /// What happens to a ring with one reader.
    #[derive(Debug, Clone)]
    enum Step {
        Push(u64),
        Read(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..12_u64).prop_map(Step::Push),
            (1..6_usize).prop_map(Step::Read),
        ];
        prop::collection::vec(step, 0..60)
    }

    proptest! {
        #[test]
        fn a_reader_is_told_every_event_once_or_how_many_it_missed(
            capacity in 1..9_usize,
            steps in steps(),
        ) {
            let mut ring = ring(capacity, 0);
            let mut position = 0;
            for step in steps {
                match step {
                    Step::Push(count) => for _ in 0..count {
                        ring.push(|seq| seq);
                    },
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
                            prop_assert!(missed > capacity as u64);
                            prop_assert_eq!(position + missed, ring.head());
                            position = ring.head();
                        }
                        Err(Lost::Ahead) => prop_assert!(false, "never ahead"),
                    },
                }
                prop_assert!(ring.events.len() <= capacity);
            }
        }
    }
}
