//! What a caller may do, and on which phones.
//!
//! Owns the order of the roles and the rule by which a grant reaches a phone.
//! Which call needs which role is not known here. Invariant: a grant with
//! labels never reaches beyond the phones that have all of them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much a caller may do; each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Look.
    Viewer,
    /// Drive phones, and lease them.
    Operator,
    /// Run the fleet: cordon, revoke, recycle.
    Admin,
}

impl Role {
    /// All of them, the lowest first.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// The word for it, as in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A word that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no role: viewer, operator and admin are")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

/// A role on some phones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What may be done.
    pub role: Role,
    /// The labels that a phone must have, all of them. None: the whole fleet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Grant {
    /// A role on the whole fleet.
    pub fn fleet_wide(role: Role) -> Self {
        Self {
            role,
            labels: BTreeMap::new(),
        }
    }

    /// Whether it is for the whole fleet, whatever phones there will be.
    pub fn is_fleet_wide(&self) -> bool {
        self.labels.is_empty()
    }

    /// Whether it is for a phone that has these labels.
    pub fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut wanted = self.labels.iter();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    }
}
