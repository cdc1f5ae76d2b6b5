//! Files and directories that only their owner may use.
//!
//! Owns the checks. Refuses whatever others could read, write or have put
//! there. Invariant: what is checked is what was opened, not what its path
//! leads to a moment later.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::error::IdentityError;

/// Root may own what is ours: it could change it anyway.
const ROOT: u32 = 0;

const STICKY: u32 = 0o1000;

/// Who runs this.
pub(crate) fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Which links count as what they lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    Refused,
}

/// Opens a file that is ours and that others cannot use, for reading.
pub(crate) fn open_private(path: &Path, links: Links) -> Result<(File, Metadata), IdentityError> {
    let mut flags = OFlags::NONBLOCK;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        // Something else than a file may not have an other end.
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(IdentityError::file("open", path))?;
    let metadata = file.metadata();
    let metadata = metadata.map_err(IdentityError::file("look at", path))?;
    if !metadata.is_file() {
        return Err(wrong_kind(path, "a file"));
    }
    owned(path, &metadata)?;
    private(path, &metadata, 0o077, 0o600)?;
    Ok((file, metadata))
}

/// Reads all of a file, if it is no larger than it may be.
pub(crate) fn read_text(file: File, path: &Path, limit: u64) -> Result<String, IdentityError> {
    let mut text = String::new();
    let read = file.take(limit + 1).read_to_string(&mut text);
    read.map_err(IdentityError::file("read", path))?;
    if text.len() as u64 > limit {
        return Err(IdentityError::Content {
            path: path.to_owned(),
            reason: format!("it is larger than {limit} bytes"),
        });
    }
    Ok(text)
}

/// Makes a directory for its owner only, and those above it, if it is missing.
pub(crate) fn make_directory(path: &Path) -> Result<(), IdentityError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(IdentityError::file("make the directory", path))
}

/// Sees to it that a directory is ours, no link, and nobody else's to use.
pub(crate) fn private_directory(path: &Path) -> Result<(), IdentityError> {
    let metadata = fs::symlink_metadata(path).map_err(IdentityError::file("look at", path))?;
    if !metadata.is_dir() {
        return Err(wrong_kind(
            path,
            "a directory (nor may it be a link to one)",
        ));
    }
    if metadata.uid() != me() {
        return Err(not_ours(path, &metadata));
    }
    private(path, &metadata, 0o077, 0o700)
}

/// Sees to it that nobody else can put files into a directory.
pub(crate) fn guarded_directory(path: &Path) -> Result<(), IdentityError> {
    let metadata = fs::metadata(path).map_err(IdentityError::file("look at", path))?;
    if !metadata.is_dir() {
        return Err(wrong_kind(path, "a directory"));
    }
    owned(path, &metadata)?;
    private(path, &metadata, 0o022, 0o700)
}

/// Sees to it that nobody else can put another file in the place of one that
/// was opened: also an older one of ours.
pub(crate) fn unmoved(path: &Path) -> Result<(), IdentityError> {
    let path = fs::canonicalize(path).map_err(IdentityError::file("find", path))?;
    let Some(directory) = path.parent() else {
        return Err(wrong_kind(&path, "a file"));
    };
    let metadata = fs::metadata(directory).map_err(IdentityError::file("look at", directory))?;
    // Where it is set, files can only be moved by their owners.
    if metadata.mode() & STICKY != 0 {
        return Ok(());
    }
    owned(directory, &metadata)?;
    private(directory, &metadata, 0o022, 0o700)
}

fn owned(path: &Path, metadata: &Metadata) -> Result<(), IdentityError> {
    if metadata.uid() == me() || metadata.uid() == ROOT {
        Ok(())
    } else {
        Err(not_ours(path, metadata))
    }
}

fn private(
    path: &Path,
    metadata: &Metadata,
    forbidden: u32,
    wanted: u32,
) -> Result<(), IdentityError> {
    if metadata.mode() & forbidden == 0 {
        return Ok(());
    }
    Err(IdentityError::Exposed {
        path: path.to_owned(),
        mode: metadata.mode() & 0o7777,
        wanted,
    })
}

fn not_ours(path: &Path, metadata: &Metadata) -> IdentityError {
    IdentityError::NotOurs {
        path: path.to_owned(),
        owner: metadata.uid(),
    }
}

fn wrong_kind(path: &Path, wanted: &'static str) -> IdentityError {
    IdentityError::WrongKind {
        path: path.to_owned(),
        wanted,
    }
}
