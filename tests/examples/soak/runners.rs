//! The runners that the gateway launches, as processes of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;

use fleetgate_runner::Udid;
use fleetgate_tests::{PATIENCE, binary, pause};
use tokio::time::Instant;

/// Which phones have launched runners, and what marks their processes.
#[derive(Debug)]
pub(crate) struct Runners {
    pub(crate) launched: BTreeSet<Udid>,
    control: SocketAddr,
    mark: String,
}

impl Runners {
    pub(crate) fn new(launched: BTreeSet<Udid>, control: SocketAddr, seed: u64) -> Self {
        let mark = format!("{}-{seed}", std::process::id());
        Self {
            launched,
            control,
            mark,
        }
    }

    /// What the gateway's configuration says of them.
    pub(crate) fn config(&self) -> String {
        let Self {
            launched,
            control,
            mark,
        } = self;
        let devices: Vec<_> = launched
            .iter()
            .map(|udid| format!("[[device]]\nudid = '{udid}'\nlaunch = 'lab'\n"))
            .collect();
        let devices = devices.concat();
        let program = binary::path();
        format!(
            "{devices}\
             [[launch]]\nname = 'lab'\nstart_timeout = '4s'\nstop_grace = '1s'\n\
             argv = ['{}', 'lab', 'runner', '--control', 'http://{control}', '--udid', '{{udid}}']\n\
             env = {{ SOAK = '{mark}' }}\n\
             [health]\nprobe_interval = '1s'\nbackoff_initial = '200ms'\nbackoff_max = '2s'\n\
             quarantine_after = 100000\nstable_after = '5s'\n",
            program.display(),
        )
    }

    /// The processes that were launched and have not ended, with all that they
    /// started, by their group. One that ends while it is looked at is none.
    pub(crate) fn processes(&self) -> BTreeMap<u32, Vec<u32>> {
        let mark = format!("SOAK={}", self.mark);
        let all = fs::read_dir("/proc").expect("the processes of this host");
        let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for pid in pids {
            let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut variables = variables.split(|byte| *byte == 0);
            if !variables.any(|variable| variable == mark.as_bytes()) {
                continue;
            }
            if let Some(group) = group(pid) {
                groups.entry(group).or_default().push(pid);
            }
        }
        groups
    }

    /// Waits until each phone has one group of processes with its leader, and
    /// there is no other.
    pub(crate) async fn one_group_each(&self) {
        self.until(self.launched.len()).await;
    }

    /// Waits until there is none.
    pub(crate) async fn none_left(&self) {
        self.until(0).await;
    }

    async fn until(&self, count: usize) {
        let begun = Instant::now();
        loop {
            let groups = self.processes();
            let led = groups.iter().all(|(leader, all)| all.contains(leader));
            if groups.len() == count && led {
                return;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{count} groups with leaders, not {groups:?}"
            );
            pause().await;
        }
    }
}

/// The group of a process, if it has not ended.
fn group(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, in parentheses, may hold anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(2)?.parse().ok()
}
