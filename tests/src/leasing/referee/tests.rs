use std::collections::BTreeMap;

use fleetgate_proto::v1 as pb;
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

use super::*;

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn operation(who: &str, what: &str, lease: &str, detail: BTreeMap<String, Value>) -> Entry {
    Entry::Operation(pb::Operation {
        who: who.to_owned(),
        what: what.to_owned(),
        target: Some(lease.to_owned()),
        detail: Some(Struct { fields: detail }),
    })
}

fn create(lease: &str, who: &str) -> Entry {
    operation(who, "create-lease", lease, BTreeMap::new())
}

fn grant(lease: &str, epoch: u32, devices: &[&str]) -> Entry {
    let texts = devices
        .iter()
        .map(|device| value(Kind::StringValue((*device).to_owned())));
    let devices = ListValue {
        values: texts.collect(),
    };
    let detail = [
        ("epoch".to_owned(), value(Kind::NumberValue(epoch.into()))),
        ("devices".to_owned(), value(Kind::ListValue(devices))),
    ];
    operation("fleetgate", "grant-lease", lease, detail.into())
}

fn end(lease: &str) -> Entry {
    operation("fleetgate", "end-lease", lease, BTreeMap::new())
}

fn record(id: &str, who: &str, device: &str, lease: Option<(&str, u64)>) -> CommandRecord {
    CommandRecord {
        command_id: id.to_owned(),
        device: device.to_owned(),
        principal: Some(who.to_owned()),
        lease: lease.map(|(id, epoch)| LeaseRef {
            id: id.to_owned(),
            epoch,
        }),
        ..CommandRecord::default()
    }
}

fn sent(id: &str, who: &str, device: &str, lease: Option<(&str, u64)>) -> Entry {
    Entry::Intended(record(id, who, device, lease))
}

fn done(id: &str) -> Entry {
    Entry::Concluded(record(id, "", "", None))
}

/// How much is wrong with entries.
fn wrong(entries: Vec<Entry>) -> (usize, usize) {
    let referee = Referee::read(entries);
    (referee.violations.len(), referee.overlaps.len())
}

#[test]
fn one_holder_after_the_other_and_strangers_in_between_are_fine() {
    let entries = vec![
        sent("1", "x", "p", None),
        done("1"),
        create("a", "anna"),
        create("b", "berta"),
        grant("a", 1, &["p", "q"]),
        sent("2", "anna", "p", Some(("a", 1))),
        sent("3", "x", "r", None),
        done("2"),
        end("a"),
        grant("b", 2, &["p"]),
        sent("4", "berta", "p", Some(("b", 2))),
        sent("5", "x", "q", None),
    ];
    let referee = Referee::read(entries);
    assert_eq!((&referee.violations, &referee.overlaps), (&vec![], &vec![]));
    assert_eq!((referee.leased, referee.unleased), (2, 3));
    let epochs: Vec<_> = referee.grants.iter().map(|grant| grant.epoch).collect();
    assert_eq!(epochs, [1, 2]);
}

#[test]
fn a_phone_in_two_hands_is_seen() {
    let made = || {
        vec![
            create("a", "anna"),
            create("b", "berta"),
            grant("a", 1, &["p"]),
        ]
    };
    let after = |more: Vec<Entry>| wrong([made(), more].concat());
    assert_eq!(after(vec![grant("b", 2, &["q", "p"])]), (1, 0));
    assert_eq!(after(vec![end("a"), grant("b", 1, &["p"])]), (1, 0));
    assert_eq!(
        after(vec![end("a"), grant("c", 2, &["p"])]),
        (1, 0),
        "nobody's"
    );
    assert_eq!(after(vec![create("a", "anna")]), (1, 0), "made twice");
}

#[test]
fn what_is_sent_by_others_than_the_holder_is_seen() {
    let made = || vec![create("a", "anna"), grant("a", 2, &["p"])];
    for stranger in [
        sent("1", "berta", "p", None),
        sent("1", "anna", "p", None),
        sent("1", "anna", "p", Some(("a", 1))),
        sent("1", "berta", "p", Some(("a", 2))),
        sent("1", "anna", "p", Some(("b", 2))),
        sent("1", "anna", "q", Some(("a", 2))),
    ] {
        assert_eq!(wrong([made(), vec![stranger]].concat()), (1, 0));
    }
    let late = sent("1", "anna", "p", Some(("a", 2)));
    assert_eq!(wrong([made(), vec![end("a"), late]].concat()), (1, 0));
}

#[test]
fn a_grant_beside_a_command_is_seen() {
    let made = || vec![sent("1", "x", "p", None), create("a", "anna")];
    assert_eq!(
        wrong([made(), vec![grant("a", 1, &["p"])]].concat()),
        (0, 1)
    );
    let after = vec![done("1"), grant("a", 1, &["p"])];
    assert_eq!(wrong([made(), after].concat()), (0, 0));
}
