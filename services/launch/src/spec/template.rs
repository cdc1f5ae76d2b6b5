//! Text with placeholders in braces.
//!
//! A brace is part of a placeholder or written twice; anything else is refused,
//! so that a misspelt placeholder never reaches a command line as it is.

use std::ffi::{OsStr, OsString};

use super::InvalidSpec;

/// What the placeholders stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) udid: &'a OsStr,
    pub(crate) log: &'a OsStr,
    pub(crate) result_bundle: &'a OsStr,
}

impl Values<'_> {
    /// Stands in while a template is only checked.
    pub(super) fn example() -> Self {
        let nothing = OsStr::new("");
        Self {
            udid: nothing,
            log: nothing,
            result_bundle: nothing,
        }
    }

    fn get(&self, name: &str) -> Option<&OsStr> {
        match name {
            "udid" => Some(self.udid),
            "log" => Some(self.log),
            "result_bundle" => Some(self.result_bundle),
            _ => None,
        }
    }
}

/// Fills a text; `place` says where it stands, for a complaint.
pub(super) fn fill(
    text: &str,
    place: impl Fn() -> String,
    values: &Values<'_>,
) -> Result<OsString, InvalidSpec> {
    if text.contains('\0') {
        return Err(InvalidSpec::Nul { place: place() });
    }
    let mut filled = OsString::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, brace) = rest.split_at(at);
        filled.push(before);
        if let Some(after) = brace.strip_prefix("{{") {
            filled.push("{");
            rest = after;
        } else if let Some(after) = brace.strip_prefix("}}") {
            filled.push("}");
            rest = after;
        } else if let Some((name, after)) = placeholder(brace) {
            let value = values.get(name);
            filled.push(value.ok_or_else(|| InvalidSpec::UnknownPlaceholder {
                place: place(),
                name: name.to_owned(),
            })?);
            rest = after;
        } else {
            return Err(InvalidSpec::SingleBrace { place: place() });
        }
    }
    filled.push(rest);
    Ok(filled)
}

/// The name in `{name}...` and what follows.
fn placeholder(brace: &str) -> Option<(&str, &str)> {
    let (name, after) = brace.strip_prefix('{')?.split_once('}')?;
    (!name.contains('{')).then_some((name, after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filled(text: &str) -> Result<OsString, InvalidSpec> {
        let values = Values {
            udid: OsStr::new("U"),
            log: OsStr::new("/l {udid}.log"),
            result_bundle: OsStr::new("/r"),
        };
        fill(text, || "here".to_owned(), &values)
    }

    #[test]
    fn placeholders_are_filled_once_and_what_they_hold_is_not_looked_at() {
        assert_eq!(
            filled("id={udid},{log}{result_bundle}").unwrap(),
            "id=U,/l {udid}.log/r"
        );
    }

    #[test]
    fn a_brace_that_is_meant_is_written_twice() {
        assert_eq!(filled("{{\"a\": {{}}}}").unwrap(), "{\"a\": {}}");
        assert_eq!(filled("${{HOME}}{{{udid}}}").unwrap(), "${HOME}{U}");
    }

    #[test]
    fn a_single_brace_is_refused() {
        for text in ["{", "}", "a{b", "a}b", "{udid", "udid}", "{a{udid}"] {
            assert!(
                matches!(filled(text), Err(InvalidSpec::SingleBrace { .. })),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_has_no_braces_or_has_them_doubled_comes_out_as_it_was(text in "[^\0]*") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(filled(&doubled).unwrap(), OsString::from(text));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[{}a\0udilog_]*") {
            filled(&text).ok();
        }
    }
}
