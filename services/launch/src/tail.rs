//! The last lines of a log, for whoever asks why a runner does not come up.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::text::clean;

/// At most so many lines.
const LINES: usize = 20;
/// At most so many bytes, in the log and in what is made of it.
const BYTES: usize = 4 << 10;
/// Stands for the beginning of a line that is too long.
const CUT: &str = "…";

/// The last lines of a log that may have been cut: `cut` has what came before.
pub(crate) fn read(log: &Path, cut: &Path) -> Vec<String> {
    let Ok((bytes, whole)) = end(log) else {
        return Vec::new();
    };
    if !whole || bytes.len() >= BYTES {
        return lines(&bytes, whole);
    }
    let (mut before, whole) = end(cut).unwrap_or((Vec::new(), true));
    before.extend_from_slice(&bytes);
    lines(&before, whole)
}

/// The last bytes of a file, and whether these are all.
fn end(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(BYTES as u64);
    let mut bytes = vec![0; BYTES];
    let mut length = 0;
    while let Some(room) = bytes.get_mut(length..).filter(|room| !room.is_empty()) {
        match file.read_at(room, from + length as u64)? {
            0 => break,
            count => length += count,
        }
    }
    bytes.truncate(length);
    Ok((bytes, from == 0))
}

/// Makes lines of the end of a log; `whole` says that nothing comes before it.
fn lines(bytes: &[u8], whole: bool) -> Vec<String> {
    let mut all: Vec<_> = bytes.split(|byte| *byte == b'\n').collect();
    // What begins in the middle of a line is only worth showing if there is
    // nothing else.
    let rest = |lines: &[&[u8]]| {
        lines
            .iter()
            .skip(1)
            .any(|line| !line.trim_ascii().is_empty())
    };
    let cut = !whole && !rest(&all);
    if !whole && !cut {
        all.remove(0);
    }
    let (mut lines, mut room) = (VecDeque::new(), BYTES);
    let filled = all.into_iter().map(<[u8]>::trim_ascii_end);
    for bytes in filled.filter(|line| !line.is_empty()).rev().take(LINES) {
        let text = clean(bytes);
        if cut || text.len() > room {
            if lines.is_empty() {
                lines.push_front(format!("{CUT}{}", last(&text, room - CUT.len())));
            }
            break;
        }
        room -= text.len();
        lines.push_front(text);
    }
    lines.into()
}

/// The last bytes of a text, at most so many.
fn last(text: &str, bytes: usize) -> &str {
    let from = text.len().saturating_sub(bytes);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn of(cut: &[u8], log: &[u8]) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let (path, before) = (directory.path().join("log"), directory.path().join("cut"));
        fs::write(&path, log).unwrap();
        fs::write(&before, cut).unwrap();
        read(&path, &before)
    }

    #[test]
    fn a_log_that_is_not_there_has_no_lines() {
        let path = Path::new("/no/such/log");
        assert_eq!(read(path, path), Vec::<String>::new());
        assert_eq!(of(b"", b""), Vec::<String>::new());
        assert_eq!(of(b"", b"\n\r\n \n"), Vec::<String>::new());
    }

    #[test]
    fn the_last_twenty_lines_are_shown_also_one_that_has_no_end() {
        let lines: Vec<_> = (0..30).map(|line| format!("line {line}\r\n")).collect();
        let lines = of(b"", format!("{}and", lines.concat()).as_bytes());
        assert_eq!(lines.len(), 20);
        assert_eq!(lines[0], "line 11");
        assert_eq!(lines[18], "line 29");
        assert_eq!(lines[19], "and");
    }

    #[test]
    fn a_line_of_megabytes_is_shown_by_its_end() {
        let log = [vec![b'x'; 3 << 20], b"the end\n".to_vec()].concat();
        let lines = of(b"", &log);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("…xx") && lines[0].ends_with("xthe end"));
        assert!(lines[0].len() <= BYTES);
    }

    #[test]
    fn a_line_that_begins_too_early_is_left_out_when_there_are_others() {
        let log = [vec![b'x'; 8000], b"\nlast\n".to_vec()].concat();
        assert_eq!(of(b"", &log), ["last"]);
    }

    #[test]
    fn a_log_that_was_cut_is_shown_across_the_cut() {
        assert_eq!(of(b"a\nb\nc", b"d\ne\n"), ["a", "b", "cd", "e"]);
    }

    #[test]
    fn what_is_not_text_is_shown_within_the_same_bounds() {
        let lines = of(b"", &[0xff; 5000]);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].len() <= BYTES);
        assert_eq!(of(b"", b"a\x1b[2Jb\n"), ["a\u{fffd}[2Jb"]);
    }

    proptest! {
        #[test]
        fn it_is_bounded_and_clean_whatever_is_in_the_log(
            pieces in prop::collection::vec(prop_oneof![
                prop::collection::vec(any::<u8>(), 0..50),
                (0..3000_usize).prop_map(|length| vec![b'y'; length]),
                Just(b"\n".to_vec()),
            ], 0..40),
            whole in any::<bool>(),
        ) {
            let lines = lines(&pieces.concat(), whole);
            prop_assert!(lines.len() <= LINES);
            prop_assert!(lines.iter().map(String::len).sum::<usize>() <= BYTES);
            prop_assert!(lines.iter().all(|line| !line.contains(char::is_control)));
        }
    }
}
