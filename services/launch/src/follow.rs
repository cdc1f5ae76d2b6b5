//! Reads a log while the process writes it.
//!
//! The process has the file itself: nothing is copied, and what it writes is
//! there whatever becomes of the gateway. So it is looked at whether the file
//! has grown, which costs one call when it has not; how often is the owner's
//! business ([`Pace`]). What has grown is read where waiting for a disk is no
//! harm.
//!
//! A log must not grow for ever. Past its cap its beginning is cut off while
//! the process is silent, or at twice the cap in any case; the last part of
//! what goes is kept beside it. Where the file system can take a piece out of a
//! file, not a byte is lost. Elsewhere the file is emptied after everything in
//! it was read, and what is written in the microsecond between the two is lost.
//!
//! A process can write faster than its log is read. What is more than can be
//! caught up with is cut off unread, but for its end, and that it was is logged
//! once: a disk that is full would be worse than a line that was missed.
//!
//! Invariant: dropping a future of this file loses no line.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};

use crate::lines::LogLines;
use crate::running::RunnerEvent;

/// So much is read at once.
const PIECE: usize = 64 << 10;
/// So often a log is read to its end again before it is emptied.
const LAST_LOOKS: usize = 8;

/// How large a log may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogSize {
    /// Past this it is cut.
    pub(crate) cap: u64,
    /// So much of what is cut off is kept.
    pub(crate) kept: u64,
    /// More than this is not read, but for its end of the length of `kept`.
    pub(crate) unread: u64,
}

impl Default for LogSize {
    fn default() -> Self {
        Self {
            cap: 16 << 20,
            kept: 1 << 20,
            unread: 64 << 20,
        }
    }
}

/// How often a log is looked at: the longer nothing was new, the more seldom.
#[derive(Debug)]
pub(crate) struct Pace {
    listening: bool,
    pause: Duration,
}

impl Pace {
    /// While the port is waited for.
    const STARTING: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));
    /// Afterwards there is little to be learnt: the end of the process is told
    /// otherwise.
    const LISTENING: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));

    pub(crate) fn new() -> Self {
        Self {
            listening: false,
            pause: Self::STARTING.0,
        }
    }

    fn bounds(&self) -> (Duration, Duration) {
        if self.listening {
            Self::LISTENING
        } else {
            Self::STARTING
        }
    }

    /// The pause after a look.
    pub(crate) fn after(&mut self, news: bool) -> Duration {
        let (shortest, longest) = self.bounds();
        self.pause = if news {
            shortest
        } else {
            (self.pause * 2).clamp(shortest, longest)
        };
        self.pause
    }

    pub(crate) fn note(&mut self, event: &RunnerEvent) {
        self.listening = match event {
            RunnerEvent::Listening { .. } => true,
            RunnerEvent::ListenerFailed { .. } | RunnerEvent::Exited { .. } => false,
        };
    }
}

/// Follows one log.
#[derive(Debug)]
pub(crate) struct Follow(State);

#[derive(Debug)]
enum State {
    Idle(Box<Tail>),
    Reading(JoinHandle<Box<Tail>>),
    /// The reading was broken off, because the runtime ends or by a bug.
    Lost,
}

impl Follow {
    /// Follows the log from its beginning; what is cut off goes to `cut`.
    pub(crate) fn open(log: &Path, cut: PathBuf, size: LogSize) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(log)?;
        Ok(Self(State::Idle(Box::new(Tail {
            file,
            path: log.to_owned(),
            cut,
            size,
            offset: 0,
            lines: LogLines::default(),
            said: VecDeque::new(),
            troubled: false,
            outpaced: false,
        }))))
    }

    /// The next thing that the log said.
    pub(crate) fn said(&mut self) -> Option<RunnerEvent> {
        match &mut self.0 {
            State::Idle(tail) => tail.said.pop_front(),
            State::Reading(_) | State::Lost => None,
        }
    }

    /// Whether [`Follow::said`] has something.
    pub(crate) fn has_said(&self) -> bool {
        match &self.0 {
            State::Idle(tail) => !tail.said.is_empty(),
            State::Reading(_) | State::Lost => false,
        }
    }

    /// Whether there is something to read.
    pub(crate) fn has_news(&self) -> bool {
        match &self.0 {
            State::Idle(tail) => tail.has_news(),
            State::Reading(_) => true,
            State::Lost => false,
        }
    }

    /// Reads what there is.
    pub(crate) async fn read(&mut self) {
        self.settle().await;
        self.0 = match std::mem::replace(&mut self.0, State::Lost) {
            State::Idle(mut tail) => State::Reading(spawn_blocking(move || {
                tail.read();
                tail
            })),
            other @ (State::Reading(_) | State::Lost) => other,
        };
        self.settle().await;
    }

    /// Finishes a reading that somebody else began.
    async fn settle(&mut self) {
        if let State::Reading(reading) = &mut self.0 {
            self.0 = match reading.await {
                Ok(tail) => State::Idle(tail),
                Err(error) => {
                    tracing::error!(%error, "a runner's log is followed no longer");
                    State::Lost
                }
            };
        }
    }

    /// What the line said that nobody completed.
    pub(crate) fn end(&mut self) {
        if let State::Idle(tail) = &mut self.0 {
            let last = tail.lines.end();
            tail.said.extend(last);
        }
    }
}

/// A log, and how far it was read.
#[derive(Debug)]
struct Tail {
    file: File,
    path: PathBuf,
    /// Where the end of what is cut off goes.
    cut: PathBuf,
    size: LogSize,
    offset: u64,
    lines: LogLines,
    said: VecDeque<RunnerEvent>,
    /// Whether its last reading failed.
    troubled: bool,
    /// Whether something was not read, because it came too fast.
    outpaced: bool,
}

impl Tail {
    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn has_news(&self) -> bool {
        self.length()
            .is_ok_and(|length| length != self.offset || length > self.size.cap)
    }

    fn read(&mut self) {
        match self.try_read() {
            Ok(()) => self.troubled = false,
            Err(error) => {
                if !self.troubled {
                    tracing::warn!(%error, path = %self.path.display(), "a runner's log cannot be read");
                }
                self.troubled = true;
            }
        }
    }

    fn try_read(&mut self) -> io::Result<()> {
        let length = self.length()?;
        if length < self.offset {
            // Somebody else has emptied it.
            self.offset = 0;
            self.lines = LogLines::default();
        }
        let silent = length == self.offset;
        let outpaced = self.is_outpaced(length);
        if outpaced {
            self.skip(length);
        }
        self.read_until(length, None)?;
        let cap = self.size.cap;
        if length > cap && (silent || outpaced || length > cap.saturating_mul(2)) {
            self.shorten()?;
        }
        Ok(())
    }

    /// Whether so much is new that reading it would let more become new.
    fn is_outpaced(&self, length: u64) -> bool {
        length.saturating_sub(self.offset) > self.size.unread
    }

    /// Goes on at the end.
    fn skip(&mut self, length: u64) {
        let unread = self.offset;
        self.offset = self.offset.max(length.saturating_sub(self.size.kept));
        self.lines = LogLines::default();
        if !self.outpaced {
            tracing::warn!(
                path = %self.path.display(), bytes = self.offset - unread,
                "a runner's log grows faster than it can be read: parts of it are cut off unread"
            );
        }
        self.outpaced = true;
    }

    /// Reads up to here, and copies what it reads.
    fn read_until(&mut self, end: u64, mut copy: Option<&mut File>) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        while self.offset < end {
            let bytes = match self.file.read_at(&mut piece, self.offset) {
                Ok(0) => break,
                Ok(count) => piece.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if let Some(copy) = &mut copy {
                copy.write_all(bytes)?;
            }
            self.lines.push(bytes, |event| self.said.push_back(event));
            self.offset += bytes.len() as u64;
        }
        Ok(())
    }

    /// Cuts off what was read.
    fn shorten(&mut self) -> io::Result<()> {
        let mut copy = match self.keep() {
            Ok(copy) => Some(copy),
            Err(error) => {
                tracing::warn!(%error, path = %self.cut.display(), "the end of a log that is cut cannot be kept");
                None
            }
        };
        if let Some(taken) = take_out(&self.file, self.offset) {
            self.offset -= taken;
            if let Some(copy) = &copy {
                let kept = copy.metadata()?.len();
                copy.set_len(kept.saturating_sub(self.offset))?;
            }
            return Ok(());
        }
        for _ in 0..LAST_LOOKS {
            let length = self.length()?;
            if length == self.offset || self.is_outpaced(length) {
                break;
            }
            self.read_until(length, copy.as_mut())?;
        }
        self.file.set_len(0)?;
        self.offset = 0;
        Ok(())
    }

    /// Copies the last part of what was read.
    fn keep(&self) -> io::Result<File> {
        let mut copy = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&self.cut)?;
        let mut from = self.offset.saturating_sub(self.size.kept);
        let mut piece = vec![0; PIECE];
        while from < self.offset {
            let room = usize::try_from(self.offset - from).unwrap_or(PIECE);
            let room = piece.get_mut(..room.min(PIECE)).unwrap_or_default();
            let count = self.file.read_at(room, from)?;
            if count == 0 {
                break;
            }
            copy.write_all(room.get(..count).unwrap_or_default())?;
            from += count as u64;
        }
        Ok(copy)
    }
}

/// Takes whole blocks out of a file's beginning, of the first `length` bytes as
/// many as it can; none if the file system cannot.
#[cfg(target_os = "linux")]
fn take_out(file: &File, length: u64) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{FallocateFlags, fallocate};

    // At least one byte must stay.
    let block = file.metadata().ok()?.blksize();
    let taken = length.checked_sub(1)?.checked_div(block)? * block;
    if taken == 0 {
        return None;
    }
    fallocate(file, FallocateFlags::COLLAPSE_RANGE, 0, taken).ok()?;
    Some(taken)
}

#[cfg(not(target_os = "linux"))]
fn take_out(_: &File, _: u64) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests;
