//! What token files are read, and what is said of those that are not.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::role::Role;
use crate::text::mint;

const CANARY: &str = "canary4f1e";

fn entry() -> impl Strategy<Value = Entry> {
    let seconds = 0_u64..4_000_000_000;
    let time = seconds.prop_map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    let grant = (
        0_usize..3,
        prop::collection::btree_map("\\PC{0,8}", "\\PC{0,8}", 0..3),
    );
    let grant = grant.prop_map(|(role, labels)| Grant {
        role: Role::ALL[role],
        labels,
    });
    let some = prop::option::of(time.clone());
    let grants = prop::collection::vec(grant, 0..3);
    ("\\PC{0,20}", time, some.clone(), some, grants).prop_map(
        |(name, created, expires, revoked, grants)| {
            let id = TokenId::random();
            let (_, secret) = mint(&id);
            Entry {
                id,
                name,
                secret,
                created,
                expires,
                revoked,
                grants,
            }
        },
    )
}

proptest! {
    #[test]
    fn a_book_is_read_as_it_was_written(entries in prop::collection::vec(entry(), 0..5)) {
        let book = Book { entries, ..Book::default() };
        prop_assert_eq!(Book::parse(&book.text().unwrap()), Ok(book));
    }

    #[test]
    fn any_text_is_a_book_or_is_refused(
        text in "\\PC*",
        lines in prop::collection::vec("(version|id|name|secret|created)? ?=? ?(1|\"\\PC{0,9}\"|\\[\\[token\\]\\])?\n", 0..8),
    ) {
        Book::parse(&text).ok();
        Book::parse(&lines.concat()).ok();
    }
}

#[test]
fn a_book_is_what_the_documentation_says() {
    let text = r#"
        version = 1

        [[token]]
        id = "k3v9"
        name = "ci"
        secret = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        created = "2026-01-02T03:04:05Z"
        expires = "2027-01-02T03:04:05Z"

        [[token.grant]]
        role = "operator"
        labels = { rack = "a" }

        [[token.grant]]
        role = "viewer"
    "#;
    let book = Book::parse(text).unwrap();
    let info = book.entries()[0].info();
    assert_eq!((info.id.as_str(), info.name.as_str()), ("k3v9", "ci"));
    assert_eq!(
        info.expires.unwrap().duration_since(info.created).unwrap(),
        Duration::from_secs(365 * 86_400)
    );
    let labels = BTreeMap::from([("rack".to_owned(), "a".to_owned())]);
    let operator = Grant {
        role: Role::Operator,
        labels,
    };
    assert_eq!(info.grants, [operator, Grant::fleet_wide(Role::Viewer)]);
    assert_eq!(info.revoked, None);
}

#[test]
fn a_fault_is_told_by_its_line_and_without_what_stands_there() {
    let good =
        "version = 1\n[[token]]\nid = \"a\"\nname = \"ci\"\ncreated = \"2026-01-02T03:04:05Z\"\n";
    for (fault, line) in [
        (format!("{good}secret = \"{CANARY}\"\n"), 6),
        (format!("{good}secret = {CANARY}\n"), 6),
        (format!("{good}secret = \"{CANARY}\n"), 6),
        (format!("{good}secret = '{CANARY}'\n"), 6),
        (good.to_owned(), 2),
        (format!("version = 1\ntoken = \"{CANARY}\""), 2),
        (format!("version = 1\n{CANARY} = 7"), 2),
        (format!("{good}[[token.grant]]\nrole = \"{CANARY}\""), 7),
    ] {
        let reason = Book::parse(&fault).unwrap_err();
        assert!(!reason.contains(CANARY), "{reason}");
        assert!(reason.len() > "line 6: ".len(), "{reason}");
        assert!(reason.starts_with(&format!("line {line}: ")), "{reason}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let hash = "A".repeat(43);
    let token = |id: &str, more: &str| {
        format!(
            "[[token]]\nid = \"{id}\"\nname = \"ci\"\nsecret = \"{hash}\"\n\
             created = \"2026-01-02T03:04:05Z\"\n{more}"
        )
    };
    let book = |tokens: &[String]| Book::parse(&format!("version = 1\n{}", tokens.concat()));
    assert!(book(&[token("a", ""), token("b", "")]).is_ok());
    for refused in [
        book(&[token("a", ""), token("a", "")]),
        book(&[token("local", "")]),
        book(&[token("A", "")]),
        book(&[token("a", "scope = \"all\"\n")]),
        book(&[token("a", "[[token.grant]]\nrole = \"root\"\n")]),
        book(&[token(
            "a",
            "[[token.grant]]\nrole = \"admin\"\nlabel = { a = \"b\" }\n",
        )]),
        Book::parse("version = 2"),
        Book::parse(""),
        Book::parse("version = 1\nmore = 1"),
    ] {
        assert!(refused.is_err(), "{refused:?}");
    }
}
