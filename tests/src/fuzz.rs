//! What must hold for any bytes that a parser meets: one function per fuzz
//! target, which panics where a promise is broken.
//!
//! The fuzz targets call these with what the fuzzer makes up, and the replay of
//! the corpora with what it found worth keeping, so that neither can check less
//! than the other. Nothing here does I/O but for the configuration, which is
//! read from a file.

mod config;
mod lockdown;
mod names;
mod runner_log;
mod runner_reply;
mod runner_request;
mod usbmux;

pub use config::config;
pub use lockdown::lockdown;
pub use names::names;
pub use runner_log::runner_log;
pub use runner_reply::runner_reply;
pub use runner_request::runner_request;
pub use usbmux::usbmux;

use std::time::Duration;

/// Every way in which a stream is cut before the results are compared: whole,
/// in single bytes, and in pieces whose lengths its own bytes decide.
fn cuts(stream: &[u8]) -> [Vec<&[u8]>; 3] {
    let mut pieces = Vec::new();
    let (mut rest, mut state) = (stream, 0x9e37_79b9_u32);
    while let Some(&first) = rest.first() {
        state = (state ^ u32::from(first)).wrapping_mul(0x0100_0193);
        let length = 1 + (state >> 24) as usize % 61;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    [vec![stream], stream.chunks(1).collect(), pieces]
}

/// A duration as it travels: whole milliseconds, as many as 64 bits hold.
fn as_it_travels(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// What a parser says of bytes that it refuses may go into logs and replies, so
/// that it must not repeat them at length.
fn assert_brief(complaint: &str) {
    assert!(complaint.len() <= 512, "{} bytes", complaint.len());
}
