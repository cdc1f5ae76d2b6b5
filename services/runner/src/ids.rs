//! The names of things, each in its one canonical spelling.
//!
//! Two spellings of one phone must never become two phones, so a [`Udid`] is
//! normalised when it is made and can be compared as it is.
//!
//! Invariant: a name that exists is usable; nothing checks it again.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// Not a UDID in any known spelling.
    #[error(
        "not a UDID: expected 8-16 or 24 hex digits as in 00008110-000978540290401E, or 40 hex digits"
    )]
    Udid,
    /// A blank or unusable command id.
    #[error("not a command id: expected 1 to {max} visible ASCII characters", max = CommandId::MAX_LEN)]
    CommandId,
    /// A blank or unusable bundle id.
    #[error("not a bundle id: expected 1 to {max} letters, digits, dots, hyphens or underscores", max = BundleId::MAX_LEN)]
    BundleId,
}

macro_rules! name_type {
    ($name:ident) => {
        impl $name {
            /// The canonical spelling.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }
    };
}

/// A phone's one key: `00008110-000978540290401E` (upper case, a dash after
/// eight digits) or forty lower-case hex digits, whatever spelling it came in.
///
/// ```
/// use fleetgate_runner::{InvalidId, Udid};
///
/// let listed: Udid = "0000802000060D691AD8003A".parse()?;
/// let asked: Udid = "00008020-00060d691ad8003a".parse()?;
/// assert_eq!(listed, asked);
/// assert_eq!(asked.to_string(), "00008020-00060D691AD8003A");
/// # Ok::<(), InvalidId>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Udid(Arc<str>);
name_type!(Udid);

impl Udid {
    /// The UDID of the shorter form that these two numbers make up.
    pub fn from_parts(chip: u32, unit: u64) -> Self {
        Self(format!("{chip:08X}-{unit:016X}").into())
    }
}

impl FromStr for Udid {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let text = text.trim();
        let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        if text.len() == 40 && hex(text) {
            return Ok(Self(text.to_ascii_lowercase().into()));
        }
        let parts = match text.len() {
            25 => text.split_once('-'),
            24 => text.split_at_checked(8),
            _ => None,
        };
        match parts {
            Some((chip, unit)) if chip.len() == 8 && unit.len() == 16 && hex(chip) && hex(unit) => {
                Ok(Self(format!("{chip}-{unit}").to_ascii_uppercase().into()))
            }
            Some(_) | None => Err(InvalidId::Udid),
        }
    }
}

/// A command's id: what the runner's journal and the ledger know it by.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommandId(Arc<str>);
name_type!(CommandId);

impl CommandId {
    /// The longest id that is taken.
    pub const MAX_LEN: usize = 128;

    /// A new id that sorts after those minted before it, which keeps the
    /// ledger's index append-mostly.
    pub fn mint() -> Self {
        Self(uuid::Uuid::now_v7().to_string().into())
    }

    /// When it was minted, to the millisecond, if it says so, as those of
    /// [`CommandId::mint`] do.
    pub fn minted(&self) -> Option<SystemTime> {
        let id = uuid::Uuid::try_parse(&self.0).ok()?;
        if id.get_version() != Some(uuid::Version::SortRand) {
            return None;
        }
        let (seconds, nanoseconds) = id.get_timestamp()?.to_unix();
        UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
    }
}

impl FromStr for CommandId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let text = text.trim();
        if text.is_empty()
            || text.len() > Self::MAX_LEN
            || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return Err(InvalidId::CommandId);
        }
        Ok(Self(text.into()))
    }
}

/// An app's bundle id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BundleId(Arc<str>);
name_type!(BundleId);

impl BundleId {
    /// The longest bundle id that is taken.
    pub const MAX_LEN: usize = 255;
}

impl FromStr for BundleId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let text = text.trim();
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if text.is_empty() || text.len() > Self::MAX_LEN || !text.bytes().all(usable) {
            return Err(InvalidId::BundleId);
        }
        Ok(Self(text.into()))
    }
}
