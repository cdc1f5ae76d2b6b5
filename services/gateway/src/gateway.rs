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

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fleetgate_device::{Dialer, HostConfig, UsbmuxdConfig};
use fleetgate_identity::{
    Authenticator, IdentityError, InstanceRecord, Instances, LocalToken, Published,
};
use fleetgate_launch::{LaunchError, Launcher};
use fleetgate_ledger::{CommandRow, Ledger, LedgerConfig, LedgerError, RetentionConfig};
use fleetgate_runner::{Budgets, Udid};
use fleetgate_session::{Receipt, SessionConfig, Unsettled};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};
use uuid::Uuid;

use crate::access::{Access, Denials, DenialsTask, Rates};
use crate::admin::Admin;
use crate::chronicle::{Chronicle, ChronicleTask};
use crate::config::{AuthDiscord, Config, LOCAL, LaunchWay, Synchronous, TlsDiscord};
use crate::core::{Core, Shared};
use crate::feed::Feed;
use crate::fleet::settings::{Settings, SettingsTask};
use crate::fleet::{Fleet, FleetConfig, FleetTasks};
use crate::leases::{Gate, Leases, LeasesError, LeasesTask};
use crate::metrics::{Metrics, MetricsError};
use crate::pending::Pending;
use crate::recorder::Recorder;
use crate::server::{
    Admission, Connections, Health, Hosts, Limits, Service, Tls, TlsError, routes,
};

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

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Others could reach it, and it could not tell them apart.
    #[error(transparent)]
    Auth(#[from] AuthDiscord),
    /// Its certificates are of no use, or no certificates at all.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// The keys of `[tls]` do not go together.
    #[error(transparent)]
    TlsFiles(#[from] TlsDiscord),
    /// What callers are known by cannot be used.
    #[error("callers cannot be known: {0}")]
    Identity(IdentityError),
    /// Programs of this host could not find the gateway.
    #[error(
        "the record by which programs of this user find the gateway cannot be written: {0}; set \
         FLEETGATE_RUNTIME_DIR to a directory that is this user's only, or discovery of [auth] to \
         false"
    )]
    Discovery(IdentityError),
    /// The ledger could not be opened.
    #[error("the ledger could not be opened: {0}")]
    Ledger(#[from] LedgerError),
    /// The leases that were open cannot be gone on with.
    #[error("leases: {0}")]
    Leases(#[from] LeasesError),
    /// Where launched runners are kept track of cannot be used.
    #[error("runners cannot be launched: {0}")]
    Launcher(#[from] LaunchError),
    /// The instruments could not be made.
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    /// An address could not be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The descriptors that are compiled in could not be read.
    #[error("server reflection: {0}")]
    Reflection(#[from] tonic_reflection::server::Error),
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
        if let Some(exposed) = config.exposure() {
            return Err(exposed.into());
        }
        let tls = match config.tls.files()? {
            Some(files) => Some(Tls::load(files).await?),
            None => None,
        };
        let local = config.auth.discovery.then(LocalToken::mint);
        let authenticator = Authenticator::new(config.auth.settings(local.clone())?)
            .map_err(StartError::Identity)?;
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
        let admission = Admission::new(
            authenticator,
            access.clone(),
            Rates::new(&config.limits),
            metrics.counters(),
            config.server.heartbeat_interval,
        );
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
        );
        let hosts = Hosts::new(
            &config.server.hosts,
            tls.as_ref().map(|(tls, _)| tls.clone()),
        );
        let admin = match &config.admin.listen {
            Some(listen) => {
                let address = listen.address();
                let admin = Admin::serve(address, core.clone(), metrics, hosts.clone()).await;
                Some(admin.map_err(|source| StartError::Listen { address, source })?)
            }
            None => None,
        };
        let (routes, health) = routes(&core)?;
        health.serving().await;
        let address = config.server.listen.address();
        let ca = config.tls.certificate.clone();
        let vouched = |(tls, _): &(Tls, _)| tls.vouches_for_itself();
        let ca = ca.filter(|_| tls.as_ref().is_some_and(vouched));
        let service = Service {
            routes,
            admission,
            hosts,
            tls,
        };
        let connections = Connections::serve(address, Limits::from(&config.server), service)
            .await
            .map_err(|source| StartError::Listen { address, source })?;
        let address = connections.local_addr();
        let published = match local {
            Some(token) => {
                let published = publish(&config, address, ca, &token, overrides.runtime_dir);
                Some(published.map_err(StartError::Discovery)?)
            }
            None => None,
        };
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
    /// `DrainGateway`. [`Gateway::shutdown`] is what is to follow.
    pub async fn drain_requested(&self) {
        self.core.quit().cancelled().await;
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

/// Tells programs of this user where the gateway is and how they get in.
fn publish(
    config: &Config,
    address: SocketAddr,
    ca: Option<PathBuf>,
    token: &LocalToken,
    runtime_dir: Option<PathBuf>,
) -> Result<Published, IdentityError> {
    let instances = match runtime_dir {
        Some(directory) => Instances::at(directory),
        None => Instances::find()?,
    };
    let record = InstanceRecord {
        tls: config.tls.certificate.is_some(),
        ca,
        ..InstanceRecord::of_this_process(Uuid::now_v7(), reachable(address), token.text().clone())?
    };
    instances.publish(&record)
}

/// Where programs of this host reach a server that listens there.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// What an earlier gateway left without a known fate, by phone.
async fn unsettled(ledger: &Ledger) -> Result<HashMap<Udid, Vec<Unsettled>>, LedgerError> {
    let mut unsettled = HashMap::<_, Vec<_>>::new();
    for row in ledger.unsettled(None, None).await? {
        let of_phone = unsettled.entry(row.device.clone()).or_default();
        of_phone.push(Unsettled {
            receipt: receipt(&row),
            command_id: row.command_id,
            kind: row.kind,
            sent_at: row.created,
        });
    }
    Ok(unsettled)
}

/// What is on record of a command's end, if anything is.
fn receipt(row: &CommandRow) -> Option<Receipt> {
    let outcome = &row.conclusion.as_ref()?.outcome;
    Some(Receipt {
        command_id: row.command_id.clone(),
        kind: row.kind,
        fate: outcome.fate,
        effect: outcome.effect,
        reactivated: outcome.reactivated,
        warning: outcome.warning.clone(),
        attempts: outcome.attempts,
        recovered: outcome.recovered,
        queue_wait: outcome.queue_wait,
        device_time: outcome.device_time,
    })
}

fn bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn ledger_config(config: &Config) -> LedgerConfig {
    LedgerConfig {
        synchronous: match config.ledger.synchronous {
            Synchronous::Full => fleetgate_ledger::Synchronous::Full,
            Synchronous::Normal => fleetgate_ledger::Synchronous::Normal,
        },
        retention: RetentionConfig {
            max_age: config.ledger.retention_max_age,
            max_bytes: config.ledger.retention_max_size.map(|size| size.as_u64()),
            interval: config.ledger.retention_interval,
        },
        ..LedgerConfig::new(&config.ledger.path)
    }
}

/// What launches runners, if any ever is or was.
fn launcher(config: &Config) -> Result<Option<Launcher>, LaunchError> {
    let directory = config.runner_directory();
    let launches = config.launch.iter().any(|launch| match launch.way {
        LaunchWay::Static(_) => false,
        LaunchWay::Command(_) => true,
    });
    // What was launched before the configuration changed is still to be ended.
    if launches || directory.exists() {
        Launcher::open(directory).map(Some)
    } else {
        Ok(None)
    }
}

fn fleet_config(config: &Config, overrides: &Overrides) -> FleetConfig {
    let Overrides {
        budgets,
        dialer,
        runtime_dir: _,
    } = overrides.clone();
    let mux = UsbmuxdConfig::default();
    // Parts of every window, and so on the windows' clock.
    let usbmuxd = UsbmuxdConfig {
        patience: budgets.of(mux.patience),
        ..mux
    };
    let mut dialers: Vec<_> = config
        .usbmuxds()
        .into_iter()
        .map(|(name, address)| (name, Dialer::to(address)))
        .collect();
    if let Some(dialer) = dialer {
        dialers.retain(|(name, _)| name != LOCAL);
        dialers.insert(0, (LOCAL.to_owned(), dialer));
    }
    let host = |(name, dialer): (String, Dialer)| HostConfig {
        name: name.into(),
        dialer,
        usbmuxd: usbmuxd.clone(),
    };
    FleetConfig {
        settle: usbmuxd.settle,
        hosts: dialers.into_iter().map(host).collect(),
        devices: config.device.clone(),
        launches: config.launch.clone(),
        common_port: config.runner.port,
        health: config.health.clone(),
        launcher: None,
        max_launches: config.runner.max_launches.get(),
        session: SessionConfig {
            budgets,
            queue_capacity: config.lane.capacity.get(),
            busy_ceiling: budgets.of(config.runner.busy_ceiling),
            ..SessionConfig::default()
        },
        unsettled: HashMap::new(),
        gate: Gate::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(name: &str, value: &str) -> Config {
        Config::load_with(None, [(name.to_owned(), value.to_owned())]).unwrap()
    }

    #[test]
    fn the_ledger_is_kept_as_is_set() {
        let kept =
            |value| ledger_config(&config("FLEETGATE_LEDGER__SYNCHRONOUS", value)).synchronous;
        assert_eq!(kept("normal"), fleetgate_ledger::Synchronous::Normal);
        assert_eq!(kept("full"), fleetgate_ledger::Synchronous::Full);
    }

    #[test]
    fn everything_is_kept_unless_a_limit_is_set() {
        let retention = |name, value| ledger_config(&config(name, value)).retention;
        let none = retention("FLEETGATE_LEDGER__SYNCHRONOUS", "full");
        assert_eq!((none.max_age, none.max_bytes), (None, None));
        let aged = retention("FLEETGATE_LEDGER__RETENTION_MAX_AGE", "90days");
        assert_eq!(aged.max_age, Some(Duration::from_secs(90 * 24 * 60 * 60)));
        let sized = retention("FLEETGATE_LEDGER__RETENTION_MAX_SIZE", "1GiB");
        assert_eq!(sized.max_bytes, Some(1 << 30));
        let often = retention("FLEETGATE_LEDGER__RETENTION_INTERVAL", "5s");
        assert_eq!(often.interval, Duration::from_secs(5));
    }

    #[test]
    fn a_busy_runner_is_waited_for_as_long_as_is_set_on_the_runners_clock() {
        let config = config("FLEETGATE_RUNNER__BUSY_CEILING", "8s");
        let ceiling = |scale| {
            let overrides = Overrides {
                budgets: Budgets::scaled(scale),
                ..Overrides::default()
            };
            fleet_config(&config, &overrides).session.busy_ceiling
        };
        assert_eq!(ceiling(1.0), Duration::from_secs(8));
        assert_eq!(ceiling(0.5), Duration::from_secs(4));
    }

    #[test]
    fn the_common_runner_port_is_what_is_set() {
        let config = config("FLEETGATE_RUNNER__PORT", "8123");
        let port = fleet_config(&config, &Overrides::default()).common_port;
        assert_eq!(port.map(crate::config::RunnerPort::get), Some(8123));
    }
}
