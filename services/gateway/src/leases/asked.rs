//! What a lease was asked for with: kept beside it, so that a repetition is told
//! from another request with the same id whatever has become of the lease.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_lease::Wants;
use serde::{Deserialize, Serialize};

use crate::convert::LeaseWish;

/// A wish for phones as it was asked for, before defaults and limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Asked {
    wants: Wants,
    priority: i32,
    ttl_ms: Option<u64>,
    max_duration_ms: Option<u64>,
    queue_timeout_ms: Option<u64>,
    /// Since 1970; what is before is 0.
    begin_ms: Option<u64>,
    labels: BTreeMap<String, String>,
    context: BTreeMap<String, String>,
}

impl Asked {
    /// What is kept of a wish for these phones.
    pub(crate) fn of(wish: &LeaseWish, wants: Wants) -> Self {
        let since = |begin: SystemTime| begin.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            wants,
            priority: wish.priority,
            ttl_ms: wish.ttl.map(millis),
            max_duration_ms: wish.max_duration.map(millis),
            queue_timeout_ms: wish.queue_timeout.map(millis),
            begin_ms: wish.begin.map(since).map(millis),
            labels: wish.labels.clone(),
            context: wish.context.clone(),
        }
    }

    /// The fields of the request in which two differ.
    pub(super) fn differing(&self, other: &Self) -> Vec<&'static str> {
        let wants = match (&self.wants, &other.wants) {
            (Wants::Devices(_), Wants::Devices(_)) => "device_list",
            (Wants::Matching { .. }, Wants::Matching { .. }) => "device_match",
            (Wants::Devices(_), Wants::Matching { .. })
            | (Wants::Matching { .. }, Wants::Devices(_)) => "wants",
        };
        [
            (wants, self.wants == other.wants),
            ("priority", self.priority == other.priority),
            ("ttl", self.ttl_ms == other.ttl_ms),
            (
                "max_duration",
                self.max_duration_ms == other.max_duration_ms,
            ),
            (
                "queue_timeout",
                self.queue_timeout_ms == other.queue_timeout_ms,
            ),
            ("begin_time", self.begin_ms == other.begin_ms),
            ("labels", self.labels == other.labels),
            ("context", self.context == other.context),
        ]
        .into_iter()
        .filter_map(|(field, same)| (!same).then_some(field))
        .collect()
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
