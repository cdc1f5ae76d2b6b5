//! What a runner's process writes, made fit for people's screens.

/// Text of bytes that may be anything: what is not UTF-8 and what would steer a
/// terminal or turn the order of characters round is replaced.
pub(crate) fn clean(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .map(|character| match character {
            '\t' => ' ',
            harmful if is_harmful(harmful) => char::REPLACEMENT_CHARACTER,
            other => other,
        })
        .collect()
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        let text = clean(b"a\tb\x1b[31mc\xff\x07\xc2\x9b\xe2\x80\xae\r\0");
        assert_eq!(
            text,
            "a b\u{fffd}[31mc\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}"
        );
        assert!(!text.chars().any(is_harmful));
    }
}
