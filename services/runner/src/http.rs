//! The runner's side of HTTP/1.1, without I/O: one request in, one reply out.
//!
//! A runner looks at three things only: where the header block ends, the last
//! `Content-Length` in it, and that many bytes of body. Method, path and every
//! other header are ignored; there is no chunked encoding.
//!
//! Invariant: what comes out depends on the bytes alone, not on how they were
//! cut into pieces, and never more is kept than a runner takes.

use std::fmt;

use bytes::{Bytes, BytesMut};

use crate::MAX_REQUEST_BYTES;
use crate::code::{RunnerCode, RunnerError};

const HEADER_END: &[u8] = b"\r\n\r\n";

/// Why the framing layer refuses a request, before any command is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The header block has ended and has no usable `Content-Length`: 400.
    #[error("the request has no usable Content-Length")]
    NoContentLength,
    /// The declared body, or what has come in, is over the limit: 413.
    #[error("the request is larger than {MAX_REQUEST_BYTES} bytes")]
    TooLarge,
}

impl FrameError {
    /// The HTTP status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            Self::NoContentLength => 400,
            Self::TooLarge => 413,
        }
    }

    /// What the runner's error envelope says about it.
    pub fn into_verdict(self) -> RunnerError {
        RunnerError {
            code: RunnerCode::InvalidRequest,
            message: self.to_string(),
            hint: None,
        }
    }
}

/// Takes the bytes of one connection and gives the one body that they carry.
///
/// ```
/// use fleetgate_runner::http::{FrameError, RequestDecoder};
///
/// let mut decoder = RequestDecoder::new();
/// assert_eq!(decoder.push(b"POST /command HTTP/1.1\r\ncontent-length: 2\r\n\r")?, None);
/// assert_eq!(decoder.push(b"\n{}")?.as_deref(), Some(&b"{}"[..]));
/// # Ok::<(), FrameError>(())
/// ```
#[derive(Default)]
pub struct RequestDecoder {
    buffer: BytesMut,
    progress: Progress,
}

#[derive(Debug, Default, Clone, Copy)]
enum Progress {
    /// The header block has not ended yet.
    #[default]
    Header,
    /// The body is this part of the buffer.
    Body { start: usize, end: usize },
    /// The body was given out or the request refused: the rest is ignored.
    Spent,
}

/// Shows the number of bytes only: they may hold typed text.
impl fmt::Debug for RequestDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RequestDecoder({:?}, {} bytes)",
            self.progress,
            self.buffer.len()
        )
    }
}

impl RequestDecoder {
    /// A decoder for one connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what came in. Gives the body once it is whole, and after that, as
    /// after an error, nothing more: a connection carries one request.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Bytes>, FrameError> {
        let outcome = self.advance(bytes);
        if !matches!(outcome, Ok(None)) {
            *self = Self {
                buffer: BytesMut::new(),
                progress: Progress::Spent,
            };
        }
        outcome
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<Option<Bytes>, FrameError> {
        if matches!(self.progress, Progress::Spent) {
            return Ok(None);
        }
        // One byte over the limit is enough to know that it is passed.
        let room = MAX_REQUEST_BYTES + 1 - self.buffer.len();
        let searched = self.buffer.len().saturating_sub(HEADER_END.len() - 1);
        self.buffer
            .extend_from_slice(&bytes[..bytes.len().min(room)]);

        if let Progress::Header = self.progress
            && let Some(at) = find(&self.buffer[searched..], HEADER_END)
            && searched + at + HEADER_END.len() <= MAX_REQUEST_BYTES
        {
            let start = searched + at + HEADER_END.len();
            let length = content_length(&self.buffer[..start])?;
            if length > MAX_REQUEST_BYTES {
                return Err(FrameError::TooLarge);
            }
            self.progress = Progress::Body {
                start,
                end: start + length,
            };
        }
        if let Progress::Body { start, end } = self.progress
            && end <= self.buffer.len().min(MAX_REQUEST_BYTES)
        {
            return Ok(Some(self.buffer.split().freeze().slice(start..end)));
        }
        if self.buffer.len() > MAX_REQUEST_BYTES {
            return Err(FrameError::TooLarge);
        }
        Ok(None)
    }
}

/// A whole HTTP reply around an envelope.
pub fn response(status: u16, body: &[u8]) -> Vec<u8> {
    let phrase = if status == 200 { "OK" } else { "Error" };
    let header = format!(
        "HTTP/1.1 {status} {phrase}\r\n\
         Content-Type: application/json\r\n\
         Content-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    [header.as_bytes(), body].concat()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The last `Content-Length` of a header block.
fn content_length(header: &[u8]) -> Result<usize, FrameError> {
    header
        .split(|&byte| byte == b'\n')
        .skip(1)
        .filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (name, value) = (line[..colon].trim_ascii(), &line[colon + 1..]);
            name.eq_ignore_ascii_case(b"Content-Length")
                .then(|| value.trim_ascii())
        })
        .last()
        .and_then(number)
        .ok_or(FrameError::NoContentLength)
}

/// A number of decimal digits and nothing else. One past all bounds is still a
/// number: it is too large, not unusable.
fn number(digits: &[u8]) -> Option<usize> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_usize, |number, digit| {
        digit.is_ascii_digit().then(|| {
            number
                .saturating_mul(10)
                .saturating_add((digit - b'0').into())
        })
    })
}
