//! Where a page ended.
//!
//! A token carries what is asked for, or a hash of it, so that it cannot be used
//! for anything else, and the range of rows that is left. To clients it is
//! opaque. It is no secret and not signed: whoever forges one reads other pages
//! of what the query may read anyway.

use std::fmt;
use std::str::FromStr;

use base64_simd::URL_SAFE_NO_PAD;
use fleetgate_runner::{CommandKind, Fate, Udid};
use serde::{Deserialize, Serialize};

use crate::error::LedgerError;
use crate::query::CommandQuery;
use crate::time::bound;

/// Longer text is not looked at: the longest that is ever given out is well
/// below.
const MAX_LEN: usize = 2048;

/// Where a page ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageToken {
    /// Only rows before this one are left.
    pub(crate) before: i64,
    /// None of them is before this one.
    pub(crate) floor: i64,
    pub(crate) scope: Scope,
}

/// What is read page by page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Scope {
    /// With filters of this hash.
    Commands(String),
    /// Of this phone.
    Transitions(Udid),
    /// With filters of this hash.
    Leases(String),
    /// Likewise.
    Operations(String),
}

/// What a query asks for, in one spelling.
#[derive(Debug, Serialize)]
pub(crate) struct Filter {
    pub(crate) device: Option<Udid>,
    pub(crate) kinds: Vec<CommandKind>,
    pub(crate) fates: Vec<Option<Fate>>,
    pub(crate) from_us: Option<i64>,
    pub(crate) to_us: Option<i64>,
    pub(crate) principal: Option<String>,
    pub(crate) lease: Option<String>,
}

impl Filter {
    pub(crate) fn of(query: &CommandQuery) -> Self {
        let mut kinds = query.kinds.clone();
        kinds.sort_unstable_by_key(|kind| kind.as_str());
        kinds.dedup();
        let mut fates = query.fates.clone();
        fates.sort_unstable_by_key(|fate| fate.map(|fate| fate as u8));
        fates.dedup();
        Self {
            device: query.device.clone(),
            kinds,
            fates,
            from_us: query.from.map(bound),
            to_us: query.to.map(bound),
            principal: query.principal.clone(),
            lease: query.lease.clone(),
        }
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_vec(self).map_err(|_| fmt::Error)?;
        f.write_str(&URL_SAFE_NO_PAD.encode_to_string(json))
    }
}

impl FromStr for PageToken {
    type Err = LedgerError;

    fn from_str(text: &str) -> Result<Self, LedgerError> {
        if text.len() > MAX_LEN {
            return Err(LedgerError::InvalidPageToken);
        }
        let json = URL_SAFE_NO_PAD
            .decode_to_vec(text.as_bytes())
            .map_err(|_| LedgerError::InvalidPageToken)?;
        let token: Self =
            serde_json::from_slice(&json).map_err(|_| LedgerError::InvalidPageToken)?;
        if token.floor < 0 || token.before < token.floor {
            return Err(LedgerError::InvalidPageToken);
        }
        Ok(token)
    }
}
