//! Sets of phones by their numbers, so that a thousand phones are compared with
//! what five hundred leases want in a few thousand steps.
//!
//! Invariant: a set that was never told of a phone does not contain it, however
//! many there are by now.

/// A set of small numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Takes a number in, or out.
    pub(crate) fn set(&mut self, number: usize, contained: bool) {
        let (word, bit) = (number / 64, 1 << (number % 64));
        if contained {
            if self.0.len() <= word {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= bit;
        } else if let Some(word) = self.0.get_mut(word) {
            *word &= !bit;
        }
    }

    /// Whether it contains a number.
    pub(crate) fn contains(&self, number: usize) -> bool {
        let word = self.0.get(number / 64).copied().unwrap_or(0);
        word & (1 << (number % 64)) != 0
    }

    /// Whether it contains none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many it contains.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| ones(*word)).sum()
    }

    /// How many of another it contains.
    pub(crate) fn count_common(&self, other: &Self) -> usize {
        self.words(other).map(ones).sum()
    }

    /// What it contains of another.
    pub(crate) fn common(&self, other: &Self) -> Self {
        Self(self.words(other).collect())
    }

    /// Takes in all that another contains.
    pub(crate) fn add_all(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word |= other;
        }
    }

    /// Takes out all that another contains.
    pub(crate) fn remove_all(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(&other.0) {
            *word &= !other;
        }
    }

    /// What it contains, the lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let bits = (0..64).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| at * 64 + bit)
        })
    }

    fn words(&self, other: &Self) -> impl Iterator<Item = u64> {
        self.0.iter().zip(&other.0).map(|(one, other)| one & other)
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<T: IntoIterator<Item = usize>>(numbers: T) -> Self {
        let mut bits = Self::default();
        for number in numbers {
            bits.set(number, true);
        }
        bits
    }
}

fn ones(word: u64) -> usize {
    // At most 64.
    word.count_ones() as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_sets(
            mut one: BTreeSet<usize>,
            other in prop::collection::btree_set(0..300_usize, 0..40),
            out in 0..400_usize,
        ) {
            one = one.into_iter().map(|number| number % 300).collect();
            let (mut bits, others) = (
                one.iter().copied().collect::<Bits>(),
                other.iter().copied().collect::<Bits>(),
            );
            let both = one.intersection(&other).count();
            prop_assert_eq!(bits.count(), one.len());
            prop_assert_eq!(bits.iter().collect::<Vec<_>>(), one.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(bits.is_empty(), one.is_empty());
            prop_assert_eq!(bits.count_common(&others), both);
            prop_assert_eq!(bits.common(&others).count(), both);
            prop_assert_eq!(bits.contains(out), one.contains(&out));
            bits.remove_all(&others);
            bits.set(out, false);
            for number in 0..400 {
                let left = one.contains(&number) && !other.contains(&number) && number != out;
                prop_assert_eq!(bits.contains(number), left);
            }
        }
    }
}
