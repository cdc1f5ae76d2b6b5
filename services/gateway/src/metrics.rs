//! The gateway's instruments: what is counted where it happens, and what is
//! looked up when somebody asks.
//!
//! They are OpenTelemetry's; the text that Prometheus scrapes comes from the
//! same meter. Each gateway has a meter of its own, so that several in one
//! process do not count for each other.
//!
//! | instrument | attributes | what it is |
//! |---|---|---|
//! | `fleetgate.devices` | `state`, `stale` | phones |
//! | `fleetgate.devices.cordoned` | | phones that are out of service |
//! | `fleetgate.device.transitions` | `state`, `reason` | what phones went through, by the state that they came into |
//! | `fleetgate.device.alarms` | `device.id`, `code` | 1 for each alarm that is up |
//! | `fleetgate.device.alarms.raised` | `code` | alarms that were ever raised |
//! | `fleetgate.leases` | `state` | leases that are open |
//! | `fleetgate.lease.grants` | | leases that were granted |
//! | `fleetgate.lease.ends` | `reason` | leases that have ended |
//! | `fleetgate.lease.wait` | | seconds that leases waited that were granted |
//! | `fleetgate.calls.denied` | `reason` | calls that their callers might not make |
//! | `fleetgate.calls.limited` | `limit` | calls that were more than their callers may make |
//! | `fleetgate.hosts` | `host`, `connected` | usbmuxds |
//! | `fleetgate.host.ignored` | `host` | announcements that could not be used, of this connection |
//!
//! No attribute takes a value that a client can make up; `device.id` stands for
//! phones in trouble only.

use std::collections::BTreeMap;

use fleetgate_proto::v1 as pb;
use opentelemetry::KeyValue;
use opentelemetry::metrics::{AsyncInstrument, Counter, Meter, MeterProvider};
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prometheus::{Registry, TextEncoder};

use crate::convert::state_name;
use crate::core::Core;
use crate::leases::Meters;

const DEVICES: &str = "Phones by state; stale ones are as they were last known.";
const CORDONED: &str = "Phones that are out of service.";
const ALARMS: &str = "1 for each alarm that is up.";
const LEASES: &str = "Leases that are open, by state.";
const HOSTS: &str = "The usbmuxds, 1 each.";
const IGNORED: &str = "Announcements that could not be used, of this connection.";

/// Why there are no metrics.
#[derive(Debug, thiserror::Error)]
#[error("metrics: {0}")]
pub struct MetricsError(#[source] Box<dyn std::error::Error + Send + Sync>);

/// The meter of one gateway, and its text.
#[derive(Debug)]
pub(crate) struct Metrics {
    // Collects for as long as it lives.
    _provider: SdkMeterProvider,
    meter: Meter,
    registry: Registry,
}

/// What is counted as it happens. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Counters {
    transitions: Counter<u64>,
    alarms: Counter<u64>,
    denied: Counter<u64>,
    limited: Counter<u64>,
}

impl Metrics {
    /// A meter that has counted nothing.
    pub(crate) fn new() -> Result<Self, MetricsError> {
        let registry = Registry::new();
        let exporter = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| MetricsError(error.into()))?;
        let provider = SdkMeterProvider::builder().with_reader(exporter).build();
        Ok(Self {
            meter: provider.meter("fleetgate"),
            _provider: provider,
            registry,
        })
    }

    /// The instruments that are counted up.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            transitions: self
                .meter
                .u64_counter("fleetgate.device.transitions")
                .with_description("What phones went through, by the state that they came into.")
                .build(),
            alarms: self
                .meter
                .u64_counter("fleetgate.device.alarms.raised")
                .with_description("Alarms that were ever raised.")
                .build(),
            denied: self
                .meter
                .u64_counter("fleetgate.calls.denied")
                .with_description("Calls that their callers might not make.")
                .build(),
            limited: self
                .meter
                .u64_counter("fleetgate.calls.limited")
                .with_description("Calls that were more than their callers may make.")
                .build(),
        }
    }

    /// The instruments of leases.
    pub(crate) fn leases(&self) -> Meters {
        Meters::new(&self.meter)
    }

    /// Looks the fleet up whenever somebody asks.
    pub(crate) fn observe(&self, core: &Core) {
        self.gauge(core, "fleetgate.devices", DEVICES, |core, observer| {
            let mut counts = BTreeMap::<_, u64>::new();
            for device in core.fleet().devices(None, usize::MAX) {
                let key = (state_name(device.state()), device.stale);
                *counts.entry(key).or_default() += 1;
            }
            for ((state, stale), count) in counts {
                let stale = KeyValue::new("stale", stale);
                observer.observe(count, &[KeyValue::new("state", state), stale]);
            }
        });
        self.gauge(
            core,
            "fleetgate.devices.cordoned",
            CORDONED,
            |core, observer| {
                let devices = core.fleet().devices(None, usize::MAX);
                let cordoned = devices.iter().filter(|device| device.cordon.is_some());
                observer.observe(cordoned.count() as u64, &[]);
            },
        );
        self.gauge(core, "fleetgate.device.alarms", ALARMS, |core, observer| {
            for device in core.fleet().devices(None, usize::MAX) {
                for alarm in device.alarms {
                    let id = KeyValue::new("device.id", device.udid.clone());
                    observer.observe(1, &[id, KeyValue::new("code", alarm.code)]);
                }
            }
        });
        self.gauge(core, "fleetgate.leases", LEASES, |core, observer| {
            for (state, count) in core.leases().board().count() {
                observer.observe(count, &[KeyValue::new("state", state.as_str())]);
            }
        });
        self.gauge(core, "fleetgate.hosts", HOSTS, |core, observer| {
            for host in core.fleet().mux_hosts() {
                let connected = KeyValue::new("connected", host.connected);
                observer.observe(1, &[KeyValue::new("host", host.name), connected]);
            }
        });
        self.gauge(core, "fleetgate.host.ignored", IGNORED, |core, observer| {
            for host in core.fleet().mux_hosts() {
                observer.observe(host.ignored_entries, &[KeyValue::new("host", host.name)]);
            }
        });
    }

    /// An instrument that is looked up. The meter outlives no gateway for it.
    fn gauge(
        &self,
        core: &Core,
        name: &'static str,
        description: &'static str,
        look: impl Fn(&Core, &dyn AsyncInstrument<u64>) + Send + Sync + 'static,
    ) {
        let core = core.downgrade();
        self.meter
            .u64_observable_gauge(name)
            .with_description(description)
            .with_callback(move |observer| {
                if let Some(core) = core.upgrade() {
                    look(&core, observer);
                }
            })
            .build();
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self) -> Result<String, MetricsError> {
        TextEncoder::new()
            .encode_to_string(&self.registry.gather())
            .map_err(|error| MetricsError(error.into()))
    }
}

impl Counters {
    /// A phone went through something.
    pub(crate) fn moved(&self, transition: &pb::DeviceTransition) {
        let attributes = [
            KeyValue::new("state", state_name(transition.to())),
            KeyValue::new("reason", transition.reason.clone()),
        ];
        self.transitions.add(1, &attributes);
    }

    /// An alarm was raised.
    pub(crate) fn alarmed(&self, alarm: &pb::Alarm) {
        self.alarms
            .add(1, &[KeyValue::new("code", alarm.code.clone())]);
    }

    /// A call was denied.
    pub(crate) fn denied(&self, reason: &'static str) {
        self.denied.add(1, &[KeyValue::new("reason", reason)]);
    }

    /// A call was one too many.
    pub(crate) fn limited(&self, limit: &'static str) {
        self.limited.add(1, &[KeyValue::new("limit", limit)]);
    }
}

/// Counters that nobody looks at.
#[cfg(test)]
pub(crate) fn counters() -> Counters {
    Metrics::new().expect("instruments").counters()
}
