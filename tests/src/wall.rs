//! The wall clock of a gateway of the real binary, which a test sets while it
//! runs: Debian's libfaketime between it and the kernel. The monotonic clock is
//! left alone, as it is when somebody sets the time.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::process::Command;

use crate::place::Place;

/// A wall clock.
#[derive(Debug)]
pub struct Wall {
    file: PathBuf,
}

impl Wall {
    /// One that goes right.
    pub fn of(place: &Place) -> Self {
        let wall = Self {
            file: place.path("wall-clock"),
        };
        wall.set(0);
        wall
    }

    /// Sets it to so many hours after what it should be.
    pub fn set(&self, hours: i64) {
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{:+}\n", hours * 3600)).expect("a file");
        // At once: nobody reads half of it.
        fs::rename(&new, &self.file).expect("a file in its place");
    }

    /// Has a process go by it.
    pub fn wear(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", library())
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1")
            // What the files of the gateway say of themselves stays true.
            .env("NO_FAKE_STAT", "1");
    }
}

/// The time by a clock that is so many hours ahead, or behind.
pub fn ahead(hours: i64) -> SystemTime {
    let hour = Duration::from_secs(3600 * hours.unsigned_abs());
    let now = SystemTime::now();
    if hours < 0 { now - hour } else { now + hour }
}

/// Where Debian has it.
fn library() -> PathBuf {
    let triples = fs::read_dir("/usr/lib").expect("libraries");
    let mut candidates = triples
        .filter_map(Result::ok)
        .map(|triple| triple.path().join("faketime/libfaketimeMT.so.1"));
    let found = candidates.find(|library| library.exists());
    found.expect("no libfaketime: install Debian's package faketime, as tests/run does")
}
