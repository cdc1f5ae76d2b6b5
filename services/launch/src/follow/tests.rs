//! Logs that grow, are cut, and are emptied while they are read.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;

const SMALL: LogSize = LogSize {
    cap: 16 << 10,
    kept: 4 << 10,
    // A slow host is never outpaced, unless a test says so.
    unread: 1 << 30,
};

/// A log, and whoever writes it.
struct Log {
    directory: TempDir,
}

impl Log {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("log"), "").unwrap();
        Self { directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn cut(&self) -> PathBuf {
        self.directory.path().join("cut")
    }

    fn follow(&self) -> Follow {
        self.follow_with(SMALL)
    }

    fn follow_with(&self, size: LogSize) -> Follow {
        Follow::open(&self.path(), self.cut(), size).unwrap()
    }

    fn append(&self) -> File {
        OpenOptions::new().append(true).open(self.path()).unwrap()
    }

    fn say(&self, ports: impl IntoIterator<Item = u16>) {
        let lines: Vec<_> = ports.into_iter().map(line).collect();
        self.append().write_all(lines.concat().as_bytes()).unwrap();
    }

    /// A process that writes these lines, one by one.
    fn writer(&self, lines: u16) -> Child {
        let script =
            "i=0; while [ $i -lt $0 ]; do i=$((i+1)); echo ARGENT_RUNNER_LISTENING port=$i; done";
        Command::new("sh")
            .args(["-c", script, &lines.to_string()])
            .process_group(0)
            .stdout(Stdio::from(self.append()))
            .spawn()
            .unwrap()
    }

    /// What is on the disk, of this log and of what was cut off.
    fn text(&self) -> String {
        let mut text = fs::read_to_string(self.cut()).unwrap_or_default();
        text.push_str(&fs::read_to_string(self.path()).unwrap());
        text
    }
}

fn line(port: u16) -> String {
    format!("ARGENT_RUNNER_LISTENING port={port}\n")
}

fn said(follow: &mut Follow) -> Vec<u16> {
    let events = std::iter::from_fn(|| follow.said());
    let ports = events.map(|event| {
        let RunnerEvent::Listening { port } = event else {
            panic!("{event:?}");
        };
        port.get()
    });
    ports.collect()
}

async fn read(follow: &mut Follow) -> Vec<u16> {
    follow.read().await;
    said(follow)
}

#[tokio::test]
async fn only_what_is_new_is_read() {
    let log = Log::new();
    let mut follow = log.follow();
    assert!(!follow.has_news());
    log.say([1, 2]);
    assert!(follow.has_news());
    assert_eq!(read(&mut follow).await, [1, 2]);
    assert!(!follow.has_news());
    log.say([3]);
    assert_eq!(read(&mut follow).await, [3]);
}

#[tokio::test]
async fn a_log_that_somebody_else_has_emptied_is_read_from_its_beginning() {
    let log = Log::new();
    let mut follow = log.follow();
    log.say([1, 2]);
    follow.read().await;
    log.append().set_len(0).unwrap();
    log.say([3]);
    assert_eq!(read(&mut follow).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_silent_log_past_its_cap_is_cut_and_its_end_is_kept() {
    let log = Log::new();
    let mut follow = log.follow();
    let lines = u16::try_from(SMALL.cap / 30).unwrap();
    log.say(1..=lines);
    log.append().write_all(b"and half a line").unwrap();
    assert_eq!(read(&mut follow).await.len(), usize::from(lines));
    assert!(follow.has_news(), "it has yet to be cut");
    follow.read().await;
    assert!(!follow.has_news());
    let text = log.text();
    assert!(
        text.len() as u64 <= SMALL.kept + (8 << 10),
        "{}",
        text.len()
    );
    assert!(text.ends_with(&format!("{}and half a line", line(lines))));
    // What follows is read as before.
    log.append().write_all(b", and its end\n").unwrap();
    log.say([7]);
    assert_eq!(read(&mut follow).await, [7]);
}

#[tokio::test]
async fn a_log_that_grows_faster_than_it_is_read_is_cut_and_only_its_end_is_read() {
    let log = Log::new();
    let mut follow = log.follow_with(LogSize {
        unread: 4 * SMALL.cap,
        ..SMALL
    });
    log.say([1]);
    assert_eq!(read(&mut follow).await, [1]);
    let flood = |bytes: u64| vec![b'x'; usize::try_from(bytes).unwrap()];
    for turn in 0..3_u16 {
        let port = 10 * turn;
        log.say([port + 2]);
        log.append().write_all(&flood(4 * SMALL.cap)).unwrap();
        log.append().write_all(b"\n").unwrap();
        log.say([port + 3]);
        assert_eq!(read(&mut follow).await, [port + 3], "not what was cut off");
        let length = fs::metadata(log.path()).unwrap().len();
        assert!(length <= 8 << 10, "{length}");
        let text = log.text();
        assert!(text.ends_with(&line(port + 3)));
        assert!(text.len() as u64 <= SMALL.kept + (8 << 10));
    }
    // No more than can be read is read, all of it.
    log.say([98]);
    log.append().write_all(&flood(3 * SMALL.cap)).unwrap();
    log.append().write_all(b"\n").unwrap();
    log.say([99]);
    assert_eq!(read(&mut follow).await, [98, 99]);
}

/// Follows a process that writes as fast as it can.
async fn follow_writer(log: &Log, lines: u16) -> (Vec<u16>, u32) {
    let mut follow = log.follow();
    let mut writer = log.writer(lines);
    let (mut ports, mut cuts) = (Vec::new(), 0);
    let followed = async {
        loop {
            let ended = writer.try_wait().unwrap().is_some();
            let before = fs::metadata(log.cut())
                .ok()
                .and_then(|cut| cut.modified().ok());
            ports.extend(read(&mut follow).await);
            let after = fs::metadata(log.cut())
                .ok()
                .and_then(|cut| cut.modified().ok());
            cuts += u32::from(before != after);
            if ended {
                return;
            }
        }
    };
    timeout(Duration::from_secs(60), followed).await.unwrap();
    (ports, cuts)
}

#[tokio::test]
async fn a_log_that_is_cut_while_it_is_written_loses_no_line_if_its_file_system_is_able() {
    let log = Log::new();
    let lossless = {
        log.say(1..=400);
        let file = log.append();
        take_out(&file, file.metadata().unwrap().len()).is_some()
    };
    log.append().set_len(0).unwrap();
    let (ports, cuts) = follow_writer(&log, 20_000).await;
    assert!(cuts > 0);
    assert!(ports.is_sorted_by(|before, after| before < after));
    if !lossless {
        return;
    }
    assert_eq!(ports, (1..=20_000).collect::<Vec<_>>());
    let text = log.text();
    // What is on the disk is the end of what was written, without a gap.
    let first = text.lines().nth(1).unwrap();
    let first: u16 = first.rsplit('=').next().unwrap().parse().unwrap();
    let expected: Vec<_> = (first..=20_000).map(line).collect();
    assert!(text.ends_with(&expected.concat()));
}

#[tokio::test]
async fn nothing_is_lost_when_a_reading_is_given_up() {
    let log = Log::new();
    let mut follow = log.follow();
    let mut ports = Vec::new();
    for port in 1..=200 {
        log.say([port]);
        let patience = Duration::from_micros(u64::from(port) % 5 * 20);
        timeout(patience, follow.read()).await.ok();
        ports.extend(said(&mut follow));
    }
    ports.extend(read(&mut follow).await);
    assert_eq!(ports, (1..=200).collect::<Vec<_>>());
}

#[test]
fn a_log_is_looked_at_less_and_less_often_while_it_is_silent() {
    let mut pace = Pace::new();
    let pauses: Vec<_> = (0..6).map(|_| pace.after(false).as_millis()).collect();
    assert_eq!(pauses, [40, 80, 160, 250, 250, 250]);
    assert_eq!(pace.after(true).as_millis(), 20);
    pace.note(&RunnerEvent::Listening {
        port: std::num::NonZeroU16::MIN,
    });
    let pauses: Vec<_> = (0..6).map(|_| pace.after(false).as_millis()).collect();
    assert_eq!(pauses, [250, 500, 1000, 2000, 2000, 2000]);
    assert_eq!(pace.after(true).as_millis(), 250);
}
