//! A pair record: the keys by which a phone trusts this host.

use std::fmt;

use bytes::Bytes;

/// A property list of its own, opaque to usbmuxd. It holds private keys, so
/// formatting it shows its length only.
#[derive(Clone, PartialEq, Eq)]
pub struct PairRecord(pub Bytes);

impl fmt::Debug for PairRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PairRecord({} bytes)", self.0.len())
    }
}
