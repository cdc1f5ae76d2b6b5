//! Who calls, once that is known.
//!
//! Owns the name under which a caller is on record, and its grants. How the
//! caller proved to be this one is not kept. Invariant: two callers with one
//! name are one principal, whatever they proved it with.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::role::{Grant, Role};

/// By what a caller proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The token of this gateway's own discovery record.
    Local,
    /// A token of the token file.
    Token,
    /// A client certificate.
    Certificate,
    /// A JWT.
    Oidc,
    /// Nothing.
    Anonymous,
}

impl Kind {
    /// The word for it; names begin with it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Token => "token",
            Self::Certificate => "cert",
            Self::Oidc => "oidc",
            Self::Anonymous => "anonymous",
        }
    }
}

/// A caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    name: Arc<str>,
    grants: Arc<[Grant]>,
    kind: Kind,
}

impl Principal {
    /// A principal of a name in full, such as `token:ci`.
    pub fn new(kind: Kind, name: impl Into<Arc<str>>, grants: Vec<Grant>) -> Self {
        Self {
            name: name.into(),
            grants: grants.into(),
            kind,
        }
    }

    /// Whoever holds the token of the discovery record: may do anything.
    pub fn local() -> Self {
        let grants = vec![Grant::fleet_wide(Role::Admin)];
        Self::new(Kind::Local, Kind::Local.as_str(), grants)
    }

    /// Whoever says nothing.
    pub fn anonymous(role: Role) -> Self {
        let grants = vec![Grant::fleet_wide(role)];
        Self::new(Kind::Anonymous, Kind::Anonymous.as_str(), grants)
    }

    /// The name on record: `token:ci`, `cert:scheduler`, `oidc:alice`,
    /// `local`, `anonymous`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same, to be kept.
    pub fn shared_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// By what it proved who it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// All that it was given.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The highest role that it has on any phone. None: it is known, and may
    /// do nothing.
    pub fn anywhere(&self) -> Option<Role> {
        self.highest(|_| true)
    }

    /// The role that it has on the fleet as a whole.
    pub fn fleet_wide(&self) -> Option<Role> {
        self.highest(Grant::is_fleet_wide)
    }

    /// The highest role that it has on a phone with these labels.
    pub fn on(&self, labels: &BTreeMap<String, String>) -> Option<Role> {
        self.highest(|grant| grant.covers(labels))
    }

    fn highest(&self, of: impl Fn(&Grant) -> bool) -> Option<Role> {
        let grants = self.grants.iter().filter(|grant| of(grant));
        grants.map(|grant| grant.role).max()
    }

    /// With more grants.
    pub(crate) fn and(self, more: impl IntoIterator<Item = Grant>) -> Self {
        let mut more = more.into_iter().peekable();
        if more.peek().is_none() {
            return self;
        }
        let grants = self.grants.iter().cloned().chain(more).collect();
        Self { grants, ..self }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn principal(grants: &[(Role, &[(&str, &str)])]) -> Principal {
        let grants = grants.iter().map(|(role, pairs)| Grant {
            role: *role,
            labels: labels(pairs),
        });
        Principal::new(Kind::Token, "token:ci", grants.collect())
    }

    #[test]
    fn the_highest_grant_whose_labels_a_phone_has_counts() {
        let ci = principal(&[
            (Role::Viewer, &[]),
            (Role::Operator, &[("rack", "a")]),
            (Role::Admin, &[("rack", "a"), ("use", "ci")]),
        ]);
        let on = |pairs: &[(&str, &str)]| ci.on(&labels(pairs));
        assert_eq!(on(&[]), Some(Role::Viewer));
        assert_eq!(on(&[("rack", "b"), ("use", "ci")]), Some(Role::Viewer));
        assert_eq!(on(&[("rack", "a"), ("use", "ui")]), Some(Role::Operator));
        assert_eq!(
            on(&[("rack", "a"), ("use", "ci"), ("x", "y")]),
            Some(Role::Admin)
        );
        assert_eq!(ci.anywhere(), Some(Role::Admin));
        assert_eq!(ci.fleet_wide(), Some(Role::Viewer));
    }

    #[test]
    fn who_has_no_grant_has_no_role() {
        let nobody = principal(&[]);
        assert_eq!(nobody.anywhere(), None);
        assert_eq!(nobody.fleet_wide(), None);
        assert_eq!(nobody.on(&labels(&[("rack", "a")])), None);
    }

    #[test]
    fn a_grant_with_labels_is_not_for_the_fleet() {
        let ci = principal(&[(Role::Admin, &[("rack", "a")])]);
        assert_eq!(ci.fleet_wide(), None);
        assert_eq!(ci.on(&labels(&[])), None);
    }

    #[test]
    fn roles_are_ordered_and_read_as_they_are_written() {
        assert!(Role::Viewer < Role::Operator && Role::Operator < Role::Admin);
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
        for word in ["Admin", "root", ""] {
            assert!(word.parse::<Role>().is_err());
        }
    }

    proptest! {
        #[test]
        fn more_labels_on_a_phone_never_take_a_role_away(
            grants in prop::collection::vec(
                (0_usize..3, prop::collection::btree_map("[ab]", "[xy]", 0..3)), 0..5),
            few in prop::collection::btree_map("[ab]", "[xy]", 0..3),
            more in prop::collection::btree_map("[cd]", "[xy]", 0..3),
        ) {
            let grants: Vec<_> = grants
                .into_iter()
                .map(|(role, labels)| Grant { role: Role::ALL[role], labels })
                .collect();
            let ci = Principal::new(Kind::Token, "token:ci", grants);
            let mut all = few.clone();
            all.extend(more);
            prop_assert!(ci.on(&all) >= ci.on(&few));
            prop_assert!(ci.on(&few) >= ci.fleet_wide());
            prop_assert!(ci.anywhere() >= ci.on(&all));
        }
    }
}
