//! What a gateway is made of, as the configuration and the ledger say.

use std::collections::HashMap;

use fleetgate_device::{Dialer, HostConfig, UsbmuxdConfig};
use fleetgate_launch::{LaunchError, Launcher};
use fleetgate_ledger::{Ledger, LedgerConfig, LedgerError, RetentionConfig};
use fleetgate_runner::Udid;
use fleetgate_session::{SessionConfig, Unsettled};

use super::Overrides;
use crate::config::{Config, LOCAL, LaunchWay, Synchronous};
use crate::core::recorded;
use crate::fleet::FleetConfig;
use crate::leases::Gate;

/// What an earlier gateway left without a known fate, by phone.
pub(super) async fn unsettled(
    ledger: &Ledger,
) -> Result<HashMap<Udid, Vec<Unsettled>>, LedgerError> {
    let mut unsettled = HashMap::<_, Vec<_>>::new();
    for row in ledger.unsettled(None, None).await? {
        let of_phone = unsettled.entry(row.device.clone()).or_default();
        of_phone.push(Unsettled {
            receipt: recorded(&row),
            command_id: row.command_id,
            kind: row.kind,
            sent_at: row.created,
        });
    }
    Ok(unsettled)
}

/// A number of bytes in memory.
pub(super) fn bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How the ledger is kept.
pub(super) fn ledger_config(config: &Config) -> LedgerConfig {
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
pub(super) fn launcher(config: &Config) -> Result<Option<Launcher>, LaunchError> {
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

/// The fleet, but for what is on record.
pub(super) fn fleet_config(config: &Config, overrides: &Overrides) -> FleetConfig {
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
    use std::time::Duration;

    use fleetgate_runner::Budgets;

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
