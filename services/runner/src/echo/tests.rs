//! Echoes whole, in part and in disguise, and words that are none.

use proptest::prelude::*;

use super::*;

fn told(typed: &str, words: &str) -> String {
    redact(typed, words.to_owned())
}

#[track_caller]
fn assert_withheld(typed: &str, words: &str) {
    let told = told(typed, words);
    let chars = typed.chars().count();
    assert_eq!(
        told,
        format!("[withheld, as it quotes what was typed: {chars} characters]"),
        "of {words}"
    );
}

#[test]
fn the_whole_text_is_cut_out_of_what_it_stands_in() {
    assert_eq!(
        told("hunter2", "cannot type 'hunter2': hunter2 is odd"),
        "cannot type '[redacted]': [redacted] is odd"
    );
    assert_eq!(told("redacted", "not redacted"), "not [redacted]");
    assert_eq!(told("hunter2", "hunter2"), "[redacted]");
    assert_eq!(told("pa$$", "no key for pa$$"), "no key for [redacted]");
}

#[test]
fn a_short_text_is_an_echo_where_it_stands_alone() {
    assert_eq!(
        told("7", "no key '7' at 7.5"),
        "no key '[redacted]' at [redacted].5"
    );
    assert_eq!(told("hi", "nothing has it"), "nothing has it");
    assert_eq!(told("é!", "no é! here"), "no [redacted] here");
}

#[test]
fn a_part_of_the_text_withholds_the_words() {
    for words in [
        "cannot type hunt…",
        "cannot type \u{2026}ter2",
        "typed hunter",
        "hunter2 was cut to hunte",
    ] {
        assert_withheld("hunter2", words);
    }
    let three = "hun is not ter";
    assert_eq!(told("hunter2", three), three);
}

#[test]
fn neither_case_nor_marks_nor_escapes_disguise_a_text() {
    for words in [
        "no key for HUNTER2",
        "h-u-n-t-e-r-2",
        "h u n t e r 2",
        "'h', 'u', 'n', 't', 'e', 'r', '2'",
        "\\u0068\\u0075\\u006e\\u0074er",
        "h\\nu\\nn\\nt\\ne\\nr",
        "{\"text\":\"Hunter2\"}",
    ] {
        assert_withheld("hunter2", words);
    }
    for (typed, words) in [
        ("a\"b\"c\"d\"e", r#"cannot type a\"b\"c\"d\"e"#),
        (r"\\a\b\\", r"no \\\\a\\b\\\\"),
        ("ÄÖÜßÉ", "no key for äöüß"),
        ("ÄÖÜßÉ", "no key for \\u00e4\\u00d6\\u00dc\\u00df"),
        (
            "🔑🔒🔓🗝",
            r"\ud83d\udd11\ud83d\udd12\ud83d\udd13\ud83d\udddd",
        ),
        ("one\ntwo", r"no one\ntwo"),
        ("!?!?!?", "no !?!? there"),
    ] {
        assert_withheld(typed, words);
    }
}

#[test]
fn escapes_that_are_none_are_left_alone() {
    for (words, plain) in [
        (r"\u12", "u12"),
        (r"\ud83d\u0041", "ud83dA"),
        (r"\ud83d", "ud83d"),
        (r"\u00e", "u00e"),
        (r"\u+123", "u+123"),
        (r"\é\", "é"),
        (r"\u00éé", "u00éé"),
    ] {
        assert_eq!(unescape(words), plain, "{words}");
    }
}

#[test]
fn other_words_are_passed_on_as_they_are() {
    for words in ["", "nothing has keyboard focus", r"a \ b", "typed"] {
        assert_eq!(told("hunter2", words), words);
    }
    assert_eq!(told("ab", ""), "");
    let long = "x".repeat(LONGEST);
    assert_eq!(told("hunter2", &long), long);
    let longer = told("hunter2", &format!("{long}x"));
    assert!(longer.starts_with("[withheld"), "{longer}");
}

#[test]
fn a_word_that_a_text_has_in_common_with_an_advice_does_not_hide_it() {
    let advice = "tap the text field first";
    for typed in ["plain text", "no text yet", "a tap on it"] {
        assert_eq!(told(typed, advice), advice, "{typed}");
    }
    assert_withheld("context", advice);
    assert_withheld("plain text", &format!("no plain text: {advice}"));
    assert_withheld("text field one", advice);
    assert_withheld("I tap the text of a page, twice", advice);
}

/// Texts whose pieces are likely to come up by themselves, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ab]{1,9}",
        "[a-c \"\\\\]{1,12}",
        "[a-zA-Z0-9]{4,20}",
        "\\PC{1,12}"
    ]
}

proptest! {
    #[test]
    fn no_words_get_past_with_a_run_of_the_text_in_them(
        typed in text(),
        before in text(),
        after in text(),
        part in any::<(prop::sample::Index, prop::sample::Index)>(),
        disguise in 0..4,
    ) {
        let chars: Vec<char> = typed.chars().collect();
        let (from, to) = (part.0.index(chars.len()), part.1.index(chars.len()));
        let part: String = chars[from.min(to)..=from.max(to)].iter().collect();
        let part = match disguise {
            0 => part,
            1 => part.to_uppercase(),
            2 => serde_json::to_string(&part).unwrap(),
            _ => part.chars().flat_map(|char| [char, '.']).collect(),
        };
        let told = told(&typed, &format!("{before} {part} {after}"));
        let kept = told.replace(CUT, "\u{0}");
        if kept.starts_with("[withheld") {
            return Ok(());
        }
        for piece in kept.split('\u{0}') {
            let run = run(chars.len());
            prop_assert!(!resembles(&typed, piece, run), "{typed:?} is in {told:?}");
            let whole = chars.len() >= SHORTEST && piece.contains(&typed);
            prop_assert!(!whole, "{typed:?} is in {told:?}");
        }
    }

    #[test]
    fn any_words_about_any_text_are_redacted_without_a_panic(
        typed in "\\PC{1,20}",
        words in "[\\PC\\\\u0-9a-f]{0,40}",
    ) {
        let told = told(&typed, &words);
        if typed.chars().count() >= SHORTEST {
            prop_assert!(!told.contains(&typed));
        }
    }
}
