//! What is known of tokens: all but the tokens.

use std::collections::BTreeMap;
use std::time::SystemTime;

use fleetgate_identity::{Grant, TokenInfo};
use serde::Serialize;

use crate::output::{clean, pairs, sparse_columns};
use crate::when;

/// A token as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TokenView {
    id: String,
    name: String,
    principal: String,
    state: State,
    grants: Vec<GrantView>,
    created: Option<String>,
    expires: Option<String>,
    revoked: Option<String>,
}

/// Whether it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    InForce,
    Expired,
    Revoked,
}

/// What it may do, and where.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct GrantView {
    role: String,
    labels: BTreeMap<String, String>,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::InForce => "in force",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl From<&Grant> for GrantView {
    fn from(grant: &Grant) -> Self {
        Self {
            role: grant.role.to_string(),
            labels: grant.labels.clone(),
        }
    }
}

impl GrantView {
    fn text(&self) -> String {
        let labels: Vec<_> = self
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        if labels.is_empty() {
            self.role.clone()
        } else {
            format!("{} where {}", self.role, labels.join(","))
        }
    }
}

impl TokenView {
    /// How it is now.
    pub(crate) fn new(info: &TokenInfo, now: SystemTime) -> Self {
        let state = if info.revoked.is_some() {
            State::Revoked
        } else if info.is_in_force(now) {
            State::InForce
        } else {
            State::Expired
        };
        let stamp = |time: SystemTime| when::stamp(time.into());
        Self {
            id: info.id.to_string(),
            name: info.name.clone(),
            principal: format!("token:{}", info.name),
            state,
            grants: info.grants.iter().map(GrantView::from).collect(),
            created: stamp(info.created),
            expires: info.expires.and_then(stamp),
            revoked: info.revoked.and_then(stamp),
        }
    }

    /// All of it over several lines.
    pub(crate) fn text(&self) -> String {
        let expires = self.expires.clone();
        format!(
            "{}\n{}",
            clean(&self.principal),
            pairs(
                2,
                [
                    ("id", Some(self.id.clone())),
                    ("state", Some(self.state.word().to_owned())),
                    ("may", Some(self.grants())),
                    ("created", self.created.clone()),
                    ("expires", expires.or_else(|| Some("never".to_owned()))),
                    ("revoked", self.revoked.clone()),
                ]
            )
        )
    }

    fn grants(&self) -> String {
        let grants: Vec<_> = self.grants.iter().map(GrantView::text).collect();
        grants.join("; ")
    }
}

/// Tokens as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct TokensView {
    tokens: Vec<TokenView>,
}

impl TokensView {
    /// These.
    pub(crate) fn new(tokens: impl Iterator<Item = TokenView>) -> Self {
        Self {
            tokens: tokens.collect(),
        }
    }

    /// One a line.
    pub(crate) fn text(&self) -> String {
        if self.tokens.is_empty() {
            return "no tokens\n".to_owned();
        }
        let rows = self.tokens.iter().map(|token| {
            [
                token.id.clone(),
                token.name.clone(),
                token.state.word().to_owned(),
                token.grants(),
                token.created.clone().unwrap_or_default(),
                token.expires.clone().unwrap_or_else(|| "never".to_owned()),
                token.revoked.clone().unwrap_or_default(),
            ]
        });
        let headers = [
            "ID", "NAME", "STATE", "MAY", "CREATED", "EXPIRES", "REVOKED",
        ];
        sparse_columns(headers, rows)
    }
}

/// A token that has just been made as JSON: the only one with its text.
#[derive(Serialize)]
pub(crate) struct MadeView<'a> {
    token: &'a str,
    #[serde(flatten)]
    about: &'a TokenView,
}

impl<'a> MadeView<'a> {
    /// With its text.
    pub(crate) fn new(about: &'a TokenView, token: &'a str) -> Self {
        Self { token, about }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fleetgate_identity::{NewToken, Role, TokenFile};

    use super::*;

    #[test]
    fn a_token_is_told_by_all_but_its_text() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let file = TokenFile::at(dir.path().join("tokens.toml"));
        let (info, secret) = file
            .create(NewToken {
                name: "ci".to_owned(),
                grants: vec![Grant {
                    role: Role::Operator,
                    labels: [("rack".to_owned(), "a".to_owned())].into(),
                }],
                expires: Some(now + Duration::from_secs(3_600)),
            })
            .unwrap();
        let view = TokenView::new(&info, now);
        let tokens = TokensView::new(std::iter::once(view.clone()));
        let json = serde_json::to_string(&tokens).unwrap();
        for told in [view.text(), tokens.text(), json.clone()] {
            assert!(!told.contains(secret.expose()), "{told}");
            assert!(
                told.contains("operator") && told.contains(&view.id),
                "{told}"
            );
        }
        assert!(
            view.text().contains("may:     operator where rack=a\n"),
            "{}",
            view.text()
        );
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["tokens"][0]["state"], "in_force");
        assert_eq!(json["tokens"][0]["principal"], "token:ci");

        let later = TokenView::new(&info, now + Duration::from_secs(7_200));
        assert_eq!(later.state, State::Expired);
        let revoked = TokenView::new(&file.revoke("ci").unwrap(), now);
        assert_eq!(revoked.state, State::Revoked);
    }
}
