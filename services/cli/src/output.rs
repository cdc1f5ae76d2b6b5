//! What goes to stdout, and in which form.
//!
//! Whatever a phone or a gateway said is cleaned of control characters before
//! it reaches a terminal as text; JSON escapes them by itself. A reader that
//! went away is not an error.

use std::io::{self, ErrorKind, Write};

use clap::ValueEnum;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// For people or for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text in columns.
    #[default]
    Table,
    /// One JSON document.
    Json,
}

/// Prints a value as JSON, or what `table` makes of it.
pub(crate) fn print<V: Serialize>(
    format: Format,
    value: &V,
    table: impl FnOnce(&V) -> String,
) -> anyhow::Result<()> {
    let text = match format {
        Format::Table => table(value),
        Format::Json => serde_json::to_string_pretty(value)?,
    };
    line(&text)?;
    Ok(())
}

/// Writes a line, or several, to stdout.
pub(crate) fn line(text: &str) -> io::Result<()> {
    bytes(format!("{}\n", text.trim_end_matches('\n')).as_bytes())
}

/// Writes a line to stdout; false if nobody reads any more.
pub(crate) fn reaches(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => written.map(|()| true),
    }
}

/// Writes bytes to stdout as they are.
pub(crate) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes a line to stderr. There is nobody to tell if that fails.
pub(crate) fn note(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{text}");
}

/// Rows under headers, in columns, without borders.
pub(crate) fn columns<const N: usize>(
    headers: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = bare_table();
    table.set_header(headers);
    for row in rows {
        table.add_row(row.map(|cell| clean(&cell)));
    }
    laid_out(table)
}

fn bare_table() -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn laid_out(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    lines(table.lines().map(|line| line.trim_end().to_owned()))
}

/// [`columns`] without those in which every cell is empty; other empty cells
/// get a dash.
pub(crate) fn sparse_columns<const N: usize>(
    headers: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows: Vec<_> = rows.into_iter().collect();
    let filled = |column: usize| rows.iter().any(|row| !row[column].is_empty());
    let kept: Vec<_> = (0..N).filter(|column| filled(*column)).collect();
    let mut table = bare_table();
    table.set_header(kept.iter().map(|column| headers[*column]));
    for row in &rows {
        table.add_row(kept.iter().map(|column| match row[*column].as_str() {
            "" => "-".to_owned(),
            cell => clean(cell),
        }));
    }
    laid_out(table)
}

/// Names and values, one a line, the values aligned; what has no value is left
/// out.
pub(crate) fn pairs<'a>(
    indent: usize,
    pairs: impl IntoIterator<Item = (&'a str, Option<String>)>,
) -> String {
    let present: Vec<_> = pairs
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    let width = present
        .iter()
        .map(|(name, _)| name.len() + 1)
        .max()
        .unwrap_or(0);
    lines(present.iter().map(|(name, value)| {
        format!(
            "{:indent$}{:width$} {}",
            "",
            format!("{name}:"),
            clean(value)
        )
    }))
}

/// Each item on a line of its own.
pub(crate) fn lines(items: impl IntoIterator<Item = String>) -> String {
    items
        .into_iter()
        .fold(String::new(), |text, item| text + &item + "\n")
}

/// The text on one line, without anything that a terminal would obey.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

/// The text, cut to so many columns of a terminal; what was cut off ends in a
/// mark.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut width = 0;
    let mut kept = String::new();
    for char in text.chars() {
        width += char.width().unwrap_or(0);
        if width >= columns {
            break;
        }
        kept.push(char);
    }
    kept.push('\u{2026}');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_have_no_trailing_blanks() {
        let rows = [
            ["a".to_owned(), "long".to_owned()],
            ["longer".to_owned(), "b".to_owned()],
        ];
        assert_eq!(
            columns(["ONE", "TWO"], rows),
            "ONE     TWO\na       long\nlonger  b\n"
        );
    }

    #[test]
    fn a_column_without_a_value_is_left_out_and_a_cell_without_one_is_a_dash() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        assert_eq!(
            sparse_columns(
                ["ONE", "TWO", "THREE"],
                [row(["a", "", "b"]), row(["c", "", ""])]
            ),
            "ONE  THREE\na    b\nc    -\n"
        );
    }

    #[test]
    fn text_is_cut_to_the_columns_that_it_takes_on_a_terminal() {
        assert_eq!(cut("anna", 4), "anna");
        assert_eq!(cut("annabel", 4), "ann\u{2026}");
        assert_eq!(cut("\u{96fb}\u{8a71}\u{6a5f}", 4), "\u{96fb}\u{2026}");
        assert_eq!(cut("anna", 0), "\u{2026}");
    }

    #[test]
    fn pairs_leave_out_what_is_absent_and_align_what_is_there() {
        let text = pairs(
            2,
            [
                ("fate", Some("completed".to_owned())),
                ("hint", None),
                ("id", Some("7".to_owned())),
            ],
        );
        assert_eq!(text, "  fate: completed\n  id:   7\n");
    }

    #[test]
    fn escape_sequences_from_a_phone_never_reach_the_terminal() {
        let hostile = "\u{1b}]0;title\u{7}\nnext";
        assert_eq!(clean(hostile), " ]0;title  next");
        assert!(!columns(["LABEL"], [[hostile.to_owned()]]).contains('\u{1b}'));
    }
}
