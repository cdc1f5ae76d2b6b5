//! Discovery records: published, found, and those that are not to be believed.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fleetgate_identity::{IdentityError, InstanceRecord, Instances, LocalToken, ProcessStart};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::directory;

struct Place {
    instances: Instances,
    path: PathBuf,
    _root: TempDir,
}

fn place() -> Place {
    let root = directory();
    let path = root.path().join("state/run");
    Place {
        instances: Instances::at(&path),
        path,
        _root: root,
    }
}

impl Place {
    fn found(&self) -> Vec<Uuid> {
        let records = self.instances.list().unwrap();
        records.iter().map(|record| record.instance).collect()
    }

    fn files(&self) -> usize {
        fs::read_dir(&self.path).unwrap().count()
    }
}

fn record() -> InstanceRecord {
    let token = LocalToken::mint().text().clone();
    let address = "127.0.0.1:7700".parse().unwrap();
    InstanceRecord::of_this_process(Uuid::now_v7(), address, token).unwrap()
}

fn other_start(fields: &[&str]) -> ProcessStart {
    let mut start = serde_json::to_value(ProcessStart::of_this_process().unwrap()).unwrap();
    for field in fields {
        start[field] = Value::from("another");
    }
    serde_json::from_value(start).unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_record_is_there_until_its_gateway_stops() {
    let place = place();
    assert!(place.found().is_empty());
    let (mut one, mut two) = (record(), record());
    one.started -= Duration::from_secs(60);
    two.tls = true;
    two.ca = Some("/etc/lab/ca.pem".into());
    let second = place.instances.publish(&two).unwrap();
    let first = place.instances.publish(&one).unwrap();
    assert_eq!(place.instances.list().unwrap(), [one.clone(), two.clone()]);
    drop(first);
    assert_eq!(place.found(), [two.instance]);
    drop(second);
    assert_eq!(place.files(), 0);
}

#[test]
fn the_record_and_its_directory_are_their_owners_alone() {
    let place = place();
    let published = place.instances.publish(&record()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&place.path), 0o700);
    assert_eq!(mode(published.path()), 0o600);
    assert_eq!(place.files(), 1);
}

#[test]
fn a_directory_that_is_not_ours_alone_gets_no_record() {
    let place = place();
    drop(place.instances.publish(&record()).unwrap());
    for mode in [0o750, 0o701, 0o777] {
        set_mode(&place.path, mode);
        let refusal = place.instances.publish(&record()).unwrap_err();
        assert!(refusal.to_string().contains("chmod 700"), "{refusal}");
        let refusal = place.instances.list().unwrap_err();
        assert!(
            matches!(refusal, IdentityError::Exposed { .. }),
            "{refusal}"
        );
    }
    set_mode(&place.path, 0o700);
    assert_eq!(place.files(), 0);
    // Only root can give a directory away.
    if chown(&place.path, Some(12_345), None).is_ok() {
        let refusal = place.instances.publish(&record()).unwrap_err();
        assert!(
            matches!(refusal, IdentityError::NotOurs { .. }),
            "{refusal}"
        );
        assert!(place.instances.list().is_err());
    }
}

#[test]
fn a_link_is_no_directory_for_records() {
    let root = directory();
    let (real, link) = (root.path().join("real"), root.path().join("link"));
    fs::create_dir(&real).unwrap();
    set_mode(&real, 0o700);
    symlink(&real, &link).unwrap();
    let instances = Instances::at(&link);
    let refusal = instances.publish(&record()).unwrap_err();
    assert!(
        matches!(refusal, IdentityError::WrongKind { .. }),
        "{refusal}"
    );
    assert!(instances.list().is_err());
    assert_eq!(fs::read_dir(&real).unwrap().count(), 0);
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let root = directory();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        assert!(Instances::at(path).publish(&record()).is_err());
    }
}

#[test]
fn records_of_processes_that_have_ended_are_removed() {
    let place = place();
    let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
    let mut dead = record();
    dead.pid = child.id();
    child.wait().unwrap();
    // Another process has its number by now.
    let mut recycled = record();
    recycled.process_start = other_start(&["at"]);
    let mut before_boot = record();
    before_boot.process_start = other_start(&["epoch"]);
    let alive = record();
    let published = [&dead, &recycled, &before_boot, &alive]
        .map(|record| place.instances.publish(record).unwrap());
    assert_eq!(place.found(), [alive.instance]);
    assert_eq!(place.files(), 1);
    // What has gone already is no trouble.
    drop(published);
    assert_eq!(place.files(), 0);
}

#[test]
fn records_of_other_hosts_and_containers_are_left_alone() {
    let place = place();
    let (mut host, mut container, mut later) = (record(), record(), record());
    later.process_start = other_start(&["host", "at"]);
    host.process_start = other_start(&["host", "epoch"]);
    container.process_start = other_start(&["space"]);
    let _published =
        [&host, &container, &later].map(|record| place.instances.publish(record).unwrap());
    assert!(place.found().is_empty());
    assert_eq!(place.files(), 3);
}

#[test]
fn a_host_that_got_another_name_finds_its_gateways() {
    let place = place();
    let mut before = record();
    before.process_start = other_start(&["host"]);
    let _published = place.instances.publish(&before).unwrap();
    assert_eq!(place.found(), [before.instance]);
}

#[test]
fn files_that_could_be_somebody_elses_are_ignored() {
    let place = place();
    let (open, given) = (record(), record());
    let opened = place.instances.publish(&open).unwrap();
    set_mode(opened.path(), 0o640);
    let linked = place.instances.publish(&record()).unwrap();
    let aside = place.path.join("aside");
    fs::rename(linked.path(), &aside).unwrap();
    symlink(&aside, linked.path()).unwrap();
    let away = place.instances.publish(&given).unwrap();
    let mut files = 4;
    // Only root can give a file away.
    if chown(away.path(), Some(12_345), None).is_err() {
        drop(away);
        files -= 1;
    }
    assert!(place.found().is_empty());
    assert_eq!(place.files(), files);
}

#[test]
fn what_is_no_record_is_ignored() {
    let place = place();
    let published = place.instances.publish(&record()).unwrap();
    let good = fs::read_to_string(published.path()).unwrap();
    let write = |name: &str, text: &str| {
        let path = place.path.join(name);
        fs::write(&path, text).unwrap();
        set_mode(&path, 0o600);
    };
    let name = || format!("{}.json", Uuid::now_v7());
    let half = good.split_at(good.len() / 2).0;
    for text in [
        "",
        "{}",
        half,
        &good,
        &good.replace("\"version\": 1", "\"version\": 2"),
    ] {
        write(&name(), text);
    }
    write(&name(), &" ".repeat(100_000));
    write("notes.txt", &good);
    write("notes.json", &good);
    fs::create_dir(place.path.join(name())).unwrap();
    assert_eq!(place.found().len(), 1);
    assert_eq!(place.files(), 10);
}

#[test]
fn another_file_of_the_name_is_not_removed() {
    let place = place();
    let record = record();
    let first = place.instances.publish(&record).unwrap();
    let second = place.instances.publish(&record).unwrap();
    drop(first);
    assert_eq!(place.found(), [record.instance]);
    drop(second);
    assert!(place.found().is_empty());
}
