//! Values that are checked where they are parsed, so that an error knows its
//! line and whoever holds one need not check it again.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use fleetgate_device::Address;
use fleetgate_runner::Udid;
use serde::{Deserialize, Deserializer, de};

/// Why a value cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableValue {
    /// An address that others than this host could reach.
    #[error(
        "{0} is not a loopback address: the admin server has neither TLS nor authentication and \
         listens on 127.0.0.1 or [::1] only"
    )]
    NotLoopback(SocketAddr),
    /// What no `Host` header names.
    #[error("`{0}` is not a host: expected a name or an address, without a port")]
    Host(String),
    /// What no caller is called.
    #[error(
        "`{0}` is not a principal: expected `token:`, `cert:` or `oidc:` and a name of at most {max} \
         bytes",
        max = super::auth::PrincipalName::MAX
    )]
    Principal(String),
    /// A port that no runner can have.
    #[error(
        "{0} is not a runner's port: expected 1024 to 65535, and not 62078, which is lockdown's"
    )]
    RunnerPort(u16),
    /// An alias that would be taken for a UDID.
    #[error("an alias must not be a UDID")]
    AliasIsUdid,
    /// An alias that cannot be typed or shown.
    #[error("not an alias: expected 1 to {max} printable characters without spaces", max = Alias::MAX_CHARS)]
    Alias,
    /// A name that cannot be typed or shown.
    #[error("not a name: expected 1 to {max} printable characters without spaces", max = Name::MAX_CHARS)]
    Name,
    /// More labels than a phone can have.
    #[error("a phone has at most {max} labels", max = Labels::MOST)]
    Labels,
    /// A key that no label can have.
    #[error(
        "`{0}` is not the key of a label: expected 1 to {max} letters, digits, `.`, `_`, `-` and `/`",
        max = Labels::MAX_KEY
    )]
    LabelKey(String),
    /// A value that no label can have.
    #[error(
        "the value of label {0} is not at most {max} bytes of characters that can be seen",
        max = Labels::MAX_VALUE
    )]
    LabelValue(String),
}

/// A port that a runner may listen on: never a system port, never lockdown's,
/// so that no configuration can turn the gateway against those.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u16")]
pub struct RunnerPort(u16);

impl RunnerPort {
    const LEAST: u16 = 1024;
    const LOCKDOWN: u16 = 62078;

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for RunnerPort {
    type Error = UnusableValue;

    fn try_from(port: u16) -> Result<Self, UnusableValue> {
        if port < Self::LEAST || port == Self::LOCKDOWN {
            Err(UnusableValue::RunnerPort(port))
        } else {
            Ok(Self(port))
        }
    }
}

/// A phone's other name; never one that could be a UDID.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Alias(String);

impl Alias {
    /// The longest alias.
    pub const MAX_CHARS: usize = 64;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Alias {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Alias {
    type Error = UnusableValue;

    fn try_from(text: String) -> Result<Self, UnusableValue> {
        if text.parse::<Udid>().is_ok() {
            return Err(UnusableValue::AliasIsUdid);
        }
        if is_word(&text, Self::MAX_CHARS) {
            Ok(Self(text))
        } else {
            Err(UnusableValue::Alias)
        }
    }
}

/// What a host or a launch is called in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Name(String);

impl Name {
    /// The longest name.
    pub const MAX_CHARS: usize = 64;

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = UnusableValue;

    fn try_from(text: String) -> Result<Self, UnusableValue> {
        if is_word(&text, Self::MAX_CHARS) {
            Ok(Self(text))
        } else {
            Err(UnusableValue::Name)
        }
    }
}

/// Whether a text can be typed and shown as one word.
fn is_word(text: &str, max_chars: usize) -> bool {
    let odd = |c: char| c.is_whitespace() || is_unseen(c);
    !text.is_empty() && text.chars().count() <= max_chars && !text.contains(odd)
}

/// Whether a character shows nothing, or changes how others are shown: two
/// names that differ in such alone look the same. Control characters, and what
/// Unicode calls format characters.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A phone's labels, or those that select phones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "BTreeMap<String, String>")]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// The most labels that one phone can have.
    pub const MOST: usize = 64;
    /// The longest key.
    pub const MAX_KEY: usize = 63;
    /// The longest value in bytes.
    pub const MAX_VALUE: usize = 255;

    /// The labels.
    pub fn get(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// True if `labels` has each of these, with its value.
    pub fn select(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0
            .iter()
            .all(|(key, value)| labels.get(key) == Some(value))
    }

    /// Whether a label can have this key.
    pub fn check_key(key: &str) -> Result<(), UnusableValue> {
        let fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
        if key.is_empty() || key.len() > Self::MAX_KEY || !key.chars().all(fit) {
            return Err(UnusableValue::LabelKey(key.to_owned()));
        }
        Ok(())
    }

    /// Whether the label of this key can have this value.
    pub fn check_value(key: &str, value: &str) -> Result<(), UnusableValue> {
        if value.len() > Self::MAX_VALUE || value.contains(is_unseen) {
            return Err(UnusableValue::LabelValue(key.to_owned()));
        }
        Ok(())
    }
}

impl TryFrom<BTreeMap<String, String>> for Labels {
    type Error = UnusableValue;

    fn try_from(labels: BTreeMap<String, String>) -> Result<Self, UnusableValue> {
        if labels.len() > Self::MOST {
            return Err(UnusableValue::Labels);
        }
        for (key, value) in &labels {
            Self::check_key(key)?;
            Self::check_value(key, value)?;
        }
        Ok(Self(labels))
    }
}

/// A usbmuxd's address from its text.
pub(super) fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Address, D::Error> {
    String::deserialize(deserializer)?
        .parse()
        .map_err(de::Error::custom)
}

/// The same where it may be absent.
pub(super) fn some_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Address>, D::Error> {
    address(deserializer).map(Some)
}

/// A fact about a phone: a line of a length that can be shown.
pub(super) fn fact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    const MAX_CHARS: usize = 64;
    let text = String::deserialize(deserializer)?;
    if text.is_empty() || text.chars().count() > MAX_CHARS || text.contains(char::is_control) {
        return Err(de::Error::custom(format!(
            "expected 1 to {MAX_CHARS} printable characters"
        )));
    }
    Ok(Some(text))
}

/// Longer than anything is waited for, and no clock overflows for it.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// A duration that can be waited for.
pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration: Duration = humantime_serde::deserialize(deserializer)?;
    if duration > LONGEST {
        return Err(de::Error::custom("must not be longer than a year"));
    }
    Ok(duration)
}

/// Such a duration that is not zero.
pub(super) fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = duration(deserializer)?;
    if duration.is_zero() {
        return Err(de::Error::custom("must be longer than nothing"));
    }
    Ok(duration)
}

/// Such a duration of a second or more.
pub(super) fn second_or_more<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Duration, D::Error> {
    let duration = duration(deserializer)?;
    if duration < Duration::from_secs(1) {
        return Err(de::Error::custom("must be at least a second"));
    }
    Ok(duration)
}

/// Such a duration, where it may be absent.
pub(super) fn some_interval<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    interval(deserializer).map(Some)
}

/// A duration that can be waited for, where it may be absent.
pub(super) fn some_duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

/// Such a duration for the kernel, which counts whole seconds and takes no 0.
pub(super) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let duration = interval(deserializer)?;
    if duration.subsec_nanos() != 0 {
        return Err(de::Error::custom("must be whole seconds"));
    }
    Ok(duration)
}
