//! The tasks behind a fleet, from the first launch to the last.
//!
//! Owns when runners may be launched, and how long they get to end. Invariant:
//! nothing is launched before what an earlier gateway left running has ended, and
//! nothing of it is left when [`FleetTasks::shutdown`] is through.

use std::sync::Arc;

use fleetgate_device::HostsTask;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span, warn};

use super::ground::Ground;

/// The tasks behind a fleet; they end with this.
#[derive(Debug)]
pub(crate) struct FleetTasks {
    ground: Arc<Ground>,
    max_launches: usize,
    hosts: HostsTask,
    warden: JoinSet<()>,
    close: CancellationToken,
}

impl FleetTasks {
    pub(super) fn new(
        ground: Arc<Ground>,
        max_launches: usize,
        hosts: HostsTask,
        warden: JoinSet<()>,
        close: CancellationToken,
    ) -> Self {
        Self {
            ground,
            max_launches,
            hosts,
            warden,
            close,
        }
    }

    /// Lets runners be launched. Until then nothing is done to any phone: a
    /// gateway that cannot serve must not take phones from one that does.
    pub(crate) fn launch(&mut self) {
        let opening = open_places(Arc::clone(&self.ground), self.max_launches);
        self.warden.spawn(opening.instrument(info_span!("sweep")));
    }

    /// Ends what this gateway has launched, until `deadline`, and stops to watch
    /// the usbmuxds.
    pub(crate) async fn shutdown(mut self, deadline: Instant) {
        self.close.cancel();
        let ended = async { while self.warden.join_next().await.is_some() {} };
        if timeout_at(deadline, ended).await.is_err() {
            warn!("runners that do not end in time are killed");
        }
        self.warden.shutdown().await;
        self.hosts.shutdown().await;
    }
}

/// Ends what an earlier gateway has left running; then, and not before, runners
/// may be launched.
async fn open_places(ground: Arc<Ground>, max_launches: usize) {
    // What it finds of each phone it logs itself.
    if let Some(launcher) = &ground.launcher
        && let Err(error) = launcher.sweep_all().await
    {
        // Each is looked for again before its phone's launch.
        warn!(%error, "runners of an earlier gateway cannot be looked for");
    }
    ground.places.add_permits(max_launches);
}
