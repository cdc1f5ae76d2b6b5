//! What is said while a lease is waited for: on a terminal one line that is
//! written over, anywhere else a line per change.

use std::io::{self, IsTerminal, Write};

use rustix::termios::tcgetwinsize;

use crate::output::{clean, cut, note};

/// What a terminal measures that does not say.
const COLUMNS: usize = 80;

/// Progress, on stderr.
#[derive(Debug)]
pub(super) struct Progress {
    terminal: bool,
    /// What stands there.
    said: String,
}

impl Progress {
    /// Nothing is said yet.
    pub(super) fn new() -> Self {
        Self {
            terminal: io::stderr().is_terminal(),
            said: String::new(),
        }
    }

    /// Says how it is; `passing` is what changes all the time, and is of use only
    /// where it can be written over.
    pub(super) fn tell(&mut self, words: &str, passing: &str) {
        let words = clean(words);
        if self.terminal {
            let line = cut(&format!("{words}{passing}"), columns());
            write(&format!("\r{line}\x1b[K"));
            self.said = line;
        } else if words != self.said {
            note(&words);
            self.said = words;
        }
    }

    /// Says something that stays.
    pub(super) fn note(&mut self, words: &str) {
        self.clear();
        note(&clean(words));
    }

    /// Takes the line away.
    fn clear(&mut self) {
        if self.terminal && !self.said.is_empty() {
            write("\r\x1b[K");
            self.said.clear();
        }
    }
}

/// Writes to the terminal. There is nobody to tell if that fails.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _gone = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// One less than fit: a full line would wrap.
fn columns() -> usize {
    let size = tcgetwinsize(io::stderr()).ok();
    let columns = size.map(|size| usize::from(size.ws_col));
    columns
        .filter(|columns| *columns > 1)
        .unwrap_or(COLUMNS)
        .saturating_sub(1)
}
