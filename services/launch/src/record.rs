//! What is written down of a process, so that a later gateway finds it.
//!
//! ```text
//! written, without a process   before anything is started
//! written, with its process    before the process may run its program
//! removed                      when the whole group is gone
//! ```
//!
//! A record is replaced as a whole. It need not survive the host: the processes
//! do not either, so nothing is forced to the disk.
//!
//! Invariant: what cannot be read is never acted upon, and never thrown away.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetgate_runner::Udid;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::LaunchError;
use crate::place::make_own;

const VERSION: u32 = 1;
/// No record is larger.
const LARGEST: u64 = 64 << 10;
const SUFFIX: &str = ".json";
const HALF_WRITTEN: &str = ".json.new";
const ASIDE: &str = ".json.unreadable";

/// A process that may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    /// What its environment says.
    pub(crate) launch: Uuid,
    pub(crate) device: Udid,
    /// For people who look.
    program: String,
    stop_grace_ms: u64,
    /// Absent until it is started.
    pub(crate) process: Option<Started>,
}

/// A process that was started, as the leader of a group of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Started {
    /// Its number, and its group's.
    pub(crate) pid: u32,
    /// What `start` counts from.
    pub(crate) epoch: String,
    /// When it began.
    pub(crate) start: String,
}

impl Record {
    pub(crate) fn new(launch: Uuid, device: Udid, program: String, stop_grace: Duration) -> Self {
        Self {
            version: VERSION,
            launch,
            device,
            program,
            stop_grace_ms: u64::try_from(stop_grace.as_millis()).unwrap_or(u64::MAX),
            process: None,
        }
    }

    pub(crate) fn stop_grace(&self) -> Duration {
        Duration::from_millis(self.stop_grace_ms)
    }

    /// Puts it in the place of the one before. Their directory is made again if
    /// somebody has removed it.
    pub(crate) fn write(&self, records: &Path) -> Result<(), LaunchError> {
        make_own(records)?;
        let new = records.join(format!("{}{HALF_WRITTEN}", self.device));
        let write = || {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            fs::rename(&new, path(records, &self.device))
        };
        write().map_err(|source| {
            fs::remove_file(&new).ok();
            LaunchError::file("write", &new)(source)
        })
    }

    /// Removes the record of a phone whose group is gone. One that cannot be
    /// removed stays: the next sweep finds nothing behind it.
    pub(crate) fn forget(records: &Path, device: &Udid) {
        match fs::remove_file(path(records, device)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(
                    device.id = %device, %error,
                    "the record of a launch that has ended cannot be removed"
                );
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn parse(text: &[u8], device: &Udid) -> Result<Self, InvalidRecord> {
        let record: Self = serde_json::from_slice(text)?;
        if record.version != VERSION {
            return Err(InvalidRecord::Version(record.version));
        }
        if record.device != *device {
            return Err(InvalidRecord::Device(record.device));
        }
        match &record.process {
            // The first process's group, and everybody's.
            Some(started) if started.pid <= 1 || i32::try_from(started.pid).is_err() => {
                Err(InvalidRecord::Pid(started.pid))
            }
            Some(_) | None => Ok(record),
        }
    }
}

/// Why a record makes no sense.
#[derive(Debug, thiserror::Error)]
enum InvalidRecord {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("it has version {0}")]
    Version(u32),
    #[error("it is about {0}")]
    Device(Udid),
    #[error("no process can have the number {0}")]
    Pid(u32),
}

fn path(records: &Path, device: &Udid) -> PathBuf {
    records.join(format!("{device}{SUFFIX}"))
}

/// What is on record of a phone.
#[derive(Debug)]
pub(crate) enum OnRecord {
    Nothing,
    Launch(Record),
    /// It was moved to here.
    Unreadable(PathBuf),
}

/// Reads the record of a phone, and moves it aside if it makes no sense.
pub(crate) fn read(records: &Path, device: &Udid) -> Result<OnRecord, LaunchError> {
    let path = path(records, device);
    let error = match read_text(&path) {
        Ok(text) => match Record::parse(&text, device) {
            Ok(record) => return Ok(OnRecord::Launch(record)),
            Err(error) => error,
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(OnRecord::Nothing),
        Err(error) => error.into(),
    };
    let aside = records.join(format!("{device}{ASIDE}"));
    fs::rename(&path, &aside).map_err(LaunchError::file("move aside", &path))?;
    tracing::warn!(
        device.id = %device, path = %aside.display(), %error,
        "the record of a launch cannot be read and was moved aside: if its process runs, nobody ends it"
    );
    Ok(OnRecord::Unreadable(aside))
}

fn read_text(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    fs::File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "it is too large"));
    }
    Ok(text)
}

/// The files among the records.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// Phones that something is on record of.
    pub(crate) devices: Vec<Udid>,
    /// Files that no launcher makes.
    pub(crate) strange: Vec<PathBuf>,
}

/// Lists all records. One that is half-written is nobody's yet: what it is to
/// replace says enough, and the next one takes its place.
pub(crate) fn list(records: &Path) -> Result<Listed, LaunchError> {
    let failed = LaunchError::file("list", records);
    let mut listed = Listed::default();
    let entries = fs::read_dir(records).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    for entry in entries.map_err(failed)? {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_str().unwrap_or_default();
        let of_device = |suffix: &str| {
            let name = name.strip_suffix(suffix)?;
            let device: Udid = name.parse().ok()?;
            (device.as_str() == name).then_some(device)
        };
        if let Some(device) = of_device(SUFFIX) {
            listed.devices.push(device);
        } else if of_device(HALF_WRITTEN).is_none() && of_device(ASIDE).is_none() {
            tracing::warn!(path = %path.display(), "not a record of a launch");
            listed.strange.push(path);
        }
    }
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(process: Option<Started>) -> Record {
        let mut record = Record::new(
            Uuid::now_v7(),
            Udid::from_parts(1, 2),
            "xcodebuild".to_owned(),
            Duration::from_secs(5),
        );
        record.process = process;
        record
    }

    fn started(pid: u32) -> Record {
        record(Some(Started {
            pid,
            epoch: "e".to_owned(),
            start: "s".to_owned(),
        }))
    }

    #[test]
    fn what_was_written_is_read_and_the_last_one_counts() {
        let directory = tempfile::tempdir().unwrap();
        let (first, second) = (record(None), started(7));
        first.write(directory.path()).unwrap();
        second.write(directory.path()).unwrap();
        let read = read(directory.path(), &first.device).unwrap();
        assert!(matches!(read, OnRecord::Launch(read) if read == second));
        assert_eq!(second.stop_grace(), Duration::from_secs(5));
    }

    #[test]
    fn a_directory_that_was_removed_is_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let records = directory.path().join("records");
        let record = record(None);
        for _ in 0..2 {
            record.write(&records).unwrap();
            let read = read(&records, &record.device).unwrap();
            assert!(matches!(read, OnRecord::Launch(_)));
            fs::remove_dir_all(&records).unwrap();
        }
    }

    #[test]
    fn a_record_that_makes_no_sense_is_moved_aside_as_it_is() {
        let whole = serde_json::to_vec(&started(7)).unwrap();
        let mut newer = record(None);
        newer.version = 2;
        let mut other = record(None);
        other.device = Udid::from_parts(3, 4);
        let written = |record: &Record| serde_json::to_vec(record).unwrap();
        let cases = [
            Vec::new(),
            whole[..whole.len() / 2].to_vec(),
            b"\xff\xfe".to_vec(),
            vec![b' '; 100_000],
            written(&newer),
            written(&other),
            written(&started(0)),
            written(&started(1)),
            written(&started(u32::MAX)),
        ];
        for text in cases {
            let directory = tempfile::tempdir().unwrap();
            let device = Udid::from_parts(1, 2);
            fs::write(path(directory.path(), &device), &text).unwrap();
            let OnRecord::Unreadable(kept) = read(directory.path(), &device).unwrap() else {
                panic!("{text:?}");
            };
            assert_eq!(fs::read(kept).unwrap(), text);
            let again = read(directory.path(), &device).unwrap();
            assert!(matches!(again, OnRecord::Nothing));
            assert!(list(directory.path()).unwrap().strange.is_empty());
        }
    }

    #[test]
    fn records_are_listed_half_written_ones_do_not_count_and_strange_ones_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let record = record(None);
        record.write(directory.path()).unwrap();
        fs::write(at("00000009-0000000000000009.json.new"), "{").unwrap();
        let strange = [at("notes.json"), at("0000000a-000000000000000b.json")];
        for path in &strange {
            fs::write(path, "x").unwrap();
        }
        let mut listed = list(directory.path()).unwrap();
        listed.strange.sort_unstable();
        assert_eq!(listed.devices, [record.device]);
        assert_eq!(listed.strange, [strange[1].clone(), strange[0].clone()]);
    }
}
