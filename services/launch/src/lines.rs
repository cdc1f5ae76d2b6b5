//! The lines of a runner's log, of which only two kinds matter.
//!
//! A line counts when it is complete: a port that is half written is no port.
//! Bytes come in pieces of any size and may be anything. Of a line no more is
//! held than what can still matter, however long it is.

use std::num::NonZeroU16;

use memchr::memmem;

use crate::running::RunnerEvent;
use crate::text::clean;

const LISTENING: &[u8] = b"ARGENT_RUNNER_LISTENING port=";
const FAILED: &[u8] = b"ARGENT_RUNNER_LISTENER_FAILED";
const ERROR: &[u8] = b"error=";

/// So much of what follows a mark is looked at.
const HELD: usize = 512;

/// What a mark in a line announces.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Listening,
    Failed,
}

impl Mark {
    /// The first mark in these bytes, and where what it says begins.
    fn first(bytes: &[u8]) -> Option<(Self, usize)> {
        let find = |mark: Self, text: &[u8]| Some((memmem::find(bytes, text)?, text.len(), mark));
        let marks = [find(Self::Listening, LISTENING), find(Self::Failed, FAILED)];
        let (at, length, mark) = marks.into_iter().flatten().min_by_key(|(at, ..)| *at)?;
        Some((mark, at + length))
    }

    /// So many bytes of a line without a mark may be the beginning of one.
    const OVERLAP: usize = {
        if LISTENING.len() > FAILED.len() {
            LISTENING.len() - 1
        } else {
            FAILED.len() - 1
        }
    };
}

/// Reads a runner's log as it grows.
///
/// ```
/// use fleetgate_launch::{LogLines, RunnerEvent};
///
/// let (mut lines, mut said) = (LogLines::default(), Vec::new());
/// lines.push(b"12:00 Runner[7] ARGENT_RUNNER_LISTENING port=81", |event| said.push(event));
/// assert!(said.is_empty());
/// lines.push(b"00\n", |event| said.push(event));
/// assert!(matches!(said[..], [RunnerEvent::Listening { port }] if port.get() == 8100));
/// ```
#[derive(Debug, Default)]
pub struct LogLines {
    /// The last bytes of a line without a mark, or what follows its mark.
    held: Vec<u8>,
    mark: Option<Mark>,
}

impl LogLines {
    /// Takes the next bytes of the log, and hands on what its lines say.
    pub fn push(&mut self, bytes: &[u8], mut said: impl FnMut(RunnerEvent)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            self.take(line);
            if let Some(event) = self.finish(true) {
                said(event);
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.take(rest);
    }

    /// Ends a line that nobody will complete. A failure is one however far its
    /// words got; a port that may lack its last digit is none.
    pub fn end(&mut self) -> Option<RunnerEvent> {
        self.finish(false)
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.mark.is_some() {
            let room = HELD.saturating_sub(self.held.len());
            self.held.extend(bytes.iter().take(room));
            return;
        }
        self.held.extend_from_slice(bytes);
        if let Some((mark, end)) = Mark::first(&self.held) {
            self.mark = Some(mark);
            self.held.drain(..end);
            self.held.truncate(HELD);
        } else {
            let excess = self.held.len().saturating_sub(Mark::OVERLAP);
            self.held.drain(..excess);
        }
        self.held.shrink_to(HELD);
    }

    fn finish(&mut self, complete: bool) -> Option<RunnerEvent> {
        let mark = self.mark.take();
        let event = match mark {
            Some(Mark::Listening) if complete => {
                port(&self.held).map(|port| RunnerEvent::Listening { port })
            }
            Some(Mark::Failed) => Some(RunnerEvent::ListenerFailed {
                error: error(&self.held),
            }),
            Some(Mark::Listening) | None => None,
        };
        self.held.clear();
        event
    }
}

/// The port that a line names: decimal digits up to its end or a space.
fn port(text: &[u8]) -> Option<NonZeroU16> {
    let word = text.split(u8::is_ascii_whitespace).next()?;
    if word.len() > 5 || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(word).ok()?.parse().ok()
}

fn error(text: &[u8]) -> String {
    let text = text.trim_ascii();
    let text = text.strip_prefix(ERROR).unwrap_or(text);
    clean(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a log says that comes in these pieces and then ends.
    fn said<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<RunnerEvent> {
        let (mut lines, mut events) = (LogLines::default(), Vec::new());
        for piece in pieces {
            lines.push(piece, |event| events.push(event));
            assert!(
                lines.held.capacity() <= 2 * HELD,
                "{}",
                lines.held.capacity()
            );
        }
        events.extend(lines.end());
        events
    }

    fn ports(log: &[u8]) -> Vec<u16> {
        let ports = said([log]).into_iter().map(|event| {
            let RunnerEvent::Listening { port } = event else {
                panic!("{event:?}");
            };
            port.get()
        });
        ports.collect()
    }

    const NONE: [u16; 0] = [];

    fn failure(log: &[u8]) -> String {
        match said([log]).as_slice() {
            [RunnerEvent::ListenerFailed { error }] => error.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_port_stands_anywhere_in_a_line() {
        let log = b"2026-01-01 12:00:00.000 Runner[7:9] ARGENT_RUNNER_LISTENING port=8100\n";
        assert_eq!(ports(log), [8100]);
        assert_eq!(ports(b"ARGENT_RUNNER_LISTENING port=1 (IPv4)\r\n"), [1]);
        assert_eq!(
            ports(b"\xff\xfeARGENT_RUNNER_LISTENING port=65535\n"),
            [65535]
        );
    }

    #[test]
    fn what_is_no_port_is_none() {
        for word in [
            "0", "00000", "65536", "99999", "123456", "+81", "-1", "", " 81", "81x", "8\u{e9}",
            "0x51", "81,", "port=81",
        ] {
            let log = format!("ARGENT_RUNNER_LISTENING port={word}\n");
            assert_eq!(ports(log.as_bytes()), NONE, "{word}");
        }
        assert_eq!(ports(b"ARGENT_RUNNER_LISTENING  port=81\n"), NONE);
        assert_eq!(ports(b"argent_runner_listening port=81\n"), NONE);
        assert_eq!(ports(b"ARGENT_RUNNER_LISTENING\nport=81\n"), NONE);
    }

    #[test]
    fn a_line_without_its_end_names_no_port() {
        assert_eq!(ports(b"ARGENT_RUNNER_LISTENING port=8100"), NONE);
        assert_eq!(ports(b"ARGENT_RUNNER_LISTENING port=8100\r"), NONE);
    }

    #[test]
    fn every_complete_line_counts_and_the_last_port_comes_last() {
        let log = b"ARGENT_RUNNER_LISTENING port=1\nx\nARGENT_RUNNER_LISTENING port=2\n";
        assert_eq!(ports(log), [1, 2]);
    }

    #[test]
    fn a_failed_listener_is_reported_with_its_words_even_if_they_were_cut_off() {
        assert_eq!(
            failure(b"x ARGENT_RUNNER_LISTENER_FAILED error=address in use\r\n"),
            "address in use"
        );
        assert_eq!(failure(b"ARGENT_RUNNER_LISTENER_FAILED error=addr"), "addr");
        assert_eq!(failure(b"ARGENT_RUNNER_LISTENER_FAILED\n"), "");
        let long = [
            b"ARGENT_RUNNER_LISTENER_FAILED error=",
            [b'x'; 5000].as_slice(),
        ]
        .concat();
        assert!(failure(&long).len() <= HELD);
    }

    #[test]
    fn a_mark_at_the_end_of_a_line_of_megabytes_is_found() {
        let mut log = vec![b'x'; 3 << 20];
        log.extend_from_slice(b" ARGENT_RUNNER_LISTENING port=8100\n");
        assert_eq!(ports(&log), [8100]);
        let pieces: Vec<_> = said(log.chunks(1000));
        assert_eq!(pieces.len(), 1);
    }

    #[test]
    fn the_first_mark_of_a_line_decides() {
        assert_eq!(
            ports(b"ARGENT_RUNNER_LISTENING port=x ARGENT_RUNNER_LISTENING port=81\n"),
            NONE
        );
    }

    /// Text in which marks, halves of marks and ends of lines are frequent.
    fn log() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(LISTENING.to_vec()),
            Just(FAILED.to_vec()),
            Just(b" error=".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            (0..40_usize).prop_map(|end| LISTENING.get(..end).unwrap_or(b"8100\n").to_vec()),
            (0..40_usize).prop_map(|end| FAILED.get(..end).unwrap_or(b"0\n").to_vec()),
            (0..70_000_u32).prop_map(|port| port.to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..8),
            (500..600_usize).prop_map(|length| vec![b'9'; length]),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_a_log_is_cut(log in log(), sizes in prop::collection::vec(1..50_usize, 1..8)) {
            let mut pieces = Vec::new();
            let (mut rest, mut sizes) = (log.as_slice(), sizes.into_iter().cycle());
            while !rest.is_empty() {
                let size = sizes.next().unwrap_or(1).min(rest.len());
                let (piece, after) = rest.split_at(size);
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(said(pieces), said([log.as_slice()]));
        }

        #[test]
        fn lines_do_not_touch_each_other(log in log()) {
            let alone = log.split_inclusive(|byte| *byte == b'\n');
            let alone: Vec<_> = alone.flat_map(|line| said([line])).collect();
            prop_assert_eq!(alone, said([log.as_slice()]));
        }
    }
}
