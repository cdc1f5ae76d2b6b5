//! Whether the file that is open is still the one that its path names.
//!
//! A file that was removed, or replaced by another, can be written on and on
//! without an error, and all of that is gone with the last descriptor: the next
//! gateway would find nothing, and take that for proof that nothing was sent.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file's identity, whatever its name becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    device: u64,
    inode: u64,
}

impl Place {
    /// That of the file at `path`.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
        })
    }

    /// Fails unless this file is still at `path`. Costs one `stat`.
    pub(crate) fn check(self, path: &Path) -> io::Result<()> {
        match Self::of(path) {
            Ok(found) if found == self => Ok(()),
            Ok(_) => Err(io::Error::other("the file was replaced by another")),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(io::Error::new(ErrorKind::NotFound, "the file was removed"))
            }
            Err(error) => Err(error),
        }
    }
}
