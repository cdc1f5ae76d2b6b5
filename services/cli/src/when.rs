//! Moments and durations, as a command line gives them and as it shows them.
//!
//! A moment is in UTC, or so long ago. Nothing here reads a time zone.

use std::time::{Duration, SystemTime};

use prost_types::Timestamp;

/// Reads a moment: RFC 3339 in UTC (`2026-11-30T12:00:00Z`, also without the
/// `T` and the `Z`), or how long ago it was (`15m`, `2h 30m`).
pub(crate) fn parse(text: &str) -> Result<SystemTime, String> {
    parse_at(text, SystemTime::now())
}

fn parse_at(text: &str, now: SystemTime) -> Result<SystemTime, String> {
    if let Ok(moment) = humantime::parse_rfc3339_weak(text) {
        return Ok(moment);
    }
    let ago = humantime::parse_duration(text).map_err(|_| {
        "neither a time in UTC such as 2026-11-30T12:00:00Z nor a duration such as 15m or 2h"
            .to_owned()
    })?;
    now.checked_sub(ago)
        .ok_or_else(|| "longer ago than a clock can tell".to_owned())
}

/// Reads a moment that is still to come: RFC 3339 in UTC.
pub(crate) fn parse_coming(text: &str) -> Result<SystemTime, String> {
    let moment = humantime::parse_rfc3339_weak(text)
        .map_err(|_| "not a time in UTC such as 2026-11-30T12:00:00Z".to_owned())?;
    if moment > SystemTime::now() {
        Ok(moment)
    } else {
        Err("has passed already".to_owned())
    }
}

/// Reads a duration that is not zero.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() {
        Err("must be longer than nothing".to_owned())
    } else {
        Ok(duration)
    }
}

/// Reads a duration that may be zero.
pub(crate) fn parse_wait(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

/// A moment as RFC 3339 with milliseconds; `None` if no clock could show it.
pub(crate) fn stamp(timestamp: Timestamp) -> Option<String> {
    let moment = SystemTime::try_from(timestamp).ok()?;
    // The formatter panics outside of the years that RFC 3339 can name.
    (0..253_402_300_800)
        .contains(&timestamp.seconds)
        .then(|| humantime::format_rfc3339_millis(moment).to_string())
}

/// How long ago a moment was, in its largest unit; what is still to come is now.
pub(crate) fn age(timestamp: Timestamp, now: SystemTime) -> Option<String> {
    let moment = SystemTime::try_from(timestamp).ok()?;
    let seconds = now.duration_since(moment).unwrap_or_default().as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= *unit);
    let (unit, letter) = unit.unwrap_or((1, "s"));
    Some(format!("{}{letter}", seconds / unit))
}

/// A duration in words, to the second.
pub(crate) fn whole(duration: prost_types::Duration) -> Option<String> {
    let duration = Duration::try_from(duration).ok()?;
    let seconds = Duration::from_secs(duration.as_secs());
    Some(humantime::format_duration(seconds).to_string())
}

/// A duration in milliseconds, to the microsecond.
pub(crate) fn millis(duration: prost_types::Duration) -> Option<f64> {
    let duration = Duration::try_from(duration).ok()?;
    Some((duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> SystemTime {
        humantime::parse_rfc3339("2026-11-30T12:00:00Z").unwrap()
    }

    #[test]
    fn a_moment_may_be_absolute() {
        assert_eq!(
            parse_at("2026-11-30T12:00:00Z", SystemTime::UNIX_EPOCH),
            Ok(noon())
        );
        assert_eq!(
            parse_at("2026-11-30 12:00:00", SystemTime::UNIX_EPOCH),
            Ok(noon())
        );
        assert_eq!(
            parse_at("2026-11-30T12:00:00.250Z", SystemTime::UNIX_EPOCH),
            Ok(noon() + Duration::from_millis(250))
        );
    }

    #[test]
    fn a_moment_may_be_so_long_ago() {
        assert_eq!(
            parse_at("15m", noon()),
            Ok(noon() - Duration::from_secs(900))
        );
        assert_eq!(
            parse_at("1h 30m", noon()),
            Ok(noon() - Duration::from_secs(5_400))
        );
    }

    #[test]
    fn anything_else_is_refused_with_both_forms_named() {
        for text in ["", "yesterday", "2026-13-01T00:00:00Z", "12"] {
            let error = parse_at(text, noon()).unwrap_err();
            assert!(
                error.contains("2026-11-30T12:00:00Z") && error.contains("15m"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn a_moment_to_come_is_absolute_and_has_not_passed() {
        assert!(parse_coming("2999-01-01T00:00:00Z").is_ok());
        for text in ["2001-01-01T00:00:00Z", "2h", ""] {
            assert!(parse_coming(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_age_is_told_in_one_unit() {
        let then = Timestamp::from(noon());
        for (seconds, told) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3_599, "59m"),
            (7_300, "2h"),
            (200_000, "2d"),
        ] {
            let now = noon() + Duration::from_secs(seconds);
            assert_eq!(age(then, now).as_deref(), Some(told));
        }
        let before = noon() - Duration::from_secs(5);
        assert_eq!(age(then, before).as_deref(), Some("0s"), "clocks differ");
    }

    #[test]
    fn a_duration_of_nothing_is_no_time_limit() {
        assert!(parse_duration("0s").is_err());
        assert_eq!(parse_wait("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
    }

    #[test]
    fn timestamps_are_shown_to_the_millisecond_and_absurd_ones_not_at_all() {
        let timestamp = Timestamp {
            seconds: 1_796_040_000,
            nanos: 123_456_789,
        };
        assert_eq!(
            stamp(timestamp).as_deref(),
            Some("2026-11-30T12:00:00.123Z")
        );
        assert_eq!(
            stamp(Timestamp {
                seconds: i64::MAX,
                nanos: 0
            }),
            None
        );
        assert_eq!(
            stamp(Timestamp {
                seconds: -1,
                nanos: 0
            }),
            None
        );
    }

    #[test]
    fn durations_are_shown_in_milliseconds() {
        assert_eq!(
            millis(prost_types::Duration {
                seconds: 1,
                nanos: 500_250_000
            }),
            Some(1_500.25)
        );
    }
}
