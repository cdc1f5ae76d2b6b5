//! Moments and durations.

use std::time::{Duration, SystemTime};

use prost_types::Timestamp;

use super::violations::Violations;

/// A moment as the API tells it.
pub(crate) fn timestamp(moment: SystemTime) -> Timestamp {
    Timestamp::from(moment)
}

/// A duration as the API tells it; one of more than 292 billion years is cut.
pub(super) fn duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(duration).unwrap_or(prost_types::Duration {
        seconds: i64::MAX,
        nanos: 999_999_999,
    })
}

/// A moment that a caller names; absent is fine.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
pub(super) fn moment(
    field: &str,
    moment: Option<Timestamp>,
    violations: &mut Violations,
) -> Option<Option<SystemTime>> {
    let Some(moment) = moment else {
        return Some(None);
    };
    match SystemTime::try_from(moment) {
        Ok(moment) => Some(Some(moment)),
        Err(_) => violations.refuse(field, "must be a time that this host can represent"),
    }
}
