//! The launcher's directory: who may have it, and where in it what is.
//!
//! ```text
//! <directory>/lock                    held by the one launcher that has it
//!             logs/<UDID>.log         written by the process itself
//!             logs/<UDID>.log.0       the end of what was cut off this log
//!             logs/<UDID>.log.1       the log of the launch before
//!             results/<UDID>.xcresult made by the process if it likes
//!             results/<UDID>.1.xcresult
//!             records/<UDID>.json     what is known of a process that may run
//! ```
//!
//! Invariant: the directory belongs to this user and nobody else can write in
//! it, since what is written in it decides which processes are ended.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fleetgate_runner::Udid;

use crate::error::LaunchError;
use crate::follow::LogSize;

/// A gateway that is killed while it starts a process leaves a copy of the
/// lock's descriptor in that process, until it runs its own program: the next
/// gateway, which may begin in the same moment, looks more than once.
const LOOKS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(10);

/// A directory that is ours alone for as long as this lives.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
    /// Another one when somebody has removed its file.
    lock: Mutex<File>,
}

impl Place {
    /// Makes the directory if it is missing, and locks it: at once, or within a
    /// quarter of a second, or not at all.
    pub(crate) fn take(directory: PathBuf) -> Result<Self, LaunchError> {
        let failed = LaunchError::file("find", &directory);
        let root = std::path::absolute(directory).map_err(failed)?;
        make_own(&root)?;
        let lock = lock(&root)?.into();
        let place = Self { root, lock };
        place.make_parts()?;
        Ok(place)
    }

    fn make_parts(&self) -> Result<(), LaunchError> {
        for part in ["logs", "results", "records"] {
            make_own(&self.root.join(part))?;
        }
        Ok(())
    }

    /// Makes again what somebody has removed, of the directory or all of it, as
    /// long as no other launcher has taken its place.
    fn restore(&self) -> Result<(), LaunchError> {
        make_own(&self.root)?;
        let mut held = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let path = self.root.join("lock");
        let mine = held
            .metadata()
            .map_err(LaunchError::file("look at", &path))?;
        let id = |file: &fs::Metadata| (file.dev(), file.ino());
        if fs::metadata(&path).map(|there| id(&there)).ok() != Some(id(&mine)) {
            tracing::warn!(directory = %self.root.display(), "the launch directory was removed and is made again");
            *held = lock(&self.root)?;
        }
        drop(held);
        self.make_parts()
    }

    pub(crate) fn log(&self, device: &Udid) -> PathBuf {
        self.root.join("logs").join(format!("{device}.log"))
    }

    /// The end of what was cut off the log while it was written.
    pub(crate) fn cut_log(&self, device: &Udid) -> PathBuf {
        self.root.join("logs").join(format!("{device}.log.0"))
    }

    fn former_log(&self, device: &Udid) -> PathBuf {
        self.root.join("logs").join(format!("{device}.log.1"))
    }

    pub(crate) fn result_bundle(&self, device: &Udid) -> PathBuf {
        self.root.join("results").join(format!("{device}.xcresult"))
    }

    fn former_result_bundle(&self, device: &Udid) -> PathBuf {
        let name = format!("{device}.1.xcresult");
        self.root.join("results").join(name)
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    /// Makes room for a launch: the last one's log and results are kept, those
    /// of the one before go. What is there afterwards is a new, empty log, as
    /// the process is to have it. A directory that is missing is made again.
    ///
    /// The process writes to its end, wherever that is, so that the log can be
    /// cut while it is written.
    pub(crate) fn make_room(&self, device: &Udid) -> Result<File, LaunchError> {
        self.restore()?;
        let (bundle, former) = (
            self.result_bundle(device),
            self.former_result_bundle(device),
        );
        if fs::symlink_metadata(&bundle).is_ok() {
            remove_all(&former).map_err(LaunchError::file("remove", &former))?;
            fs::rename(&bundle, &former).map_err(LaunchError::file("rename", &bundle))?;
        }
        let (log, cut) = (self.log(device), self.cut_log(device));
        absent_is_fine(fs::remove_file(&cut)).map_err(LaunchError::file("remove", &cut))?;
        let former = self.former_log(device);
        absent_is_fine(fs::rename(&log, &former)).map_err(LaunchError::file("rename", &log))?;
        if let Err(error) = absent_is_fine(trim(&former, LogSize::default().cap)) {
            tracing::warn!(%error, path = %former.display(), "the log of the last launch cannot be trimmed");
        }
        OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&log)
            .map_err(LaunchError::file("make", &log))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A process that is just being started has a copy of the descriptor
        // until it runs its own program, so the lock is given back by word.
        let lock = self.lock.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = lock.unlock() {
            tracing::debug!(%error, "the lock goes with its descriptor");
        }
    }
}

fn lock(root: &Path) -> Result<File, LaunchError> {
    let path = root.join("lock");
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(LaunchError::file("open", &path))?;
    for look in 1..=LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if look < LOOKS => pause(),
            Err(TryLockError::WouldBlock) => break,
            Err(TryLockError::Error(source)) => {
                return Err(LaunchError::file("lock", &path)(source));
            }
        }
    }
    Err(LaunchError::InUse {
        directory: root.to_owned(),
        lock: path,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "a gateway that cannot begin yet has nothing else to do, and there is no async lock"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Makes a directory for its owner only, or sees to it that one is.
pub(crate) fn make_own(path: &Path) -> Result<(), LaunchError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(LaunchError::file("make the directory", path))?;
    let metadata = fs::metadata(path).map_err(LaunchError::file("look at", path))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(LaunchError::NotOurs {
            directory: path.to_owned(),
            owner: metadata.uid(),
        });
    }
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700))
            .map_err(LaunchError::file("protect", path))?;
    }
    Ok(())
}

/// Leaves the last so many bytes of a file. A log that nobody followed to its
/// end, because its gateway died or it grew too fast, may have any size.
fn trim(path: &Path, cap: u64) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let from = match file.metadata()?.len().checked_sub(cap) {
        None | Some(0) => return Ok(()),
        Some(from) => from,
    };
    // Within the file: a disk that is full has room for it.
    let (mut piece, mut to) = (vec![0; 64 << 10], 0);
    while to < cap {
        let room = usize::try_from(cap - to).unwrap_or(usize::MAX);
        let room = room.min(piece.len());
        let count = file.read_at(piece.get_mut(..room).unwrap_or_default(), from + to)?;
        if count == 0 {
            break;
        }
        file.write_all_at(piece.get(..count).unwrap_or_default(), to)?;
        to += count as u64;
    }
    file.set_len(to)
}

fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a file or a whole directory, if there is one.
fn remove_all(path: &Path) -> io::Result<()> {
    absent_is_fine(match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_second_launcher_is_refused_and_told_which_file_is_held() {
        let directory = tempfile::tempdir().unwrap();
        let first = Place::take(directory.path().to_owned()).unwrap();
        let error = Place::take(directory.path().to_owned()).unwrap_err();
        assert!(matches!(error, LaunchError::InUse { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("in use by another gateway"), "{text}");
        assert!(text.contains("/lock"), "{text}");
        drop(first);
        Place::take(directory.path().to_owned()).unwrap();
    }

    #[test]
    fn all_that_is_made_is_its_owners_only() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("a/b");
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&directory)
            .unwrap();
        let place = Place::take(directory.clone()).unwrap();
        let device = Udid::from_parts(1, 2);
        place.make_room(&device).unwrap();
        for path in [&directory, &directory.join("logs"), &place.records()] {
            assert_eq!(mode(path), 0o700, "{}", path.display());
        }
        assert_eq!(mode(&place.log(&device)), 0o600);
    }

    #[test]
    fn what_the_last_launch_left_is_kept_and_what_the_one_before_left_goes() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::take(directory.path().to_owned()).unwrap();
        let device = Udid::from_parts(1, 2);
        let (log, bundle) = (place.log(&device), place.result_bundle(&device));
        for launch in ["first", "second", "third"] {
            place.make_room(&device).unwrap();
            assert!(!bundle.exists());
            fs::write(&log, launch).unwrap();
            fs::write(place.cut_log(&device), launch).unwrap();
            fs::create_dir(&bundle).unwrap();
            fs::write(bundle.join("Info.plist"), launch).unwrap();
        }
        place.make_room(&device).unwrap();
        assert_eq!(fs::read(&log).unwrap(), b"");
        assert!(!place.cut_log(&device).exists());
        assert_eq!(fs::read(place.former_log(&device)).unwrap(), b"third");
        let former = place.former_result_bundle(&device).join("Info.plist");
        assert_eq!(fs::read(former).unwrap(), b"third");
    }

    #[test]
    fn what_somebody_has_removed_is_made_again_for_the_next_launch() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("runners");
        let place = Place::take(root.clone()).unwrap();
        let device = Udid::from_parts(1, 2);
        for removed in ["logs", "results", "records", ""] {
            place.make_room(&device).unwrap();
            fs::remove_dir_all(root.join(removed)).unwrap();
            place.make_room(&device).unwrap();
            for part in ["logs", "results", "records"] {
                assert_eq!(mode(&root.join(part)), 0o700, "{part} after {removed}");
            }
            let second = Place::take(root.clone()).unwrap_err();
            assert!(matches!(second, LaunchError::InUse { .. }), "{second:?}");
        }
        // Another launcher that found nothing there has it now.
        fs::remove_dir_all(&root).unwrap();
        let other = Place::take(root.clone()).unwrap();
        let refused = place.make_room(&device).unwrap_err();
        assert!(matches!(refused, LaunchError::InUse { .. }), "{refused:?}");
        drop(other);
        place.make_room(&device).unwrap();
    }

    #[test]
    fn a_log_that_has_grown_too_large_keeps_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let text: Vec<_> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        for cap in [0, 1, 100, 70_000, 700_000, 1_200_000, 2_000_000] {
            fs::write(&path, &text).unwrap();
            trim(&path, cap as u64).unwrap();
            assert!(fs::read(&path).unwrap() == text[text.len().saturating_sub(cap)..]);
        }
    }

    #[test]
    fn the_log_of_the_last_launch_is_trimmed_to_the_size_that_a_log_may_have() {
        let directory = tempfile::tempdir().unwrap();
        let place = Place::take(directory.path().to_owned()).unwrap();
        let device = Udid::from_parts(1, 2);
        let log = place.make_room(&device).unwrap();
        let cap = LogSize::default().cap;
        log.set_len(3 * cap).unwrap();
        place.make_room(&device).unwrap();
        let former = fs::metadata(place.former_log(&device)).unwrap();
        assert_eq!(former.len(), cap);
    }
}
