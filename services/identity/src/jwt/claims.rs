//! What the claims of a verified JWT say.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use crate::role::{Grant, Role};

/// A name that is on record with every call should not be a novel.
const MAX_NAME: usize = 256;

type Claims = Map<String, Value>;

/// Whether it says that it was issued later than now.
pub(super) fn is_of_the_future(claims: &Claims, leeway: Duration) -> bool {
    let Some(issued) = claims.get("iat") else {
        return false;
    };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let latest = (now.unwrap_or_default() + leeway).as_secs_f64();
    // What is no number is no time before now.
    issued.as_f64().is_none_or(|issued| issued > latest)
}

/// The name in a claim.
pub(super) fn name<'a>(claims: &'a Claims, claim: &str) -> Option<&'a str> {
    let name = at(claims, claim)?.as_str()?;
    let is_usable = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.trim() == name
        && !name.chars().any(char::is_control);
    is_usable.then_some(name)
}

/// The roles in a claim. Words that are no roles are for others.
pub(super) fn grants(claims: &Claims, claim: &str) -> Vec<Grant> {
    let words: Vec<&str> = match at(claims, claim) {
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            Vec::new()
        }
    };
    let roles = words.into_iter().filter_map(|word| word.parse().ok());
    let mut roles: Vec<Role> = roles.collect();
    roles.sort_unstable();
    roles.dedup();
    roles.into_iter().map(Grant::fleet_wide).collect()
}

/// The claim of this name or else, if there are dots in it, the one within
/// others.
fn at<'a>(claims: &'a Claims, name: &str) -> Option<&'a Value> {
    claims.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        at(claims.get(outer)?.as_object()?, inner)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Claims {
        let Value::Object(claims) = value else {
            panic!("{value} is no object");
        };
        claims
    }

    #[test]
    fn a_claim_may_stand_within_others_and_have_dots_itself() {
        let claims = claims(json!({
            "sub": "alice",
            "https://lab.example/name": "alice@lab",
            "realm_access": { "roles": ["viewer"], "deep": { "name": "bob" } },
        }));
        assert_eq!(name(&claims, "sub"), Some("alice"));
        assert_eq!(name(&claims, "https://lab.example/name"), Some("alice@lab"));
        assert_eq!(name(&claims, "realm_access.deep.name"), Some("bob"));
        assert_eq!(name(&claims, "realm_access.name"), None);
        assert_eq!(name(&claims, "sub.name"), None);
        assert_eq!(
            grants(&claims, "realm_access.roles"),
            [Grant::fleet_wide(Role::Viewer)]
        );
    }

    #[test]
    fn what_is_no_name_names_nobody() {
        for value in [
            json!(""),
            json!(" alice"),
            json!("a\nb"),
            json!("a".repeat(257)),
            json!(7),
            json!(["alice"]),
            json!(null),
        ] {
            assert_eq!(
                name(&claims(json!({ "sub": value })), "sub"),
                None,
                "{value}"
            );
        }
        assert_eq!(name(&claims(json!({})), "sub"), None);
    }

    #[test]
    fn roles_come_as_a_text_or_as_a_list() {
        let roles = |value: Value| -> Vec<Role> {
            let grants = grants(&claims(json!({ "roles": value })), "roles");
            assert!(grants.iter().all(Grant::is_fleet_wide));
            grants.iter().map(|grant| grant.role).collect()
        };
        assert_eq!(
            roles(json!("admin viewer offline_access")),
            [Role::Viewer, Role::Admin]
        );
        assert_eq!(
            roles(json!(["operator", 1, "Admin", "operator"])),
            [Role::Operator]
        );
        assert_eq!(roles(json!({ "admin": true })), []);
        assert_eq!(roles(json!(null)), []);
    }

    #[test]
    fn what_was_issued_later_than_now_is_of_the_future() {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let is = |value: Value| {
            is_of_the_future(&claims(json!({ "iat": value })), Duration::from_secs(30))
        };
        assert!(!is(json!(now + 4)));
        assert!(is(json!(now + 60)));
        assert!(!is(json!(1_767_225_600.5)));
        assert!(is(json!("yesterday")));
        assert!(!is_of_the_future(&claims(json!({})), Duration::ZERO));
    }
}
