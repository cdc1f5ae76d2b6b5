//! How the tour tells what it does: numbered steps, sentences, and real output
//! set off from them by blank lines.

use std::fmt::Display;

use crate::output::{clean, line};

/// What the tour has told so far.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// Output was shown last, and what comes next is to stand off from it.
    shown: bool,
}

impl Story {
    /// Announces a step.
    pub(super) fn heading(&mut self, number: usize, title: &str) -> anyhow::Result<()> {
        self.shown = true;
        self.text(&format!("{number}. {title}"))
    }

    /// Says one sentence.
    pub(super) fn say(&mut self, sentence: impl Display) -> anyhow::Result<()> {
        self.text(&format!("   {}", clean(&sentence.to_string())))
    }

    /// Shows output as it came, at most so many lines of it.
    pub(super) fn show(&mut self, output: &str, most: usize) -> anyhow::Result<()> {
        let (shown, rest) = excerpt(output, most);
        line("")?;
        for text in shown {
            line(&format!("     {text}"))?;
        }
        if rest > 0 {
            line(&format!("     ... and {rest} lines more"))?;
        }
        self.shown = true;
        Ok(())
    }

    fn text(&mut self, text: &str) -> anyhow::Result<()> {
        if std::mem::take(&mut self.shown) {
            line("")?;
        }
        Ok(line(text)?)
    }
}

fn excerpt(output: &str, most: usize) -> (Vec<&str>, usize) {
    let lines: Vec<_> = output.lines().collect();
    let rest = lines.len().saturating_sub(most);
    (lines.into_iter().take(most).collect(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_cut_and_the_cut_is_counted() {
        assert_eq!(excerpt("a\nb\nc\n", 2), (vec!["a", "b"], 1));
        assert_eq!(excerpt("a\nb\n", 2), (vec!["a", "b"], 0));
    }
}
