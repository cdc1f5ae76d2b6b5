//! Leases: what is asked for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use fleetgate_lease::{Change, LeaseId, LeaseState, Priority, Selector};
use fleetgate_proto::v1 as pb;

use super::fields::device_name;
use super::operators::reason;
use super::time::moment;
use super::violations::{Violation, Violations};
use crate::config::{Labels, LeasesSection};

#[cfg(test)]
mod tests;
mod told;

pub(crate) use told::{device_lease, explanation, lease};

/// The most phones of one lease.
const MOST_PHONES: usize = 1000;
/// The most labels of a lease, and the most facts in its context.
const MOST_ENTRIES: usize = 32;
/// The longest key of one, in bytes.
const MAX_KEY: usize = 63;
/// The longest value of one, in bytes.
const MAX_VALUE: usize = 256;
/// The longest of all of them together, keys and values, in bytes.
const MAX_TEXT: usize = 8 << 10;
/// The longest id of a request, in bytes.
const MAX_REQUEST_ID: usize = 128;
/// The longest fact that a phone is selected by, in characters.
const MAX_FACT: usize = 64;
/// The shortest time that a lease may live.
const LEAST: Duration = Duration::from_secs(1);
/// How far ahead a lease may begin.
const FARTHEST: Duration = Duration::from_hours(24 * 30);

/// A wish for phones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseWish {
    /// What makes a repetition safe, if anything does.
    pub(crate) request_id: Option<String>,
    pub(crate) phones: WishedPhones,
    pub(crate) priority: i32,
    pub(crate) ttl: Option<Duration>,
    pub(crate) max_duration: Option<Duration>,
    pub(crate) queue_timeout: Option<Duration>,
    pub(crate) begin: Option<SystemTime>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) context: BTreeMap<String, String>,
}

/// Which phones are wished for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WishedPhones {
    /// These, as the caller names them.
    Named(Vec<String>),
    /// So many of those that match.
    Matching {
        selector: Selector,
        count: NonZeroU32,
    },
}

/// Which leases are to be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseFilter {
    pub(crate) states: Vec<LeaseState>,
    pub(crate) owner: Option<String>,
    /// As the caller names it.
    pub(crate) device: Option<String>,
    pub(crate) page_size: usize,
    pub(crate) page_token: Option<fleetgate_ledger::PageToken>,
}

/// Checks a wish in all its fields.
pub(crate) fn create_lease(
    request: pb::CreateLeaseRequest,
    limits: &LeasesSection,
    now: SystemTime,
) -> Result<LeaseWish, Vec<Violation>> {
    use pb::create_lease_request::Wants as Asked;

    let pb::CreateLeaseRequest {
        request_id,
        wants,
        priority,
        ttl,
        max_duration,
        queue_timeout,
        begin_time,
        labels,
        context,
    } = request;
    let mut violations = Violations::default();
    let request_id = match request_id.as_str() {
        "" => Some(None),
        long if long.len() > MAX_REQUEST_ID => violations.refuse(
            "request_id",
            format!("must be at most {MAX_REQUEST_ID} bytes long"),
        ),
        odd if odd.contains(char::is_control) => {
            violations.refuse("request_id", "must not hold control characters")
        }
        _ => Some(Some(request_id)),
    };
    let phones = match wants {
        Some(Asked::DeviceList(list)) => named(&list, &mut violations),
        Some(Asked::DeviceMatch(wanted)) => matching(wanted, &mut violations),
        None => violations.refuse("wants", "must be given, as device_list or device_match"),
    };
    let ttl = term("ttl", ttl, LEAST..=limits.max_ttl, &mut violations);
    let max_duration = term(
        "max_duration",
        max_duration,
        LEAST..=limits.longest_duration,
        &mut violations,
    );
    let queue_timeout = term(
        "queue_timeout",
        queue_timeout,
        Duration::ZERO..=limits.longest_queue_timeout,
        &mut violations,
    );
    let begin = match moment("begin_time", begin_time, &mut violations) {
        Some(Some(begin)) if begin > now + FARTHEST => {
            violations.refuse("begin_time", "must be at most 30 days ahead")
        }
        begin => begin,
    };
    let labels = entries("labels", labels, &mut violations);
    let context = entries("context", context, &mut violations);
    let are_few = labels.len() <= MOST_ENTRIES && context.len() <= MOST_ENTRIES;
    if are_few && !fits_a_lease(&labels, &context) {
        let too_much = format!("must be at most {MAX_TEXT} bytes together with context");
        violations.add("labels", too_much);
    }
    let wish = || {
        Some(LeaseWish {
            request_id: request_id?,
            phones: phones?,
            priority,
            ttl: ttl?,
            max_duration: max_duration?,
            queue_timeout: queue_timeout?,
            begin: begin?,
            labels,
            context,
        })
    };
    let wish = wish();
    violations.finish(wish)
}

fn named(list: &pb::DeviceList, violations: &mut Violations) -> Option<WishedPhones> {
    const FIELD: &str = "device_list.devices";
    let names: Vec<_> = list.devices.iter().map(|name| name.trim()).collect();
    if names.is_empty() || names.contains(&"") {
        return violations.refuse(FIELD, "must name devices by their UDIDs or aliases");
    }
    if names.len() > MOST_PHONES {
        return violations.refuse(FIELD, format!("must be at most {MOST_PHONES}"));
    }
    let names = names.into_iter().map(str::to_owned);
    Some(WishedPhones::Named(names.collect()))
}

fn matching(wanted: pb::DeviceMatch, violations: &mut Violations) -> Option<WishedPhones> {
    let pb::DeviceMatch { selector, count } = wanted;
    let pb::DeviceSelector {
        labels,
        model,
        os_version,
        host,
    } = selector.unwrap_or_default();
    // Sorted, so that the same request is refused in the same words.
    let labels: BTreeMap<_, _> = labels.into_iter().collect();
    let field = "device_match.selector.labels";
    if labels.len() > Labels::MOST {
        violations.add(field, format!("must be at most {}", Labels::MOST));
    }
    for (key, value) in &labels {
        violations.take(field, Labels::check_key(key));
        violations.take(field, Labels::check_value(key, value));
    }
    for (name, fact) in [
        ("model", &model),
        ("os_version", &os_version),
        ("host", &host),
    ] {
        let usable = |fact: &String| {
            let length = fact.chars().count();
            (1..=MAX_FACT).contains(&length) && !fact.contains(char::is_control)
        };
        if !fact.as_ref().is_none_or(usable) {
            violations.add(
                format!("device_match.selector.{name}"),
                format!("must be 1 to {MAX_FACT} printable characters"),
            );
        }
    }
    let most = u32::try_from(MOST_PHONES).unwrap_or(u32::MAX);
    let count = match NonZeroU32::new(count) {
        None => NonZeroU32::MIN,
        Some(count) if count.get() > most => {
            return violations.refuse(
                "device_match.count",
                format!("must be at most {MOST_PHONES}"),
            );
        }
        Some(count) => count,
    };
    Some(WishedPhones::Matching {
        selector: Selector {
            labels,
            model,
            os_version,
            host,
        },
        count,
    })
}

/// How long something may last; absent is fine. `None` if it is wrong.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
fn term(
    field: &str,
    asked: Option<prost_types::Duration>,
    allowed: std::ops::RangeInclusive<Duration>,
    violations: &mut Violations,
) -> Option<Option<Duration>> {
    let Some(asked) = asked else {
        return Some(None);
    };
    match Duration::try_from(asked) {
        Ok(asked) if allowed.contains(&asked) => Some(Some(asked)),
        Ok(_) | Err(_) => violations.refuse(
            field,
            format!("must be from {:?} to {:?}", allowed.start(), allowed.end()),
        ),
    }
}

fn entries(
    field: &str,
    entries: HashMap<String, String>,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    if entries.len() > MOST_ENTRIES {
        violations.add(field, format!("must be at most {MOST_ENTRIES}"));
    }
    let fits = |(key, value): (&String, &String)| {
        (1..=MAX_KEY).contains(&key.len()) && value.len() <= MAX_VALUE
    };
    if !entries.iter().all(fits) {
        violations.add(
            field,
            format!("must have keys of 1 to {MAX_KEY} bytes and values of at most {MAX_VALUE}"),
        );
    }
    if entries.keys().any(|key| key.contains(char::is_control)) {
        violations.add(field, "must have keys without control characters");
    }
    entries.into_iter().collect()
}

/// Whether a lease can have these labels and this context.
pub(crate) fn fits_a_lease(
    labels: &BTreeMap<String, String>,
    context: &BTreeMap<String, String>,
) -> bool {
    let entries = labels.iter().chain(context);
    let text: usize = entries.map(|(key, value)| key.len() + value.len()).sum();
    labels.len() <= MOST_ENTRIES && context.len() <= MOST_ENTRIES && text <= MAX_TEXT
}

fn lease_id(id: &str, violations: &mut Violations) -> Option<LeaseId> {
    violations.take("lease_id", id.parse())
}

/// The same of a request that has no other field that can be wrong.
pub(crate) fn only_lease_id(id: &str) -> Result<LeaseId, Vec<Violation>> {
    let mut violations = Violations::default();
    let id = lease_id(id, &mut violations);
    violations.finish(id)
}

/// Which lease is to be changed, and how.
pub(crate) fn update_lease(
    request: pb::UpdateLeaseRequest,
    limits: &LeasesSection,
) -> Result<(LeaseId, Change), Vec<Violation>> {
    let pb::UpdateLeaseRequest {
        lease_id: id,
        ttl,
        max_duration,
        priority,
        set_labels,
        remove_labels,
    } = request;
    let mut violations = Violations::default();
    let id = lease_id(&id, &mut violations);
    let ttl = term("ttl", ttl, LEAST..=limits.max_ttl, &mut violations);
    let max_duration = term(
        "max_duration",
        max_duration,
        LEAST..=limits.longest_duration,
        &mut violations,
    );
    let set_labels = entries("set_labels", set_labels, &mut violations);
    let remove_labels: BTreeSet<_> = remove_labels.into_iter().collect();
    if remove_labels.iter().any(|key| set_labels.contains_key(key)) {
        violations.add("remove_labels", "must not be in set_labels, too");
    }
    let change = || {
        let change = Change {
            ttl: ttl?,
            max_duration: max_duration?,
            priority: priority.map(Priority),
            set_labels,
            remove_labels,
        };
        Some((id?, change))
    };
    let change = change();
    violations.finish(change)
}

/// Which lease is to be taken away, why, and whether what is under way is, too.
pub(crate) fn revoke_lease(
    request: &pb::RevokeLeaseRequest,
) -> Result<(LeaseId, String, bool), Vec<Violation>> {
    let mut violations = Violations::default();
    let id = lease_id(&request.lease_id, &mut violations);
    let why = match reason(&request.reason, &mut violations) {
        Some(none) if none.is_empty() => violations.refuse("reason", "must be given"),
        why => why,
    };
    let now = match pb::RevokeMode::try_from(request.mode) {
        Ok(pb::RevokeMode::Unspecified | pb::RevokeMode::Drain) => Some(false),
        Ok(pb::RevokeMode::Now) => Some(true),
        Err(_) => violations.refuse("mode", "must be a value of this API"),
    };
    let asked = || Some((id?, why?, now?));
    let asked = asked();
    violations.finish(asked)
}

/// Which leases are asked for.
pub(crate) fn list_leases(request: pb::ListLeasesRequest) -> Result<LeaseFilter, Vec<Violation>> {
    let pb::ListLeasesRequest {
        states,
        owner,
        device,
        page_size,
        page_token,
    } = request;
    let mut violations = Violations::default();
    let states: Option<Vec<_>> = states.into_iter().map(state_from).collect();
    let states = states.or_else(|| violations.refuse("states", "must be values of this API"));
    let device = match device.trim() {
        "" => Some(None),
        name => device_name(name, &mut violations).map(Some),
    };
    let page_size = super::fields::page_size(page_size, &mut violations);
    let page_token = match page_token.as_str() {
        "" => Some(None),
        token => violations.take("page_token", token.parse()).map(Some),
    };
    let filter = || {
        Some(LeaseFilter {
            states: states?,
            owner: Some(owner).filter(|owner| !owner.is_empty()),
            device: device?,
            page_size: page_size?,
            page_token: page_token?,
        })
    };
    let filter = filter();
    violations.finish(filter)
}

fn state_from(number: i32) -> Option<LeaseState> {
    match pb::LeaseState::try_from(number) {
        Ok(pb::LeaseState::Scheduled) => Some(LeaseState::Scheduled),
        Ok(pb::LeaseState::Queued) => Some(LeaseState::Queued),
        Ok(pb::LeaseState::Active) => Some(LeaseState::Active),
        Ok(pb::LeaseState::Draining) => Some(LeaseState::Draining),
        Ok(pb::LeaseState::Released) => Some(LeaseState::Released),
        Ok(pb::LeaseState::Expired) => Some(LeaseState::Expired),
        Ok(pb::LeaseState::Revoked) => Some(LeaseState::Revoked),
        Ok(pb::LeaseState::Cancelled) => Some(LeaseState::Cancelled),
        Ok(pb::LeaseState::Unsatisfiable) => Some(LeaseState::Unsatisfiable),
        Ok(pb::LeaseState::Unspecified) | Err(_) => None,
    }
}
