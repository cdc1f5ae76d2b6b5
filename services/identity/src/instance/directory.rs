//! The directory of discovery records.
//!
//! ```text
//! <directory>/<instance>.json    one gateway; of mode 600, put there at once
//! ```
//!
//! It is `$FLEETGATE_RUNTIME_DIR`, or `$XDG_RUNTIME_DIR/fleetgate`, or
//! `~/.local/state/fleetgate/run`: of mode 700, this user's, and no link.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use zeroize::Zeroizing;

use super::InstanceRecord;
use super::process::{Life, ProcessStart};
use crate::error::IdentityError;
use crate::guard::{self, Links};
use crate::secret::Secret;

const SUFFIX: &str = ".json";
const MAX_SIZE: u64 = 64 << 10;
/// What a record hardly ever exceeds; a text that grows would leave copies of
/// itself behind.
const USUAL_SIZE: usize = 8 << 10;

/// The directory in which this user's gateways are on record. Every call
/// reads or writes files.
#[derive(Debug, Clone)]
pub struct Instances {
    directory: PathBuf,
}

impl Instances {
    /// The directory that the environment names.
    pub fn find() -> Result<Self, IdentityError> {
        Self::named_by(|variable| std::env::var_os(variable))
    }

    /// The directory at a path. It need not be there.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    fn named_by(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, IdentityError> {
        let path = |name| {
            variable(name)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        // Relative directories are ignored, as the XDG specification demands.
        let absolute = |name| path(name).filter(|path| path.is_absolute());
        let directory = match path("FLEETGATE_RUNTIME_DIR") {
            // Programs that begin elsewhere are to find the same.
            Some(path) if path.is_relative() => return Err(IdentityError::Relative { path }),
            Some(path) => Some(path),
            None => absolute("XDG_RUNTIME_DIR")
                .map(|path| path.join("fleetgate"))
                .or_else(|| absolute("HOME").map(|path| path.join(".local/state/fleetgate/run"))),
        };
        directory.map(Self::at).ok_or(IdentityError::NoDirectory)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Puts a gateway on record until what is returned is dropped. The
    /// directory is made if it is missing.
    pub fn publish(&self, record: &InstanceRecord) -> Result<Published, IdentityError> {
        guard::make_directory(&self.directory)?;
        guard::private_directory(&self.directory)?;
        let path = self.directory.join(format!("{}{SUFFIX}", record.instance));
        let written = write(&self.directory, &path, record);
        let file = written.map_err(IdentityError::file("write", &path))?;
        Ok(Published {
            path,
            file: (file.dev(), file.ino()),
        })
    }

    /// The gateways that run, those first that began first. Records of those
    /// that have ended are removed; files that this user did not write, or
    /// that others can read, are left alone, with a warning.
    pub fn list(&self) -> Result<Vec<InstanceRecord>, IdentityError> {
        match guard::private_directory(&self.directory) {
            Err(IdentityError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(Vec::new());
            }
            checked => checked?,
        }
        let read = IdentityError::file("read", &self.directory);
        let entries = fs::read_dir(&self.directory).map_err(read)?;
        let mut records = Vec::new();
        for entry in entries {
            let entry = entry.map_err(IdentityError::file("read", &self.directory))?;
            let name = entry.file_name();
            let name = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            let Some(instance) = name.and_then(|name| Uuid::try_parse(name).ok()) else {
                continue;
            };
            records.extend(one(&entry.path(), instance));
        }
        records.sort_by_key(|record| (record.started, record.instance));
        Ok(records)
    }
}

/// The record in a file, if its gateway lives.
fn one(path: &Path, instance: Uuid) -> Option<InstanceRecord> {
    let read = || {
        let (file, metadata) = guard::open_private(path, Links::Refused)?;
        let text = Zeroizing::new(guard::read_text(file, path, MAX_SIZE)?);
        let record = parse(&text, instance).map_err(|reason| IdentityError::Content {
            path: path.to_owned(),
            reason,
        })?;
        Ok((record, metadata))
    };
    let (record, file) = match read() {
        Ok(read) => read,
        // It ended while the others were read.
        Err(IdentityError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
            return None;
        }
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "a discovery record is left alone");
            return None;
        }
    };
    match record.process_start.life(record.pid) {
        Life::Lives => Some(record),
        Life::Ended => {
            remove(path, (file.dev(), file.ino()));
            None
        }
        Life::OutOfSight => {
            tracing::debug!(path = %path.display(), "a discovery record is of a process that cannot be seen from here");
            None
        }
    }
}

/// A record that is there as long as this is.
#[derive(Debug)]
#[must_use = "the record is removed when this is dropped"]
pub struct Published {
    path: PathBuf,
    file: (u64, u64),
}

impl Published {
    /// Where the record is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        remove(&self.path, self.file);
    }
}

/// Removes a record, unless it is another by now.
fn remove(path: &Path, file: (u64, u64)) {
    let there = fs::symlink_metadata(path).map(|there| (there.dev(), there.ino()));
    if there.ok() != Some(file) {
        return;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            tracing::warn!(%error, path = %path.display(), "a discovery record cannot be removed");
        }
        Ok(()) | Err(_) => {}
    }
}

/// What stands in the file.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    version: u32,
    pid: u32,
    process_start: ProcessStart,
    instance: Uuid,
    address: SocketAddr,
    tls: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca: Option<PathBuf>,
    token: &'a str,
    #[serde(with = "humantime_serde")]
    started: SystemTime,
}

fn write(directory: &Path, path: &Path, record: &InstanceRecord) -> io::Result<Metadata> {
    let written = Written {
        version: record.version,
        pid: record.pid,
        process_start: record.process_start.clone(),
        instance: record.instance,
        address: record.address,
        tls: record.tls,
        ca: record.ca.clone(),
        token: record.token.expose(),
        started: record.started,
    };
    let mut text = Zeroizing::new(Vec::with_capacity(USUAL_SIZE));
    serde_json::to_writer_pretty(&mut *text, &written)?;
    // A file for its owner only, from its first byte on.
    let mut new = tempfile::Builder::new()
        .prefix(".record-")
        .tempfile_in(directory)?;
    new.write_all(&text)?;
    new.as_file().sync_all()?;
    let file = new.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()?;
    file.metadata()
}

/// Reads a record. What is wrong with it is said without any of its words.
fn parse(text: &str, instance: Uuid) -> Result<InstanceRecord, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let fault = |error: serde_json::Error| {
        format!(
            "line {}, column {}: {:?} error",
            error.line(),
            error.column(),
            error.classify()
        )
    };
    let Version { version } = serde_json::from_str(text).map_err(fault)?;
    if version != InstanceRecord::VERSION {
        let known = InstanceRecord::VERSION;
        return Err(format!(
            "it is of version {version}, and this program knows {known}"
        ));
    }
    let written: Written<'_> = serde_json::from_str(text).map_err(fault)?;
    if written.instance != instance {
        return Err("it is of another instance than its name says".to_owned());
    }
    Ok(InstanceRecord {
        version,
        pid: written.pid,
        process_start: written.process_start,
        instance,
        address: written.address,
        tls: written.tls,
        ca: written.ca,
        token: Secret::new(written.token.to_owned()),
        started: written.started,
    })
}

#[cfg(test)]
mod tests;
