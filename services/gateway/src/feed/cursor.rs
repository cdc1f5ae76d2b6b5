//! Where a watcher is: `<instance>-<number of the last event it knows>`.
//!
//! Opaque to clients. Numbers start anew with every gateway, so that a cursor
//! names the one that gave it out.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// One life of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Instance(Uuid);

impl Instance {
    /// A new one, unlike any other.
    pub(super) fn mint() -> Self {
        Self(Uuid::now_v7())
    }
}

/// A position in the feed of one gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(super) instance: Instance,
    pub(super) seq: u64,
}

impl Cursor {
    /// The number of the event that it is behind.
    pub(crate) fn seq(self) -> u64 {
        self.seq
    }
}

/// Text that no gateway gave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a cursor of this call")]
pub(crate) struct MalformedCursor;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.instance.0.simple(), self.seq)
    }
}

impl FromStr for Cursor {
    type Err = MalformedCursor;

    fn from_str(text: &str) -> Result<Self, MalformedCursor> {
        let (instance, seq) = text.split_once('-').ok_or(MalformedCursor)?;
        let cursor = Self {
            instance: Instance(Uuid::try_parse(instance).map_err(|_| MalformedCursor)?),
            seq: seq.parse().map_err(|_| MalformedCursor)?,
        };
        // Other spellings of the same are not ours.
        if cursor.to_string() == text {
            Ok(cursor)
        } else {
            Err(MalformedCursor)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text() {
        let instance = Instance::mint();
        for seq in [0, 1, u64::MAX] {
            let cursor = Cursor { instance, seq };
            assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn what_no_gateway_gave_out_is_malformed() {
        const INSTANCE: &str = "0198f3a2b4c87d21a5e60123456789ab";
        assert!(format!("{INSTANCE}-7").parse::<Cursor>().is_ok());
        for text in [
            String::new(),
            "7".to_owned(),
            "-7".to_owned(),
            INSTANCE.to_owned(),
            format!("{INSTANCE}-"),
            format!("{INSTANCE}-07"),
            format!("{INSTANCE}-+7"),
            format!("{INSTANCE}--7"),
            format!("{INSTANCE}-7-7"),
            format!("{INSTANCE}-7 "),
            format!("{INSTANCE}-18446744073709551616"),
            format!("{}-7", INSTANCE.to_uppercase()),
            format!("{}-7", &INSTANCE[1..]),
            "0198f3a2-b4c8-7d21-a5e6-0123456789ab-7".to_owned(),
        ] {
            assert_eq!(text.parse::<Cursor>(), Err(MalformedCursor), "{text}");
        }
    }
}
