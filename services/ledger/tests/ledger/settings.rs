//! What holds for phones.

use std::collections::BTreeMap;

use fleetgate_ledger::{DeviceSettings, EventKind, Ledger, LedgerError, NewOperation, Subject};
use sqlx::Connection;

use crate::support::{OTHER, PHONE, Place, at_once, count, operation, record, run, settings, tap};

async fn operations(ledger: &Ledger) -> Vec<String> {
    let page = ledger.tail(None, 500).await.unwrap();
    page.events
        .into_iter()
        .filter_map(|event| match event.subject {
            Subject::Operation(operation) => Some(operation.what),
            Subject::Ledger { .. }
            | Subject::Command(_)
            | Subject::Transition(_)
            | Subject::Checkpoint(_) => None,
        })
        .collect()
}

fn nothing(device: &str) -> DeviceSettings {
    DeviceSettings {
        alias: None,
        labels: BTreeMap::new(),
        cordon: None,
        quarantine: None,
        ..settings(device, None)
    }
}

#[tokio::test]
async fn they_are_replaced_as_a_whole_and_read_back_after_a_reopening() {
    let place = Place::new();
    let ledger = place.open().await;
    assert_eq!(ledger.device_settings().await.unwrap(), []);
    let full = settings(PHONE, Some("front desk"));
    let mut partly = settings(OTHER, None);
    partly.quarantine = None;
    if let Some(cordon) = &mut partly.cordon {
        cordon.until = None;
    }
    for settings in [&full, &partly] {
        ledger
            .set_device(settings.clone(), operation("update_device"))
            .await
            .unwrap();
    }
    ledger.close().await;

    let ledger = place.open().await;
    assert_eq!(
        ledger.device_settings().await.unwrap(),
        [partly.clone(), full]
    );
    ledger
        .set_device(nothing(PHONE), operation("uncordon_device"))
        .await
        .unwrap();
    assert_eq!(
        ledger.device_settings().await.unwrap(),
        [partly, nothing(PHONE)]
    );
    assert_eq!(
        operations(&ledger).await,
        ["update_device", "update_device", "uncordon_device"]
    );
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn an_alias_that_another_phone_has_is_refused_and_nothing_is_written() {
    let place = Place::new();
    let ledger = place.open().await;
    let first = settings(PHONE, Some("front"));
    ledger
        .set_device(first.clone(), operation("first"))
        .await
        .unwrap();
    let refused = ledger
        .set_device(settings(OTHER, Some("front")), operation("second"))
        .await;
    match refused {
        Err(error @ LedgerError::AliasTaken { .. }) => {
            let message = error.to_string();
            assert!(
                message.contains("front") && message.contains(PHONE),
                "{message}"
            );
            let LedgerError::AliasTaken { alias, device } = error else {
                panic!("{message}")
            };
            assert_eq!((alias.as_str(), device.as_str()), ("front", PHONE));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        *ledger.device_settings().await.unwrap(),
        *std::slice::from_ref(&first)
    );
    assert_eq!(operations(&ledger).await, ["first"]);
    // One's own may be kept.
    ledger.set_device(first, operation("again")).await.unwrap();
    ledger.close().await;
}

#[tokio::test]
async fn aliases_that_differ_in_case_are_two() {
    let place = Place::new();
    let ledger = place.open().await;
    for (device, alias) in [(PHONE, "Front"), (OTHER, "front")] {
        ledger
            .set_device(settings(device, Some(alias)), operation("update_device"))
            .await
            .unwrap();
    }
    ledger.close().await;
}

#[tokio::test]
async fn in_a_batch_an_alias_goes_to_whoever_asks_first_and_once_it_is_given_up() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger
        .set_device(settings(PHONE, Some("a")), operation("before"))
        .await
        .unwrap();
    let before = ledger.stats().commits;
    let third = "00008110-0000000000000003";
    let entries = [
        (OTHER, Some("a")),
        (PHONE, Some("b")),
        (third, Some("b")),
        (OTHER, Some("a")),
        (PHONE, Some("a")),
        (third, Some("b")),
        (PHONE, None),
    ];
    let results = at_once(entries.map(|(device, alias)| {
        ledger.set_device(settings(device, alias), operation("update_device"))
    }))
    .await;
    let taken = |result: &Result<(), LedgerError>| match result {
        Ok(()) => None,
        Err(LedgerError::AliasTaken { alias, device }) => Some((alias.clone(), device.to_string())),
        Err(error) => panic!("{error:?}"),
    };
    let of = |alias: &str, device: &str| Some((alias.to_owned(), device.to_owned()));
    assert_eq!(
        results.iter().map(taken).collect::<Vec<_>>(),
        [
            of("a", PHONE),
            None,
            of("b", PHONE),
            None,
            of("a", OTHER),
            of("b", PHONE),
            None,
        ]
    );
    assert_eq!(ledger.stats().commits, before + 1);
    let aliases: Vec<Option<String>> = ledger
        .device_settings()
        .await
        .unwrap()
        .into_iter()
        .map(|settings| settings.alias)
        .collect();
    assert_eq!(aliases, [Some("a".to_owned()), None]);
    assert_eq!(operations(&ledger).await.len(), 4);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn settings_without_their_operation_are_not_written_nor_the_other_way_round() {
    let place = Place::new();
    let ledger = place.open().await;
    let kept = settings(PHONE, Some("kept"));
    ledger
        .set_device(kept.clone(), operation("first"))
        .await
        .unwrap();
    let nameless = NewOperation {
        who: String::new(),
        ..operation("nobody's")
    };
    let results = at_once([
        ledger.set_device(settings(PHONE, Some("other")), nameless),
        // An alias is not empty.
        ledger.set_device(settings(OTHER, Some("")), operation("empty")),
    ])
    .await;
    assert!(
        matches!(
            &results[..],
            [
                Err(LedgerError::Rejected { .. }),
                Err(LedgerError::Rejected { .. })
            ]
        ),
        "{results:?}"
    );
    assert_eq!(ledger.device_settings().await.unwrap(), [kept]);
    assert_eq!(operations(&ledger).await, ["first"]);
    ledger.close().await;
}

#[tokio::test]
async fn a_refused_alias_costs_its_neighbours_in_the_batch_nothing() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger
        .set_device(settings(PHONE, Some("front")), operation("first"))
        .await
        .unwrap();
    let (intended, refused, recorded) = tokio::join!(
        ledger.intend(tap("a")),
        ledger.set_device(settings(OTHER, Some("front")), operation("second")),
        ledger.record(record("b")),
    );
    assert!(intended.is_ok() && recorded.is_ok());
    assert!(
        matches!(refused, Err(LedgerError::AliasTaken { .. })),
        "{refused:?}"
    );
    ledger.close().await;
}

#[tokio::test]
async fn an_operation_is_an_event_like_any_other() {
    let place = Place::new();
    let ledger = place.open().await;
    let now = ledger.now().await.unwrap();
    ledger
        .set_device(settings(PHONE, None), operation("cordon_device"))
        .await
        .unwrap();
    let page = ledger.tail(now, 0).await.unwrap();
    let kinds: Vec<EventKind> = page.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::Operation]);
    ledger.close().await;
}

#[tokio::test]
async fn the_schema_keeps_what_nobody_could_read_out() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger
        .set_device(settings(PHONE, Some("front")), operation("first"))
        .await
        .unwrap();
    let mut plain = place.plain().await;
    for statement in [
        "UPDATE device_settings SET cordon_reason = NULL",
        "UPDATE device_settings SET cordon_who = NULL",
        "UPDATE device_settings SET cordon_since_us = NULL",
        "UPDATE device_settings SET quarantine_reason = NULL",
        "UPDATE device_settings SET labels = '[]'",
        "INSERT INTO device_settings (device, alias, labels) VALUES ('x', 'front', '{}')",
    ] {
        let refused = sqlx::query(statement).execute(&mut plain).await;
        assert!(refused.is_err(), "{statement}");
    }
    run(
        &mut plain,
        "UPDATE device_settings SET labels = '{\"a\":1}'",
    )
    .await;
    assert_eq!(
        count(&mut plain, "SELECT count(*) FROM device_settings").await,
        1
    );
    plain.close().await.unwrap();
    match ledger.device_settings().await {
        Err(LedgerError::UnreadableSettings { device, .. }) => assert_eq!(device, PHONE),
        other => panic!("{other:?}"),
    }
    ledger.close().await;
}
