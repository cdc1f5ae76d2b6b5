//! Acts one by one, and any sequence of them against a plain model.

use proptest::prelude::*;

use super::super::table::nothing;
use super::*;
use crate::config::{Alias, DeviceConfig, Devices};

const CONFIGURED: &str = "00008110-000978540290401E";
const STRANGER: &str = "00008020-00060D691AD8003A";
const THIRD: &str = "00008030-001A2B3C4D5E6F70";

fn udid(text: &str) -> Udid {
    text.parse().unwrap()
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn labels<const N: usize>(labels: [(&str, &str); N]) -> BTreeMap<String, String> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    labels.into_iter().map(owned).collect()
}

/// One phone is configured: `left`, in rack 7, of the colour red.
fn configured() -> Devices {
    Devices::try_from(vec![DeviceConfig {
        alias: Some(Alias::try_from("left".to_owned()).unwrap()),
        labels: Labels::try_from(labels([("rack", "7"), ("colour", "red")])).unwrap(),
        ..DeviceConfig::new(udid(CONFIGURED))
    }])
    .unwrap()
}

fn table() -> Table {
    Table::new(&configured(), Vec::new())
}

/// What a gateway on the same ledger has.
fn restarted(table: &Table) -> Table {
    Table::new(&configured(), table.all_stored().cloned().collect())
}

fn act(table: &mut Table, device: &str, act: Act) -> Result<Option<NewOperation>, Refused> {
    let plan = table.plan(&udid(device), act, "me", at(1000))?;
    Ok(plan.map(|plan| {
        table.put(plan.settings);
        plan.operation
    }))
}

fn name(alias: &str) -> Act {
    let alias = Some(alias).filter(|alias| !alias.is_empty());
    Act::Update(Change {
        alias: Some(alias.map(str::to_owned)),
        ..Change::default()
    })
}

fn label<const N: usize>(set: [(&str, &str); N], remove: &[&str]) -> Act {
    Act::Update(Change {
        alias: None,
        set: labels(set),
        remove: remove.iter().map(ToString::to_string).collect(),
    })
}

fn cordon(reason: &str, until: Option<SystemTime>) -> Act {
    let reason = reason.to_owned();
    Act::Cordon { reason, until }
}

fn alias(table: &Table, device: &str) -> Option<String> {
    table.get(&udid(device)).alias
}

#[test]
fn the_configuration_holds_until_an_operator_says_otherwise() {
    let mut table = table();
    let before = table.get(&udid(CONFIGURED));
    assert_eq!(before.alias.as_deref(), Some("left"));
    assert_eq!(before.labels, labels([("rack", "7"), ("colour", "red")]));
    assert_eq!(table.get(&udid(STRANGER)), nothing(&udid(STRANGER)));

    act(&mut table, CONFIGURED, name("first")).unwrap().unwrap();
    let more = label([("colour", "blue"), ("lab", "3")], &["rack"]);
    let operation = act(&mut table, CONFIGURED, more).unwrap().unwrap();
    assert_eq!(
        (operation.who.as_str(), operation.what.as_str()),
        ("me", "update-device")
    );
    assert_eq!(operation.target.as_deref(), Some(CONFIGURED));
    assert_eq!(
        Value::Object(operation.detail),
        json!({"set_labels": {"colour": "blue", "lab": "3"}, "removed_labels": ["rack"]})
    );
    for table in [&restarted(&table), &table] {
        let after = table.get(&udid(CONFIGURED));
        assert_eq!(after.alias.as_deref(), Some("first"));
        assert_eq!(after.labels, labels([("colour", "blue"), ("lab", "3")]));
    }
}

#[test]
fn what_was_taken_away_stays_away_until_it_is_given_back() {
    let mut table = table();
    act(&mut table, CONFIGURED, name("")).unwrap().unwrap();
    act(&mut table, CONFIGURED, label([], &["rack", "colour"]))
        .unwrap()
        .unwrap();
    for table in [&restarted(&table), &table] {
        assert_eq!(table.get(&udid(CONFIGURED)).labels, labels([]));
        assert_eq!(alias(table, CONFIGURED), None);
        assert_eq!(table.by_alias("left"), None);
    }
    act(&mut table, CONFIGURED, name("left")).unwrap().unwrap();
    act(&mut table, CONFIGURED, label([("rack", "7")], &[]))
        .unwrap()
        .unwrap();
    for table in [&restarted(&table), &table] {
        assert_eq!(table.get(&udid(CONFIGURED)).labels, labels([("rack", "7")]));
        assert_eq!(table.by_alias("left"), Some(&udid(CONFIGURED)));
    }
}

#[test]
fn an_alias_is_one_phones_and_a_configured_one_is_kept_for_its_phone() {
    let taken = |alias: &str, by: &str| Refused::AliasTaken {
        alias: alias.to_owned(),
        device: udid(by),
    };
    let mut table = table();
    let refused = act(&mut table, STRANGER, name("left")).unwrap_err();
    assert_eq!(refused, taken("left", CONFIGURED));
    act(&mut table, CONFIGURED, name("first")).unwrap().unwrap();
    let refused = act(&mut table, STRANGER, name("left")).unwrap_err();
    assert_eq!(
        refused,
        taken("left", CONFIGURED),
        "although it is not used"
    );
    assert_eq!(table.by_alias("left"), None);
    let refused = act(&mut table, STRANGER, name("first")).unwrap_err();
    assert_eq!(refused, taken("first", CONFIGURED));

    act(&mut table, CONFIGURED, name("second"))
        .unwrap()
        .unwrap();
    act(&mut table, STRANGER, name("first")).unwrap().unwrap();
    assert_eq!(table.by_alias("first"), Some(&udid(STRANGER)), "given up");
}

#[test]
fn an_alias_that_was_given_before_it_was_configured_elsewhere_stays() {
    let mut stored = nothing(&udid(STRANGER));
    stored.alias = Some("left".to_owned());
    let mut table = Table::new(&configured(), vec![stored]);
    let overruled: Vec<_> = table.overruled().collect();
    assert_eq!(overruled, [("left", &udid(STRANGER))]);
    assert_eq!(alias(&table, STRANGER).as_deref(), Some("left"));
    assert_eq!(alias(&table, CONFIGURED), None);
    act(&mut table, CONFIGURED, cordon("battery", None))
        .unwrap()
        .unwrap();
    act(&mut table, STRANGER, name("")).unwrap().unwrap();
    assert_eq!(
        table.by_alias("left"),
        Some(&udid(CONFIGURED)),
        "free again"
    );
}

#[test]
fn what_is_so_already_is_no_act() {
    let mut table = table();
    let acts = || {
        let quarantine = Quarantine {
            reason: "it fails".to_owned(),
            since: at(900) + Duration::from_nanos(1500),
        };
        [
            name("first"),
            label([("lab", "3")], &["rack"]),
            cordon("battery", Some(at(2000) + Duration::from_nanos(999))),
            Act::Quarantine(Some(quarantine)),
        ]
    };
    for wanted in acts() {
        assert!(act(&mut table, CONFIGURED, wanted).unwrap().is_some());
    }
    for again in acts() {
        assert_eq!(
            act(&mut table, CONFIGURED, again.clone()),
            Ok(None),
            "{again:?}"
        );
        assert_eq!(act(&mut restarted(&table), CONFIGURED, again), Ok(None));
    }
    for nothing in [
        Act::Update(Change::default()),
        Act::Uncordon,
        Act::EndCordon,
        Act::Quarantine(None),
        name(""),
        label([], &["rack"]),
    ] {
        assert_eq!(
            act(&mut table, STRANGER, nothing.clone()),
            Ok(None),
            "{nothing:?}"
        );
    }
    assert_eq!(
        act(&mut table, CONFIGURED, label([("colour", "red")], &[])),
        Ok(None)
    );
}

#[test]
fn a_cordon_says_who_why_and_until_when_and_another_takes_its_place() {
    let mut table = table();
    let operation = act(&mut table, STRANGER, cordon("battery", None))
        .unwrap()
        .unwrap();
    assert_eq!(operation.what, "cordon-device");
    assert_eq!(
        Value::Object(operation.detail),
        json!({"reason": "battery"})
    );
    let first = table.get(&udid(STRANGER)).cordon.unwrap();
    assert_eq!(
        (first.who.as_str(), first.since, first.until),
        ("me", at(1000), None)
    );

    let other = cordon("display", Some(at(1_700_000_000)));
    let plan = table
        .plan(&udid(STRANGER), other, "you", at(1001))
        .unwrap()
        .unwrap();
    assert_eq!(
        Value::Object(plan.operation.detail),
        json!({"reason": "display", "until": "2023-11-14T22:13:20Z"})
    );
    let second = plan.settings.cordon.unwrap();
    assert_eq!((second.who.as_str(), second.since), ("you", at(1001)));

    let operation = act(&mut table, STRANGER, Act::Uncordon).unwrap().unwrap();
    assert_eq!(operation.what, "uncordon-device");
    assert_eq!(
        Value::Object(operation.detail),
        json!({"reason": "battery"})
    );
    assert_eq!(table.get(&udid(STRANGER)).cordon, None);
}

#[test]
fn a_cordon_ends_when_its_time_is_up_and_not_before() {
    let mut table = table();
    act(&mut table, CONFIGURED, cordon("battery", Some(at(1500))))
        .unwrap()
        .unwrap();
    act(&mut table, STRANGER, cordon("battery", Some(at(1200))))
        .unwrap()
        .unwrap();
    act(&mut table, THIRD, cordon("battery", None))
        .unwrap()
        .unwrap();
    assert_eq!(table.next_end(), Some(at(1200)));
    assert_eq!(table.ended(at(1199)), []);
    assert_eq!(table.ended(at(1200)), [udid(STRANGER)]);
    let end = |device, now| table.plan(&udid(device), Act::EndCordon, GATEWAY, now);
    assert_eq!(end(STRANGER, at(1199)), Ok(None));
    assert_eq!(end(THIRD, at(9999)), Ok(None));
    let ended = end(STRANGER, at(1200)).unwrap().unwrap();
    assert_eq!(ended.settings.cordon, None);
    assert_eq!(ended.operation.who, "fleetgate");
    assert_eq!(ended.operation.what, "cordon-ended");
}

#[test]
fn configured_labels_count() {
    let mut table = table();
    let many = |count: usize| {
        Act::Update(Change {
            set: (0..count)
                .map(|n| (format!("k{n}"), String::new()))
                .collect(),
            ..Change::default()
        })
    };
    assert_eq!(
        act(&mut table, CONFIGURED, many(63)),
        Err(Refused::TooManyLabels)
    );
    assert!(act(&mut table, CONFIGURED, many(62)).unwrap().is_some());
    let swapped = label([("lab", "3")], &["rack"]);
    assert!(act(&mut table, CONFIGURED, swapped).unwrap().is_some());
    assert_eq!(
        act(&mut table, CONFIGURED, label([("rack", "7")], &[])),
        Err(Refused::TooManyLabels)
    );
}

/// An act of operators who have few words.
fn any_act() -> impl Strategy<Value = Act> {
    let word = || prop::sample::select(vec!["left", "right", "rack", "colour", "red"]);
    let alias = prop::option::of(prop::option::of(word().prop_map(str::to_owned)));
    let set = prop::collection::btree_map(word(), word(), 0..3);
    let remove = prop::collection::btree_set(word(), 0..3);
    let change = (alias, set, remove).prop_map(|(alias, set, remove)| {
        let set: BTreeMap<_, _> = set
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let remove = remove.into_iter().map(str::to_owned);
        let remove = remove.filter(|key| !set.contains_key(key)).collect();
        Act::Update(Change { alias, set, remove })
    });
    prop_oneof![
        4 => change,
        1 => word().prop_map(|word| cordon(word, None)),
        1 => Just(Act::Uncordon),
    ]
}

/// What an act makes of settings, as a person would say it.
fn done(mut settings: DeviceSettings, act: &Act) -> DeviceSettings {
    if let Act::Update(Change { alias, set, remove }) = act {
        if let Some(alias) = alias {
            settings.alias.clone_from(alias);
        }
        settings.labels.extend(set.clone());
        settings.labels.retain(|key, _| !remove.contains(key));
    }
    settings
}

proptest! {
    #[test]
    fn acts_do_what_they_say_to_their_phone_only_and_survive_a_restart(
        acts in prop::collection::vec((prop::sample::select(vec![CONFIGURED, STRANGER, THIRD]), any_act()), 0..20),
    ) {
        let mut table = table();
        let phones = [CONFIGURED, STRANGER, THIRD].map(udid);
        for (device, wanted) in acts {
            let before = phones.clone().map(|phone| table.get(&phone));
            let outcome = act(&mut table, device, wanted.clone());
            for before in before {
                let after = table.get(&before.device);
                let is_meant = before.device == udid(device);
                if !is_meant || outcome.is_err() {
                    prop_assert_eq!(&after, &before);
                    continue;
                }
                let expected = done(before.clone(), &wanted);
                prop_assert_eq!(&after.alias, &expected.alias);
                prop_assert_eq!(&after.labels, &expected.labels);
                prop_assert_eq!(outcome == Ok(None), after == before);
            }
            for phone in &phones {
                prop_assert_eq!(restarted(&table).get(phone), table.get(phone));
                if let Some(alias) = table.get(phone).alias {
                    prop_assert_eq!(table.by_alias(&alias), Some(phone));
                }
            }
        }
    }
}
