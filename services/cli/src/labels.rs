//! Labels on the command line: what to set, and what to select by.

use std::collections::HashMap;
use std::str::FromStr;

use fleetgate_proto::v1::Device;

/// One label, as `key=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// Up to the first `=`.
    pub(crate) key: String,
    /// All that follows it; may be empty.
    pub(crate) value: String,
}

/// The phones that have all of some labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selector(Vec<Label>);

impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Self {
                key: key.to_owned(),
                value: value.to_owned(),
            }),
            Some(_) | None => Err("expected a key, `=` and a value, as in pool=ci".to_owned()),
        }
    }
}

impl Selector {
    /// Those with all of these; with none given, all.
    pub(crate) fn new(labels: Vec<Label>) -> Self {
        Self(labels)
    }

    /// Whether the phone is one of them.
    pub(crate) fn matches(&self, device: &Device) -> bool {
        let has = |label: &Label| device.labels.get(&label.key) == Some(&label.value);
        self.0.iter().all(has)
    }

    /// Whether all phones are.
    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }
}

/// The labels by their keys; `Err` names a key that is given twice.
pub(crate) fn by_key(labels: Vec<Label>) -> Result<HashMap<String, String>, String> {
    let mut map = HashMap::with_capacity(labels.len());
    for Label { key, value } in labels {
        if map.contains_key(&key) {
            return Err(key);
        }
        map.insert(key, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(text: &str) -> Label {
        text.parse().unwrap()
    }

    fn device(labels: &[&str]) -> Device {
        Device {
            labels: by_key(labels.iter().map(|text| label(text)).collect()).unwrap(),
            ..Device::default()
        }
    }

    #[test]
    fn a_label_ends_its_key_at_the_first_equals_sign() {
        assert_eq!(
            label("a=b=c"),
            Label {
                key: "a".to_owned(),
                value: "b=c".to_owned()
            }
        );
        assert_eq!(label("a=").value, "");
        for bad in ["", "a", "=b"] {
            assert!(bad.parse::<Label>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_selector_wants_all_of_its_labels_with_these_very_values() {
        let both = Selector::new(vec![label("pool=ci"), label("rack=a")]);
        assert!(both.matches(&device(&["pool=ci", "rack=a", "more=1"])));
        assert!(!both.matches(&device(&["pool=ci"])));
        assert!(!both.matches(&device(&["pool=ci", "rack=b"])));
        assert!(Selector::default().matches(&device(&[])));
    }

    #[test]
    fn a_key_that_is_given_twice_is_named() {
        assert_eq!(
            by_key(vec![label("a=1"), label("b=1"), label("a=1")]),
            Err("a".to_owned())
        );
    }
}
