//! A gateway from start to end.
//!
//! ```text
//! start      ledger ─► what was left without a fate ─► fleet ─► server
//!              ─► health SERVING ─► discovery record
//! shutdown   health NOT_SERVING, GOAWAY, no new command
//!              ─► commands end, or are ended, and are recorded
//!              ─► connections end, or are cut; launched runners end, or are
//!                 killed
//!              ─► usbmuxds let go, ledger closed
//! ```
//!
//! Invariant: a shutdown takes no longer than `drain_timeout` and what the last
//! records and answers need, whatever clients do.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fleetgate_device::Dialer;
use fleetgate_identity::Published;
use fleetgate_ledger::Ledger;
use fleetgate_runner::Budgets;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::access::{Access, Denials, DenialsTask};
use crate::admin::Admin;
use crate::chronicle::{Chronicle, ChronicleTask};
use crate::config::Config;
use crate::core::{Core, Shared};
use crate::feed::Feed;
use crate::fleet::settings::{Settings, SettingsTask};
use crate::fleet::{Fleet, FleetConfig, FleetTasks};
use crate::leases::{Leases, LeasesTask};
use crate::metrics::Metrics;
use crate::pending::Pending;
use crate::recorder::Recorder;
use crate::server::{Connections, Health, routes};

mod door;
mod error;
mod parts;

pub use error::StartError;

use door::Door;
use parts::{bytes, fleet_config, launcher, ledger_config, unsettled};

/// What the last answers get to reach their callers.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// How long a caller without a deadline waits for a fate that is open: longer
/// than any window.
const SETTLE_PATIENCE: Duration = Duration::from_secs(120);

/// What tests and simulated labs set besides the configuration.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The clock of the runner protocol.
    pub budgets: Budgets,
    /// How the usbmuxd that is called `local` is reached, instead of by
    /// `address` of `[usbmuxd]`. There is one if this is given.
    pub dialer: Option<Dialer>,
    /// Where the discovery record is, instead of where the environment says.
    pub runtime_dir: Option<PathBuf>,
}

/// How a shutdown went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every connection ended by itself.
    Clean,
    /// `drain_timeout` passed with a connection open, and it was cut.
    Cut,
}

/// A running gateway. Dropping it ends it at once; [`Gateway::shutdown`] is the
/// proper end.
#[derive(Debug)]
pub struct Gateway {
    core: Core,
    connections: Connections,
    health: Health,
    tasks: FleetTasks,
    settings: SettingsTask,
    leases: LeasesTask,
    chronicle: ChronicleTask,
    denials: DenialsTask,
    admin: Option<Admin>,
    /// Takes the discovery record away when it is dropped.
    published: Option<Published>,
    drain_timeout: Duration,
}

impl Gateway {
    /// Opens the ledger, starts to watch usbmuxd and serves.
    pub async fn start(config: Config, overrides: Overrides) -> Result<Self, StartError> {
        let door = Door::new(&config).await?;
        let ledger = Ledger::open(ledger_config(&config)).await?;
        let pending = Pending::default();
        let feed = Feed::default();
        let metrics = Metrics::new()?;
        let (chronicle, chronicle_task) =
            Chronicle::new(feed.clone(), ledger.clone(), metrics.counters());
        let (settings, settings_task) = Settings::load(ledger.clone(), &config.device).await?;
        let (denials, denials_task) = Denials::new(ledger.clone(), metrics.counters());
        let access = Access::new(
            settings.clone(),
            denials,
            &config.limits,
            metrics.counters(),
        );
        let admission = door.admission(access.clone());
        let recorder = Recorder::new(ledger.clone(), pending.clone(), chronicle.clone());
        let settle_patience = overrides.budgets.of(SETTLE_PATIENCE);
        let (leases, unbegun) = Leases::load(ledger.clone(), config.leases.required).await?;
        let fleet = FleetConfig {
            unsettled: unsettled(&ledger).await?,
            launcher: launcher(&config)?,
            gate: leases.gate().clone(),
            ..fleet_config(&config, &overrides)
        };
        let (fleet, mut tasks) = Fleet::spawn(fleet, recorder, settings, chronicle);
        let core = Core::new(Shared {
            fleet,
            ledger,
            feed,
            pending,
            access,
            leases,
            lease_limits: config.leases.clone(),
            start_time: SystemTime::now(),
            settle_patience,
            heartbeat_interval: config.server.heartbeat_interval,
            attended: TaskTracker::new(),
            stop: CancellationToken::new(),
            quit: CancellationToken::new(),
            max_request_bytes: bytes(config.server.max_request_bytes.as_u64()),
            max_reply_bytes: bytes(config.server.max_reply_bytes.as_u64()),
        });
        metrics.observe(&core);
        let leases_task = unbegun.begin(
            core.fleet().clone(),
            core.feed().clone(),
            metrics.leases(),
            config.limits.max_open_leases.get(),
            core.quit().clone(),
        );
        let admin = match &config.admin.listen {
            Some(listen) => {
                let address = listen.address();
                let admin = Admin::serve(address, core.clone(), metrics, door.hosts(&config)).await;
                Some(admin.map_err(|source| StartError::Listen { address, source })?)
            }
            None => None,
        };
        let (routes, health) = routes(&core)?;
        health.serving().await;
        let runtime_dir = overrides.runtime_dir;
        let (connections, published) = door.open(&config, routes, admission, runtime_dir).await?;
        let address = connections.local_addr();
        info!(%address, "serving");
        tasks.launch();
        let drain_timeout = config.server.drain_timeout;
        Ok(Self {
            core,
            connections,
            health,
            tasks,
            settings: settings_task,
            leases: leases_task,
            chronicle: chronicle_task,
            denials: denials_task,
            admin,
            published,
            drain_timeout,
        })
    }

    /// Where clients find the gateway.
    pub fn local_addr(&self) -> SocketAddr {
        self.connections.local_addr()
    }

    /// The record by which programs of this user find it, if there is one.
    pub fn record(&self) -> Option<&Path> {
        self.published.as_ref().map(Published::path)
    }

    /// Where the admin server is, if there is one.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::local_addr)
    }

    /// Ends once a caller has asked for the end of the gateway, by
    /// `DrainGateway`, or the gateway itself does since it
    /// [`has_failed`](Self::has_failed). [`Gateway::shutdown`] is what is to follow.
    pub async fn drain_requested(&self) {
        self.core.quit().cancelled().await;
    }

    /// Whether a part of it has broken off that others cannot do without, by a
    /// fault of this program. The gateway that is started next goes on with what
    /// is on record.
    pub fn has_failed(&self) -> bool {
        !self.core.leases().are_seen_to()
    }

    /// Ends the gateway: new commands are refused, those under way may end for
    /// `drain_timeout`, and every fate is on record before this returns.
    pub async fn shutdown(self) -> Drained {
        let Self {
            core,
            connections,
            mut health,
            tasks,
            settings,
            leases,
            chronicle,
            denials,
            published,
            // Tells how the end goes until there is nothing left to tell.
            admin: _admin,
            drain_timeout,
        } = self;
        let deadline = Instant::now() + drain_timeout;
        info!(timeout = ?drain_timeout, "draining");
        // Nobody is to find it any more.
        drop(published);
        health.not_serving().await;
        connections.drain();
        core.fleet().close(drain_timeout).await;
        // They go on with the next gateway.
        leases.shutdown().await;
        // Commands have been answered; streams without an end are told of it.
        health.end().await;
        core.stop().cancel();
        let deadline = deadline.max(Instant::now() + LAST_ANSWERS);
        let connected = async {
            let drained = if timeout_at(deadline, connections.drained()).await.is_ok() {
                Drained::Clean
            } else {
                warn!("the drain timeout has passed, open connections are cut");
                Drained::Cut
            };
            connections.cut().await;
            drained
        };
        let (drained, ()) = tokio::join!(connected, tasks.shutdown(deadline));
        settings.shutdown().await;
        // What the end itself was is told by now.
        chronicle.shutdown().await;
        denials.shutdown().await;
        core.ledger().close().await;
        info!("stopped");
        drained
    }
}
