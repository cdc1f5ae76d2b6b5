//! A disk with no room. Only root may mount one; a disk that cannot be mounted
//! is a failure, and no pass.

#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fleetgate_launch::{LaunchError, Launcher};
use tempfile::TempDir;

use crate::support::{NOBODY, Place, device, exited, soon, story};

/// A file system of a few pages, in memory.
struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    fn mount() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(directory.path())
            .status()
            .unwrap();
        assert!(
            mounted.success(),
            "a small disk should be mounted: is this root?"
        );
        Self { directory }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn fill(&self) -> PathBuf {
        let path = self.path().join("filling");
        let error = fs::write(&path, vec![0; 1 << 20]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount")
            .arg("-l")
            .arg(self.path())
            .status()
            .ok();
    }
}

#[tokio::test]
async fn a_launch_that_cannot_be_put_on_record_does_not_begin_and_the_next_one_may() {
    let (place, disk) = (Place::new(), SmallDisk::mount());
    let launcher = Launcher::open(disk.path().join("runners")).unwrap();
    let spec = place.script("exec sleep 600");
    let filling = disk.fill();
    let error = launcher.start(&device(), &spec).await.unwrap_err();
    let LaunchError::File { path, source, .. } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    assert!(path.starts_with(disk.path()));
    assert_eq!(place.processes(), NOBODY);
    fs::remove_file(filling).unwrap();
    let running = launcher.start(&device(), &spec).await.unwrap();
    soon(running.stop()).await;
}

#[tokio::test]
async fn a_process_whose_log_has_no_room_is_followed_to_its_end() {
    let (place, disk) = (Place::new(), SmallDisk::mount());
    let launcher = Launcher::open(disk.path().join("runners")).unwrap();
    let spec = place.script("head -c 1000000 /dev/zero; exit 9");
    let mut running = launcher.start(&device(), &spec).await.unwrap();
    assert_eq!(story(&mut running).await, [exited(9)]);
    soon(running.stop()).await;
}
