//! A runner's log: which lines of it say something, and what.

use fleetgate_launch::{LogLines, RunnerEvent};

use super::cuts;

const LISTENING: &str = "ARGENT_RUNNER_LISTENING port=";
const FAILED: &str = "ARGENT_RUNNER_LISTENER_FAILED";

/// Takes the bytes as a log that ends where they end.
///
/// # Panics
///
/// If what a log says depends on how it was cut or on other lines, if a line
/// says what does not stand in it, or if a complaint is long or steers a
/// terminal.
pub fn runner_log(data: &[u8]) {
    let [whole, others @ ..] = cuts(data).map(|pieces| read(&pieces));
    for other in others {
        assert_eq!(other, whole, "the cut decides");
    }
    let lines = data.split_inclusive(|byte| *byte == b'\n');
    let alone: Vec<_> = lines.filter_map(said).collect();
    assert_eq!(alone, whole, "another line decides");
}

/// What one line says by itself, and whether it may.
fn said(line: &[u8]) -> Option<RunnerEvent> {
    let mut events = read(&[line]);
    let event = events.pop();
    assert!(events.is_empty(), "one line, more than one event");
    let text = String::from_utf8_lossy(line);
    let marks = [LISTENING, FAILED].map(|mark| text.find(mark).unwrap_or(usize::MAX));
    match &event {
        Some(RunnerEvent::Listening { port }) => {
            assert!(marks[0] < marks[1] && line.ends_with(b"\n"));
            let word = text.split_at(marks[0] + LISTENING.len()).1;
            let word = word.split(|other: char| other.is_ascii_whitespace()).next();
            assert!(word.is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())));
            assert_eq!(word.and_then(|word| word.parse().ok()), Some(port.get()));
        }
        Some(RunnerEvent::ListenerFailed { error }) => {
            assert!(marks[1] < marks[0]);
            assert!(!error.contains(char::is_control), "{error:?}");
            // A byte that is none of a text has three in its stead.
            assert!(error.len() <= 3 * 512, "{} bytes", error.len());
        }
        Some(RunnerEvent::Exited { .. }) => panic!("a log does not end a process"),
        None => assert!(marks[1] == usize::MAX || marks[0] < marks[1]),
    }
    event
}

fn read(pieces: &[&[u8]]) -> Vec<RunnerEvent> {
    let (mut lines, mut events) = (LogLines::default(), Vec::new());
    for piece in pieces {
        lines.push(piece, |event| events.push(event));
    }
    events.extend(lines.end());
    events
}
