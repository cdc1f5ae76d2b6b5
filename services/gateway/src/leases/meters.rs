//! What is counted of leases.

use fleetgate_lease::{Lease, What};
use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

/// Counts what becomes of leases. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct Meters {
    grants: Counter<u64>,
    ends: Counter<u64>,
    waits: Histogram<f64>,
}

impl Meters {
    /// Instruments of this meter.
    pub(crate) fn new(meter: &Meter) -> Self {
        Self {
            grants: meter
                .u64_counter("fleetgate.lease.grants")
                .with_description("Leases that were granted.")
                .build(),
            ends: meter
                .u64_counter("fleetgate.lease.ends")
                .with_description("Leases that have ended, by why.")
                .build(),
            waits: meter
                .f64_histogram("fleetgate.lease.wait")
                .with_description("How long leases waited that were granted.")
                .with_unit("s")
                .with_boundaries(vec![0.1, 1.0, 5.0, 30.0, 60.0, 300.0, 900.0, 3600.0])
                .build(),
        }
    }

    /// A change is on record.
    pub(super) fn changed(&self, lease: &Lease, what: What) {
        match what {
            What::Granted => {
                self.grants.add(1, &[]);
                if let Some(waited) = lease.waited() {
                    self.waits.record(waited.as_secs_f64(), &[]);
                }
            }
            What::Ended => {
                let reason = lease.end().map_or("", |end| end.reason.as_str());
                self.ends.add(1, &[KeyValue::new("reason", reason)]);
            }
            What::Created
            | What::Opened
            | What::Renewed
            | What::Updated
            | What::Queued
            | What::Draining => {}
        }
    }
}
