//! The chain's encoding: what is hashed, so that anybody can compute it again.
//!
//! The ledger's events form a chain: one row of `chain` each, numbered without
//! a gap. The hash of a link is
//!
//! ```text
//! SHA-256( hash of the link before it || encoding of the event )
//! ```
//!
//! and what comes before the very first is 32 zero bytes. Where retention has
//! removed the beginning, the newest row of `checkpoints` holds the number and
//! the hash of the last link that is gone (`chain_seq`, `chain_hash`).
//!
//! The encoding of an event is that of its values, one after the other. A value
//! is encoded by its SQLite type, so a null, a 0 and an empty text differ, and
//! no two sequences of values have one encoding:
//!
//! | value | bytes |
//! |---|---|
//! | NULL | `n` |
//! | INTEGER | `i`, then 8 bytes, two's complement, the highest first |
//! | TEXT | `t`, its length in bytes as 8 bytes, the highest first, then UTF-8 |
//! | BLOB | `b`, its length likewise, then the bytes |
//!
//! The values are, in this order, the link's `seq`, `kind`, `reference` and
//! `at_us`, and then the columns of the rows that the kind refers to:
//!
//! | kind | `reference` is the `seq` of | columns of |
//! |---|---|---|
//! | `opened` | `identity`, always 1 | identity |
//! | `intended`, `carried` | `commands` | command |
//! | `recorded` | `fates` | its command, then the fate |
//! | `concluded`, `repeated`, `resolved`, `carried_fate` | `fates` | fate |
//! | `operation` | `operations` | operation |
//! | `transition` | `device_transitions`, always that of the link | transition |
//! | `pruned` | `checkpoints` | checkpoint |
//!
//! - identity: `ledger_id`, `created_us`
//! - command: `command_id`, `device`, `kind`, `mutation`, `app_bundle_id`,
//!   `parameters`, `asked`, `caller`, `created_us`, and then `principal`,
//!   `lease_id`, `lease_epoch`, all three of them unless all three are null
//! - fate: its command's `command_id`, `revision`, `fate`, `effect`, `reason`,
//!   `message`, `warning`, `hint`, `reactivated`, `attempts`, `recovered`,
//!   `queue_wait_us`, `device_time_us`, `reply`, `reply_bytes`, `why`, `final`,
//!   `concluded_us`
//! - operation: `who`, `what`, `target`, `detail`, `at_us`
//! - transition: `device`, `from_state`, `to_state`, `reason`, `detail`, `at_us`
//! - checkpoint: `ledger_id`, `chain_seq`, `chain_hash`, `pruned_through_us`,
//!   `commands_pruned`, `at_us`
//!
//! JSON columns are hashed as the text that they hold, byte for byte.
//!
//! The last three values of a command came later than the others. A command
//! without any of them is encoded as before there were such columns, so that what
//! was hashed then still is what it was. Within a kind the number of values tells
//! the two forms apart, so that none of the three can be added to a command, or
//! taken from it, without a change of the hash.
//!
//! Every row of those tables is bound by exactly one link. A row without one
//! was put there by somebody else. The other tables are not bound: what is
//! changed in `device_settings` and `leases` is on record as an operation.
//!
//! Invariant: the encoding of a row that could be recorded is never changed.
//! Columns that come later add values only to rows that hold something in them,
//! and such that no row's encoding is also that of another.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The hash of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

/// Not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 hexadecimal digits")]
pub struct InvalidHash;

/// A link by its number and its hash: whoever has kept one can tell whether the
/// chain up to it is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The link's number.
    pub seq: i64,
    /// Its hash.
    pub hash: Hash,
}

impl Head {
    /// Before the first link.
    pub(crate) const NONE: Self = Self {
        seq: 0,
        hash: Hash([0; 32]),
    };

    /// The next link of the chain, which binds what is in `event`.
    pub(crate) fn next(&self, event: &Event) -> Self {
        Self {
            seq: self.seq + 1,
            hash: Hash(
                Sha256::new()
                    .chain_update(self.hash.0)
                    .chain_update(&event.0)
                    .finalize()
                    .into(),
            ),
        }
    }
}

impl Hash {
    /// That of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl TryFrom<&[u8]> for Hash {
    type Error = InvalidHash;

    fn try_from(bytes: &[u8]) -> Result<Self, InvalidHash> {
        bytes.try_into().map(Self).map_err(|_| InvalidHash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}

impl FromStr for Hash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(InvalidHash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                let digit = char::from(*digit).to_digit(16).ok_or(InvalidHash)?;
                *byte = *byte << 4 | u8::try_from(digit).map_err(|_| InvalidHash)?;
            }
        }
        Ok(Self(bytes))
    }
}

/// The encoding of one event.
#[derive(Debug)]
pub(crate) struct Event(Vec<u8>);

impl Event {
    /// Begins with the values that every link has.
    pub(crate) fn new(seq: i64, kind: &str, reference: i64, at_us: i64) -> Self {
        let mut event = Self(Vec::with_capacity(512));
        event.integer(seq);
        event.text(kind);
        event.integer(reference);
        event.integer(at_us);
        event
    }

    pub(crate) fn null(&mut self) {
        self.0.push(b'n');
    }

    pub(crate) fn integer(&mut self, value: i64) {
        self.0.push(b'i');
        self.0.extend(value.to_be_bytes());
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.sized(b't', value.as_bytes());
    }

    pub(crate) fn blob(&mut self, value: &[u8]) {
        self.sized(b'b', value);
    }

    pub(crate) fn text_or_null(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.text(value),
            None => self.null(),
        }
    }

    pub(crate) fn integer_or_null(&mut self, value: Option<i64>) {
        match value {
            Some(value) => self.integer(value),
            None => self.null(),
        }
    }

    fn sized(&mut self, tag: u8, bytes: &[u8]) {
        self.0.push(tag);
        self.0.extend((bytes.len() as u64).to_be_bytes());
        self.0.extend(bytes);
    }
}

#[cfg(test)]
mod tests;
