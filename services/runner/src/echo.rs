//! Words that may repeat what was typed, and what of them may be passed on.
//!
//! A runner is free to quote the text of a command that types in whatever it
//! says of that command. The rule, in this order:
//!
//! 1. Where the whole text stands in the words it is cut out. A text of up to
//!    three characters is taken for an echo only where it stands alone: cut out
//!    of the middle of words, it would be given away by what is left of them.
//! 2. If what is left still has more than half of the text's characters in a row
//!    in common with it, four at least and eight in any case, nothing of the words
//!    is passed on but the text's length. Four are enough where the whole text was
//!    cut out: those words are known to quote it. Upper and lower case are the
//!    same here, JSON's escapes are undone, and marks and spaces are passed over.
//!
//! So words about a sentence in plain language may be lost: they have a word in
//! common with some sentences. The code of a failure is not.
//!
//! Words of more than a megabyte are not looked through, and not passed on.
//!
//! It refuses to guess at what is not text any more: an echo in Base64, or in
//! another normal form of Unicode, is not known as one; nor are shorter pieces.

use std::collections::HashSet;

/// Fewer characters in a row are never an echo of a longer text.
const SHORTEST: usize = 4;

/// So many characters in a row are one of any text.
const ENOUGH: usize = 8;

/// Words that are longer, in bytes, are of no use to anybody.
const LONGEST: usize = 1024 * 1024;

const CUT: &str = "[redacted]";

/// `words` without `typed`, which is not empty.
pub(crate) fn redact(typed: &str, words: String) -> String {
    let chars = typed.chars().count();
    if words.len() > LONGEST {
        return format!("[withheld, as it may quote what was typed: {chars} characters]");
    }
    let short = chars < SHORTEST;
    let echoes = words.match_indices(typed).map(|(at, _)| at);
    let echoes = echoes.filter(|&at| !short || stands_alone(typed, &words, at));
    let (mut left, mut rest) = (Vec::new(), 0);
    for at in echoes {
        left.push(&words[rest..at]);
        rest = at + typed.len();
    }
    left.push(&words[rest..]);
    let run = if rest > 0 { SHORTEST } else { run(chars) };
    if left.iter().any(|piece| resembles(typed, piece, run)) {
        return format!("[withheld, as it quotes what was typed: {chars} characters]");
    }
    if rest == 0 { words } else { left.join(CUT) }
}

/// How many characters in a row are an echo of a text of so many.
fn run(chars: usize) -> usize {
    (chars / 2 + 1).clamp(SHORTEST, ENOUGH)
}

fn stands_alone(typed: &str, words: &str, at: usize) -> bool {
    let before = words[..at].chars().next_back();
    let after = words[at + typed.len()..].chars().next();
    let ends = |char: Option<char>| !char.is_some_and(char::is_alphanumeric);
    ends(before) && ends(after)
}

/// Whether the words have a run of so many characters in common with the text.
fn resembles(typed: &str, words: &str, run: usize) -> bool {
    let unescaped = words.contains('\\').then(|| unescape(words));
    let mut forms = std::iter::once(words).chain(unescaped.as_deref());
    forms.any(|words| {
        let share = |counts| share_a_run(typed, words, run, counts);
        share(|char| !char.is_whitespace()) || share(char::is_alphanumeric)
    })
}

/// Whether both have a run in common, of those characters that count.
fn share_a_run(typed: &str, words: &str, run: usize, counts: fn(char) -> bool) -> bool {
    let (less, more) = if typed.len() < words.len() {
        (typed, words)
    } else {
        (words, typed)
    };
    let known: HashSet<_> = runs(less, run, counts).collect();
    !known.is_empty() && runs(more, run, counts).any(|run| known.contains(&run))
}

/// Every run of so many of those characters that count, in lower case, at the end
/// of its place.
fn runs(
    text: &str,
    wanted: usize,
    counts: fn(char) -> bool,
) -> impl Iterator<Item = [char; ENOUGH]> {
    let chars = text.chars().flat_map(char::to_lowercase);
    let mut counted = chars.filter(move |char| counts(*char));
    let mut run = ['\0'; ENOUGH];
    let mut length = 0;
    std::iter::from_fn(move || {
        loop {
            let place = &mut run[ENOUGH - wanted..];
            place.rotate_left(1);
            place[wanted - 1] = counted.next()?;
            length += 1;
            if length >= wanted {
                return Some(run);
            }
        }
    })
}

/// The words with JSON's escapes undone, as far as they are some.
fn unescape(words: &str) -> String {
    let mut plain = String::with_capacity(words.len());
    let mut rest = words;
    while let Some((before, escaped)) = rest.split_once('\\') {
        plain.push_str(before);
        rest = match escape(escaped) {
            Some((char, after)) => {
                plain.push(char);
                after
            }
            None => escaped,
        };
    }
    plain.push_str(rest);
    plain
}

/// What a backslash before these characters stands for, and what comes after.
fn escape(escaped: &str) -> Option<(char, &str)> {
    let first = escaped.chars().next()?;
    let after = &escaped[first.len_utf8()..];
    match first {
        'n' => Some(('\n', after)),
        't' => Some(('\t', after)),
        'r' => Some(('\r', after)),
        'u' => {
            let (unit, after) = unit(after)?;
            if let Some(char) = char::from_u32(unit) {
                return Some((char, after));
            }
            let (low, after) = unit_of_a_pair(after)?;
            let pair = char::decode_utf16([u16::try_from(unit).ok()?, low]).next()?;
            Some((pair.ok()?, after))
        }
        other => Some((other, after)),
    }
}

/// Four hexadecimal digits.
fn unit(digits: &str) -> Option<(u32, &str)> {
    let (digits, after) = digits.split_at_checked(4)?;
    let value = digits
        .chars()
        .try_fold(0, |value, digit| Some(value * 16 + digit.to_digit(16)?))?;
    Some((value, after))
}

fn unit_of_a_pair(escaped: &str) -> Option<(u16, &str)> {
    let (unit, after) = unit(escaped.strip_prefix("\\u")?)?;
    Some((u16::try_from(unit).ok()?, after))
}

#[cfg(test)]
mod tests;
