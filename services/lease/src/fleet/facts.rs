//! Which phones have which fact, so that what a selector matches is found
//! without a look at each phone.
//!
//! Invariant: a selector matches here exactly what [`Selector::matches`] says, and
//! a reach covers what [`Reach::covers`] says.

use std::collections::BTreeMap;

use super::bits::Bits;
use crate::wants::{DeviceView, Reach, Selector};

/// Something that a phone is or has, and that may be asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Label(String, String),
    Model(String),
    /// A version that the phone's is or begins with.
    Version(String),
    Host(String),
}

fn labels_of(labels: &BTreeMap<String, String>) -> impl Iterator<Item = Fact> {
    let labels = labels.iter();
    labels.map(|(key, value)| Fact::Label(key.clone(), value.clone()))
}

fn facts_of(view: &DeviceView) -> impl Iterator<Item = Fact> {
    let labels = labels_of(&view.labels);
    let versions = view.os_version.iter().flat_map(|version| {
        let ends = version.match_indices('.').map(|(at, _)| at);
        ends.chain([version.len()])
            .map(|end| Fact::Version(version[..end].to_owned()))
    });
    labels
        .chain(versions)
        .chain(view.model.clone().map(Fact::Model))
        .chain(view.host.clone().map(Fact::Host))
}

fn facts_wanted(selector: &Selector) -> impl Iterator<Item = Fact> {
    labels_of(&selector.labels)
        .chain(selector.os_version.clone().map(Fact::Version))
        .chain(selector.model.clone().map(Fact::Model))
        .chain(selector.host.clone().map(Fact::Host))
}

/// The phones by their facts.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    known: Bits,
    having: BTreeMap<Fact, Bits>,
}

impl Facts {
    /// Replaces what is known of a phone.
    pub(super) fn replace(&mut self, phone: usize, before: Option<&DeviceView>, now: &DeviceView) {
        for fact in before.into_iter().flat_map(facts_of) {
            if let Some(having) = self.having.get_mut(&fact) {
                having.set(phone, false);
                if having.is_empty() {
                    self.having.remove(&fact);
                }
            }
        }
        for fact in facts_of(now) {
            self.having.entry(fact).or_default().set(phone, true);
        }
        self.known.set(phone, true);
    }

    /// The phones that a selector matches.
    pub(super) fn matching(&self, selector: &Selector) -> Bits {
        self.having_all(facts_wanted(selector))
    }

    /// The phones that an owner may have, of those of which anything is known.
    pub(super) fn within(&self, reach: &Reach) -> Bits {
        match reach {
            Reach::Everywhere => self.known.clone(),
            Reach::Within(places) => {
                let mut within = Bits::default();
                for labels in places {
                    within.add_all(&self.having_all(labels_of(labels)));
                }
                within
            }
        }
    }

    fn having_all(&self, facts: impl Iterator<Item = Fact>) -> Bits {
        let mut all = self.known.clone();
        for fact in facts {
            let Some(having) = self.having.get(&fact) else {
                return Bits::default();
            };
            all = all.common(having);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use fleetgate_runner::Udid;
    use proptest::prelude::*;

    use super::*;
    use crate::wants::Service;

    fn labels() -> impl Strategy<Value = BTreeMap<String, String>> {
        prop::collection::btree_map("[ab]", "[xy]", 0..3)
    }

    fn version() -> impl Strategy<Value = Option<String>> {
        prop::option::of("(1|11|1\\.1|1\\.11|1\\.1\\.1|1\\.|\\.1|)")
    }

    prop_compose! {
        fn view()(
            labels in labels(),
            model in prop::option::of("[mn]"),
            os_version in version(),
            host in prop::option::of("[gh]"),
        ) -> DeviceView {
            let udid = Udid::from_parts(1, 1);
            let service = Service::InService;
            DeviceView { udid, labels, model, os_version, host, service }
        }
    }

    prop_compose! {
        fn selector()(
            labels in labels(),
            model in prop::option::of("[mn]"),
            os_version in version(),
            host in prop::option::of("[gh]"),
        ) -> Selector {
            Selector { labels, model, os_version, host }
        }
    }

    fn reach() -> impl Strategy<Value = Reach> {
        let places = prop::option::of(prop::collection::vec(labels(), 0..3));
        places.prop_map(|places| places.map_or(Reach::Everywhere, Reach::Within))
    }

    proptest! {
        #[test]
        fn the_index_and_the_selector_agree(
            changes in prop::collection::vec((0..5_usize, view()), 1..20),
            selector in selector(),
            reach in reach(),
        ) {
            let mut facts = Facts::default();
            let mut views = BTreeMap::new();
            for (phone, view) in changes {
                facts.replace(phone, views.get(&phone), &view);
                views.insert(phone, view);
            }
            let (matching, within) = (facts.matching(&selector), facts.within(&reach));
            for phone in 0..5 {
                let view = views.get(&phone);
                let matches = view.is_some_and(|view| selector.matches(view));
                prop_assert_eq!(matching.contains(phone), matches);
                let covers = view.is_some_and(|view| reach.covers(&view.labels));
                prop_assert_eq!(within.contains(phone), covers);
            }
            prop_assert_eq!(facts.within(&Reach::Everywhere).count(), views.len());
            // What no phone has is not kept.
            let kept = facts.having.keys().cloned();
            let had = views.values().flat_map(facts_of);
            prop_assert_eq!(kept.collect::<Vec<_>>(), sorted(had));
        }
    }

    fn sorted(facts: impl Iterator<Item = Fact>) -> Vec<Fact> {
        let mut facts: Vec<_> = facts.collect();
        facts.sort();
        facts.dedup();
        facts
    }
}
