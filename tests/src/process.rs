//! What the kernel says of a process: how much memory it holds, and how many
//! sockets.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::{pause, soon};

/// The state of a socket that waits for connections.
const LISTEN: &str = "0A";

/// A socket of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InternetSocket {
    /// Its own address.
    pub local: SocketAddr,
    /// Whether anybody may send something to it.
    pub listens: bool,
}

/// An address as the kernel writes it: the words of the IP in the machine's own
/// order, and the port.
fn address(text: &str) -> SocketAddr {
    let (ip, port) = text.split_once(':').expect("an address");
    let words = ip.as_bytes().chunks(8).map(|word| {
        let word = str::from_utf8(word).expect("ASCII");
        u32::from_str_radix(word, 16).expect("a word").to_ne_bytes()
    });
    let bytes = words.collect::<Vec<_>>().concat();
    let ip = match <[u8; 16]>::try_from(bytes.as_slice()) {
        Ok(bytes) => IpAddr::V6(Ipv6Addr::from(bytes)),
        Err(_) => IpAddr::V4(Ipv4Addr::from(
            <[u8; 4]>::try_from(bytes.as_slice()).expect("four bytes"),
        )),
    };
    SocketAddr::new(ip, u16::from_str_radix(port, 16).expect("a port"))
}

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

    /// Its sockets that speak TCP or UDP, by either version of IP.
    pub fn internet_sockets(self) -> Vec<InternetSocket> {
        let open = fs::read_dir(self.file("fd")).expect("a process that runs");
        let own: BTreeSet<_> = open
            .filter_map(Result::ok)
            .filter_map(|descriptor| fs::read_link(descriptor.path()).ok())
            .filter_map(|target| {
                let target = target.to_str()?.strip_prefix("socket:[")?;
                Some(target.strip_suffix(']')?.to_owned())
            })
            .collect();
        let mut sockets = Vec::new();
        for protocol in ["tcp", "tcp6", "udp", "udp6"] {
            let table = self.file("net").join(protocol);
            let table = fs::read_to_string(table).expect("the kernel's table");
            for line in table.lines().skip(1) {
                let fields: Vec<_> = line.split_whitespace().collect();
                // sl, local, remote, state, queues, timer, retransmits, uid,
                // timeout, inode
                if own.contains(fields[9]) {
                    sockets.push(InternetSocket {
                        local: address(fields[1]),
                        listens: protocol.starts_with("udp") || fields[3] == LISTEN,
                    });
                }
            }
        }
        sockets
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_the_kernel_writes_it() {
        // On a machine that has the lowest byte first.
        assert_eq!(address("0100007F:1E14"), "127.0.0.1:7700".parse().unwrap());
        let six = address("00000000000000000000000001000000:0050");
        assert_eq!(six, "[::1]:80".parse().unwrap());
        let any = address("00000000000000000000000000000000:0000");
        assert_eq!(any, "[::]:0".parse().unwrap());
    }
}
