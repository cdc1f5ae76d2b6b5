//! What the kernel says of a process: how much memory it holds, and how many
//! sockets.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::{pause, soon};

/// A process by its number.
#[derive(Debug, Clone, Copy)]
pub struct Process(u32);

impl Process {
    /// The process of this number.
    pub fn new(pid: u32) -> Self {
        Self(pid)
    }

    fn file(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0))
    }

    /// The memory that it has in use now, in bytes.
    pub fn resident(self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most memory that it ever had in use, in bytes.
    pub fn peak(self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(self, line: &str) -> u64 {
        let status = fs::read_to_string(self.file("status")).expect("a process that runs");
        let found = status.lines().find_map(|found| found.strip_prefix(line));
        let kilobytes = found.and_then(|found| found.trim().strip_suffix(" kB"));
        let kilobytes: u64 = kilobytes
            .and_then(|kilobytes| kilobytes.trim().parse().ok())
            .unwrap_or_else(|| panic!("no {line} in {status}"));
        kilobytes * 1024
    }

    /// The time that it has spent on processors since it began.
    pub fn processor_time(self) -> Duration {
        let stat = fs::read_to_string(self.file("stat")).expect("a process that runs");
        // The second field, in parentheses, may hold anything.
        let (_, fields) = stat.rsplit_once(") ").expect("a process's fields");
        let ticks: u64 = fields
            .split(' ')
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().expect("ticks"))
            .sum();
        // USER_HZ, which is 100 on every Linux.
        Duration::from_millis(ticks * 10)
    }

    /// How many descriptors it has open.
    pub fn descriptors(self) -> usize {
        let open = fs::read_dir(self.file("fd")).expect("a process that runs");
        open.count()
    }

    /// How many threads it has.
    pub fn threads(self) -> usize {
        let tasks = fs::read_dir(self.file("task")).expect("a process that runs");
        tasks.count()
    }

    /// The sockets that it has open, on both sides of it. Files are not
    /// counted: a ledger opens those that it needs by and by.
    pub fn sockets(self) -> usize {
        let open = fs::read_dir(self.file("fd")).expect("a process that runs");
        let targets = open
            .filter_map(Result::ok)
            .filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        targets
            .filter(|target| target.to_string_lossy().starts_with("socket:"))
            .count()
    }

    /// Waits until it has no more sockets open than it had once.
    pub async fn until_sockets(self, baseline: usize) {
        soon(&format!("no more than {baseline} sockets"), async {
            while self.sockets() > baseline {
                pause().await;
            }
        })
        .await;
    }
}
