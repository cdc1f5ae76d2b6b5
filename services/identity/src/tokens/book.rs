//! What a token file says.
//!
//! Owns its form. Refuses a file that says anything that is not known, rather
//! than to take half of what its author meant. Invariant: an id is of one
//! token.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::TokenInfo;
use crate::error::IdentityError;
use crate::guard::{self, Links};
use crate::role::Grant;
use crate::text::{Hash, TokenId};

const VERSION: u32 = 1;
/// Room for thousands of tokens.
const MAX_SIZE: u64 = 4 << 20;

const HEAD: &str = "\
# Tokens of fleetgate: made, listed and revoked by `fleetgate token`.
# What is called a secret here is its SHA-256; no token can be made from it.

";

/// All tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    version: u32,
    #[serde(default, rename = "token", skip_serializing_if = "Vec::is_empty")]
    entries: Vec<Entry>,
}

/// One token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) id: TokenId,
    pub(super) name: String,
    pub(super) secret: Hash,
    #[serde(with = "humantime_serde")]
    pub(super) created: SystemTime,
    #[serde(
        default,
        with = "humantime_serde",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) expires: Option<SystemTime>,
    #[serde(
        default,
        with = "humantime_serde",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) revoked: Option<SystemTime>,
    #[serde(default, rename = "grant", skip_serializing_if = "Vec::is_empty")]
    pub(super) grants: Vec<Grant>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.info() == other.info() && self.secret.is(&other.secret).into()
    }
}

impl Entry {
    pub(super) fn info(&self) -> TokenInfo {
        TokenInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            grants: self.grants.clone(),
            created: self.created,
            expires: self.expires,
            revoked: self.revoked,
        }
    }
}

impl Default for Book {
    fn default() -> Self {
        Self {
            version: VERSION,
            entries: Vec::new(),
        }
    }
}

impl Book {
    /// Reads the file; nothing if there is none.
    pub(super) fn read(path: &Path) -> Result<Option<Self>, IdentityError> {
        let (file, _) = match guard::open_private(path, Links::Followed) {
            Err(IdentityError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        guard::unmoved(path)?;
        let text = guard::read_text(file, path, MAX_SIZE)?;
        let book = Self::parse(&text).map_err(|reason| IdentityError::Content {
            path: path.to_owned(),
            reason,
        });
        book.map(Some)
    }

    /// Reads a text. What is wrong with it is said without any of its words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let book: Self = toml::from_str(text).map_err(|error| fault(text, &error))?;
        if book.version != VERSION {
            return Err(format!(
                "it is of version {}, and this program knows {VERSION}",
                book.version
            ));
        }
        let mut ids = BTreeSet::new();
        for entry in &book.entries {
            if entry.id == TokenId::local() {
                return Err("`local` is no id of a token in a file".to_owned());
            }
            if !ids.insert(&entry.id) {
                return Err(format!("two tokens have the id {}", entry.id));
            }
        }
        Ok(book)
    }

    pub(super) fn text(&self) -> Result<String, toml::ser::Error> {
        let tokens = toml::to_string(self)?;
        Ok(format!("{HEAD}{tokens}"))
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    pub(super) fn add(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    pub(super) fn find(&self, id: &TokenId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.id == *id)
    }

    /// The token of this id, or the one of this name that is not revoked.
    pub(super) fn named(&mut self, which: &str) -> Result<&mut Entry, IdentityError> {
        let by_id = |entry: &Entry| entry.id.as_str() == which;
        let by_name = |entry: &Entry| entry.name == which && entry.revoked.is_none();
        let named = self.entries.iter().filter(|entry| by_name(entry));
        let named: Vec<_> = named.map(|entry| entry.id.to_string()).collect();
        let mut place = self.entries.iter().position(by_id);
        if place.is_none() {
            if named.len() > 1 {
                return Err(IdentityError::SeveralTokens {
                    name: which.to_owned(),
                    ids: named,
                });
            }
            place = self.entries.iter().position(by_name);
        }
        let entry = place.and_then(|place| self.entries.get_mut(place));
        entry.ok_or_else(|| IdentityError::NoToken {
            which: which.to_owned(),
        })
    }
}

/// The line and the message of an error, without what the message quotes: that
/// may be what is not to be seen. The name of what is missing is ours.
fn fault(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let message = if message.starts_with("missing field") {
        message
    } else {
        let ours = message.split(['"', '`', '\'']).next();
        ours.unwrap_or_default().trim_end()
    };
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message.to_owned(),
    }
}

/// A time as it is written.
pub(super) fn whole_seconds(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[cfg(test)]
mod tests;
