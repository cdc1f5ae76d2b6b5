//! What operators ask for: phones named, labelled, cordoned, recycled, and the
//! gateway drained.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_proto::v1 as pb;

use super::fields::device_name;
use super::time::moment;
use super::violations::{Violation, Violations};
use crate::config::{Alias, Labels};
use crate::fleet::settings::Change;

/// The longest reason in characters.
const MAX_REASON: usize = 256;

/// Which phone is to be changed, and how.
pub(crate) fn update_device(
    request: pb::UpdateDeviceRequest,
) -> Result<(String, Change), Vec<Violation>> {
    let pb::UpdateDeviceRequest {
        device,
        alias,
        set_labels,
        remove_labels,
    } = request;
    let mut violations = Violations::default();
    let device = device_name(&device, &mut violations);
    let alias = match alias {
        None => Some(None),
        Some(none) if none.is_empty() => Some(Some(None)),
        Some(alias) => violations
            .take("alias", Alias::try_from(alias))
            .map(|alias| Some(Some(alias.to_string()))),
    };
    let set = labels(set_labels, &mut violations);
    let remove = keys(remove_labels, &set, &mut violations);
    let change = alias.map(|alias| Change { alias, set, remove });
    violations.finish(device.zip(change))
}

fn labels(
    labels: HashMap<String, String>,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    // Sorted, so that the same request is refused in the same words.
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    if labels.len() > Labels::MOST {
        violations.add(
            "set_labels",
            format!("must not be more than {}", Labels::MOST),
        );
    }
    for (key, value) in &labels {
        violations.take("set_labels", Labels::check_key(key));
        violations.take("set_labels", Labels::check_value(key, value));
    }
    labels
}

fn keys(
    keys: Vec<String>,
    set: &BTreeMap<String, String>,
    violations: &mut Violations,
) -> BTreeSet<String> {
    for key in &keys {
        violations.take("remove_labels", Labels::check_key(key));
        if set.contains_key(key) {
            violations.add("remove_labels", format!("{key} is in set_labels, too"));
        }
    }
    keys.into_iter().collect()
}

/// Which phone is to be cordoned, why and until when.
pub(crate) fn cordon_device(
    request: &pb::CordonDeviceRequest,
    now: SystemTime,
) -> Result<(String, String, Option<SystemTime>), Vec<Violation>> {
    let mut violations = Violations::default();
    let device = device_name(&request.device, &mut violations);
    let reason = match reason(&request.reason, &mut violations) {
        Some(none) if none.is_empty() => violations.refuse("reason", "must be given"),
        reason => reason,
    };
    let until = match moment("until", request.until, &mut violations) {
        Some(Some(until)) if until <= now => violations.refuse("until", "must not have passed"),
        Some(Some(until)) if until > latest() => {
            violations.refuse("until", "must not be after the year 9999")
        }
        until => until,
    };
    let cordon = || Some((device?, reason?, until?));
    violations.finish(cordon())
}

/// The last moment that a `google.protobuf.Timestamp` can name.
fn latest() -> SystemTime {
    UNIX_EPOCH + Duration::new(253_402_300_799, 999_999_999)
}

/// A reason for the record; it may be empty.
pub(crate) fn reason(reason: &str, violations: &mut Violations) -> Option<String> {
    let reason = reason.trim();
    if reason.chars().count() > MAX_REASON {
        return violations.refuse("reason", format!("must be at most {MAX_REASON} characters"));
    }
    if reason.contains(char::is_control) {
        return violations.refuse("reason", "must not hold control characters");
    }
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<T: std::fmt::Debug>(refused: Result<T, Vec<Violation>>) -> Vec<String> {
        let violations = refused.unwrap_err().into_iter();
        violations.map(|violation| violation.field).collect()
    }

    fn update() -> pb::UpdateDeviceRequest {
        pb::UpdateDeviceRequest {
            device: " left ".to_owned(),
            ..pb::UpdateDeviceRequest::default()
        }
    }

    fn label(key: &str, value: &str) -> HashMap<String, String> {
        HashMap::from([(key.to_owned(), value.to_owned())])
    }

    #[test]
    fn an_absent_alias_an_empty_one_and_a_new_one_differ() {
        let alias = |alias: Option<&str>| {
            let request = pb::UpdateDeviceRequest {
                alias: alias.map(str::to_owned),
                ..update()
            };
            let (device, change) = update_device(request).unwrap();
            assert_eq!(device, "left");
            change.alias
        };
        assert_eq!(alias(None), None);
        assert_eq!(alias(Some("")), Some(None));
        assert_eq!(alias(Some("right")), Some(Some("right".to_owned())));
    }

    #[test]
    fn every_field_of_an_update_that_is_wrong_is_told() {
        let request = pb::UpdateDeviceRequest {
            device: String::new(),
            alias: Some("00008110-000978540290401E".to_owned()),
            set_labels: label("no spaces", ""),
            remove_labels: vec![String::new()],
        };
        let wrong = ["device", "alias", "set_labels", "remove_labels"];
        assert_eq!(fields(update_device(request)), wrong);
    }

    #[test]
    fn labels_are_bounded_and_a_key_is_set_or_removed() {
        let set = |set_labels| {
            update_device(pb::UpdateDeviceRequest {
                set_labels,
                ..update()
            })
        };
        let key = "k".repeat(63);
        assert!(set(label(&key, &"v".repeat(255))).is_ok());
        assert_eq!(fields(set(label(&key, &"v".repeat(256)))), ["set_labels"]);
        assert_eq!(fields(set(label(&format!("{key}k"), ""))), ["set_labels"]);
        assert_eq!(fields(set(label("!", ""))), ["set_labels"]);
        let many = |count: usize| (0..count).map(|n| (format!("k{n}"), String::new()));
        assert!(set(many(64).collect()).is_ok());
        assert_eq!(fields(set(many(65).collect())), ["set_labels"]);

        let both = update_device(pb::UpdateDeviceRequest {
            set_labels: label("rack", "7"),
            remove_labels: vec!["rack".to_owned()],
            ..update()
        });
        assert_eq!(fields(both), ["remove_labels"]);
    }

    fn cordon(
        reason: &str,
        until: Option<SystemTime>,
    ) -> Result<(String, String, Option<SystemTime>), Vec<Violation>> {
        let request = pb::CordonDeviceRequest {
            device: "left".to_owned(),
            reason: reason.to_owned(),
            until: until.map(Into::into),
        };
        cordon_device(&request, SystemTime::UNIX_EPOCH + Duration::from_secs(100))
    }

    #[test]
    fn a_cordon_needs_a_reason_of_one_line() {
        let (_, reason, until) = cordon(" battery ", None).unwrap();
        assert_eq!((reason.as_str(), until), ("battery", None));
        assert!(cordon(&"ж".repeat(256), None).is_ok());
        for wrong in ["", "  ", "two\nlines", &"ж".repeat(257)] {
            assert_eq!(fields(cordon(wrong, None)), ["reason"], "{wrong}");
        }
    }

    #[test]
    fn a_cordon_must_end_after_it_begins_and_before_the_year_10000() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        for to_come in [101, 253_402_300_799] {
            assert!(cordon("battery", Some(at(to_come))).is_ok());
        }
        for passed in [0, 99, 100, 253_402_300_800] {
            let refused = cordon("battery", Some(at(passed)));
            assert_eq!(fields(refused), ["until"], "{passed}");
        }
    }
}
