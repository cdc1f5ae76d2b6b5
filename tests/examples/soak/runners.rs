//! The runners that the gateway launches, as processes of this host.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;

use fleetgate_runner::Udid;
use fleetgate_tests::{binary, pause, soon};

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
        let devices: String = launched
            .iter()
            .map(|udid| format!("[[device]]\nudid = '{udid}'\nlaunch = 'lab'\n"))
            .collect();
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
    /// started. One that ends while it is looked at is none.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mark = format!("SOAK={}", self.mark);
        let all = fs::read_dir("/proc").expect("the processes of this host");
        all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
            .filter(|pid| {
                let variables = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                variables
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == mark.as_bytes())
            })
            .collect()
    }

    /// Waits until each phone has one process, and there is no other.
    pub(crate) async fn one_process_each(&self) {
        self.until(self.launched.len()).await;
    }

    /// Waits until there is none.
    pub(crate) async fn none_left(&self) {
        self.until(0).await;
    }

    async fn until(&self, count: usize) {
        soon(&format!("{count} runner processes"), async {
            while self.processes().len() != count {
                pause().await;
            }
        })
        .await;
    }
}
