//! A terminal whose whole screen is drawn again and again.
//!
//! It takes the alternate screen, so that what stood on the terminal stays, and
//! gives everything back when it is dropped, whatever ended the work. It refuses
//! to read keys: Ctrl-C stays the signal that it is.

use std::io::{self, IsTerminal, Stdout, Write};

use rustix::termios::tcgetwinsize;

use crate::output::cut;

/// The alternate screen, and no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// The cursor, and the usual screen.
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the upper left corner.
const HOME: &str = "\x1b[H";
/// What is left of the line is cleared.
const REST_OF_LINE: &str = "\x1b[K";
/// What is left of the screen is cleared.
const REST_OF_SCREEN: &str = "\x1b[J";

/// What a terminal measures that does not say.
const USUAL: Size = Size {
    columns: 80,
    rows: 24,
};

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    /// Characters in a line.
    pub(crate) columns: usize,
    /// Lines.
    pub(crate) rows: usize,
}

/// A screen that is drawn on.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: Stdout,
}

/// Whether stdout is a terminal that can be drawn on.
pub(crate) fn is_there() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    io::stdout().is_terminal() && !dumb
}

/// What fits on it now.
pub(crate) fn size() -> Size {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        },
        Ok(_) | Err(_) => USUAL,
    }
}

impl Screen {
    /// Takes it.
    pub(crate) fn enter() -> io::Result<Self> {
        let mut screen = Self {
            terminal: io::stdout(),
        };
        screen.write(ENTER)?;
        Ok(screen)
    }

    /// Draws lines, as many and as much of each as fits.
    pub(crate) fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        self.write(&picture(lines, size()))
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.terminal.write_all(text.as_bytes())?;
        self.terminal.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody to tell if the terminal is gone.
        let _gone = self.write(LEAVE);
    }
}

/// The lines with all that makes them replace what stood there.
fn picture(lines: &[String], size: Size) -> String {
    let shown: Vec<_> = lines
        .iter()
        .take(size.rows)
        .map(|line| cut(line, size.columns) + REST_OF_LINE)
        .collect();
    // No line break after the last one: it would scroll a full screen.
    format!("{HOME}{}{REST_OF_SCREEN}", shown.join("\r\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_replaces_the_last_one_and_neither_wraps_nor_scrolls() {
        let lines = ["phones", "one", "two"].map(str::to_owned);
        let size = Size {
            columns: 4,
            rows: 2,
        };
        assert_eq!(
            picture(&lines, size),
            "\x1b[Hpho\u{2026}\x1b[K\r\none\x1b[K\x1b[J"
        );
    }
}
