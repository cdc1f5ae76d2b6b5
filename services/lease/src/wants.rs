//! What a lease wants, and what there is: phones as leases see them.
//!
//! Owns the rule by which a phone matches. Refuses to know how a phone comes to
//! be in service. Invariant: whether a phone matches depends on its facts alone,
//! never on who has it or on whether it is in service.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

use fleetgate_runner::Udid;
use serde::{Deserialize, Serialize};

/// Which phones will do. Whatever is set must hold; an empty one matches every
/// phone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    /// Labels that a phone has, with these values.
    pub labels: BTreeMap<String, String>,
    /// Its model.
    pub model: Option<String>,
    /// Its version of iOS or the beginning of it: `18` stands for `18.1` too,
    /// `18.1` not for `18.10`.
    pub os_version: Option<String>,
    /// What the host that it was last seen on is called.
    pub host: Option<String>,
}

/// Where an owner may have phones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reach {
    /// Among those that have all labels of one of these, with these values; of
    /// none of these, nowhere.
    Within(Vec<BTreeMap<String, String>>),
    /// Everywhere.
    #[default]
    Everywhere,
}

impl Reach {
    /// Whether an owner may have a phone with these labels.
    pub fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Within(places) => places.iter().any(|place| has_all(labels, place)),
        }
    }

    pub(crate) fn is_everywhere(&self) -> bool {
        match self {
            Self::Everywhere => true,
            Self::Within(_) => false,
        }
    }
}

fn has_all(labels: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    let mut wanted = wanted.iter();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
}

impl Selector {
    /// Whether a phone will do.
    pub fn matches(&self, phone: &DeviceView) -> bool {
        let fits = |wanted: &Option<String>, fact: &Option<String>| {
            wanted.is_none() || wanted.as_deref() == fact.as_deref()
        };
        let is_version = |wanted: &str| {
            let has = phone.os_version.as_deref();
            has.is_some_and(|has| begins(has, wanted))
        };
        has_all(&phone.labels, &self.labels)
            && fits(&self.model, &phone.model)
            && fits(&self.host, &phone.host)
            && self.os_version.as_deref().is_none_or(is_version)
    }
}

/// Whether a version is another or begins with all of its components.
fn begins(version: &str, with: &str) -> bool {
    let rest = version.strip_prefix(with);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// What a lease wants: all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wants {
    /// These phones.
    Devices(BTreeSet<Udid>),
    /// So many of those that match.
    Matching {
        /// Which will do.
        selector: Selector,
        /// How many.
        count: NonZeroU32,
    },
}

impl Wants {
    /// How many phones are wanted.
    pub fn count(&self) -> usize {
        match self {
            Self::Devices(devices) => devices.len(),
            Self::Matching { count, .. } => usize::try_from(count.get()).unwrap_or(usize::MAX),
        }
    }

    /// Whether a phone will do.
    pub fn matches(&self, phone: &DeviceView) -> bool {
        match self {
            Self::Devices(devices) => devices.contains(&phone.udid),
            Self::Matching { selector, .. } => selector.matches(phone),
        }
    }
}

/// A phone as leases see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceView {
    /// Its key.
    pub udid: Udid,
    /// The labels that it has.
    pub labels: BTreeMap<String, String>,
    /// Its model, if known.
    pub model: Option<String>,
    /// Its version of iOS, if known.
    pub os_version: Option<String>,
    /// What the host that it was last seen on is called.
    pub host: Option<String>,
    /// Whether it can be granted.
    pub service: Service,
}

/// Whether a phone can be granted, and if not, what is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// It can.
    InService,
    /// It is unplugged, or nobody knows whether it is.
    Detached,
    /// It is in quarantine.
    Quarantined,
    /// An operator keeps it back.
    Cordoned,
    /// Its runner is not ready.
    NotReady,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone(version: &str) -> DeviceView {
        DeviceView {
            udid: Udid::from_parts(1, 1),
            labels: BTreeMap::from([("rack".into(), "a".into()), ("os".into(), "beta".into())]),
            model: Some("iPhone14,5".into()),
            os_version: Some(version.into()),
            host: None,
            service: Service::Detached,
        }
    }

    fn version(text: &str) -> Selector {
        Selector {
            os_version: Some(text.into()),
            ..Selector::default()
        }
    }

    #[test]
    fn a_version_matches_by_its_components() {
        assert!(version("18").matches(&phone("18")));
        assert!(version("18").matches(&phone("18.1")));
        assert!(version("18.1").matches(&phone("18.1.2")));
        assert!(!version("18.1").matches(&phone("18.10")));
        assert!(!version("18.1").matches(&phone("18")));
        assert!(!version("1").matches(&phone("18")));
    }

    #[test]
    fn an_empty_selector_matches_every_phone() {
        assert!(Selector::default().matches(&phone("18")));
    }

    #[test]
    fn an_owner_gets_no_phone_where_it_may_not_look() {
        let within = |racks: &[&str]| {
            let racks = racks.iter();
            let places = racks.map(|rack| BTreeMap::from([("rack".into(), (*rack).into())]));
            Reach::Within(places.collect())
        };
        let labels = phone("18").labels;
        assert!(Reach::Everywhere.covers(&labels));
        assert!(within(&["a"]).covers(&labels));
        assert!(within(&["b", "a"]).covers(&labels));
        assert!(!within(&["b"]).covers(&labels));
        let nowhere = within(&[]);
        assert!(!nowhere.covers(&labels));
        // Also once it was written down.
        for reach in [nowhere, within(&["b", "a"]), Reach::Everywhere] {
            let text = serde_json::to_string(&reach).unwrap();
            assert_eq!(serde_json::from_str::<Reach>(&text).unwrap(), reach);
        }
    }

    #[test]
    fn what_is_not_known_of_a_phone_does_not_match() {
        let host = Selector {
            host: Some("local".into()),
            ..Selector::default()
        };
        assert!(!host.matches(&phone("18")));
    }

    #[test]
    fn every_label_has_to_be_there_with_its_value() {
        let labels = |labels: &[(&str, &str)]| Selector {
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).into(), (*value).into()))
                .collect(),
            model: Some("iPhone14,5".into()),
            ..Selector::default()
        };
        assert!(labels(&[("rack", "a")]).matches(&phone("18")));
        assert!(labels(&[("rack", "a"), ("os", "beta")]).matches(&phone("18")));
        assert!(!labels(&[("rack", "b")]).matches(&phone("18")));
        assert!(!labels(&[("rack", "a"), ("row", "1")]).matches(&phone("18")));
    }
}
