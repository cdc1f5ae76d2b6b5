//! Leases as they are written, and what comes of it.

use std::time::Duration;

use fleetgate_ledger::{
    DeviceSettings, LeaseClock, LeaseRow, Ledger, LedgerError, NewLeaseWrite, NewOperation,
    OperationQuery,
};
use sqlx::AssertSqlSafe;

use crate::support::{
    OTHER, PHONE, Place, at_once, ended, granted, lease, operation, rows, run, settings, tap,
};

pub(crate) fn requested(id: &str, owner: &str, request: &str) -> LeaseRow {
    LeaseRow {
        owner: owner.to_owned(),
        request_id: Some(request.to_owned()),
        ..lease(id)
    }
}

pub(crate) async fn write(ledger: &Ledger, lease: LeaseRow) -> Result<(), LedgerError> {
    ledger.write_leases(rows([lease])).await
}

pub(crate) async fn whats(ledger: &Ledger) -> Vec<String> {
    let page = ledger.operations(OperationQuery::default()).await.unwrap();
    let whats = page.operations.into_iter().map(|row| row.operation.what);
    whats.rev().collect()
}

#[tokio::test]
async fn they_are_written_as_they_are_now_and_read_back_after_a_reopening() {
    let place = Place::new();
    let ledger = place.open().await;
    assert_eq!(ledger.open_leases().await.unwrap(), []);
    assert_eq!(ledger.lease("a").await.unwrap(), None);
    let a = requested("a", "token:ci", "build-7");
    ledger
        .write_leases(rows([a.clone(), lease("b"), lease("c")]))
        .await
        .unwrap();
    assert_eq!(
        ledger.open_leases().await.unwrap(),
        [a, lease("b"), lease("c")]
    );
    let b = granted("b", 1);
    let c = ended(lease("c"), 5);
    ledger
        .write_leases(rows([b.clone(), c.clone()]))
        .await
        .unwrap();
    ledger.close().await;

    let ledger = place.open().await;
    let a = requested("a", "token:ci", "build-7");
    assert_eq!(ledger.open_leases().await.unwrap(), [a.clone(), b.clone()]);
    assert_eq!(ledger.lease("b").await.unwrap(), Some(b));
    assert_eq!(ledger.lease("c").await.unwrap(), Some(c));
    let by_request = async |owner, request| ledger.lease_by_request(owner, request).await.unwrap();
    assert_eq!(by_request("token:ci", "build-7").await, Some(a));
    assert_eq!(by_request("token:ci", "build-8").await, None);
    assert_eq!(by_request("oidc:ada", "build-7").await, None);
    ledger.close().await;
}

#[tokio::test]
async fn leases_operations_and_the_clock_are_one_commit() {
    let place = Place::new();
    let ledger = place.open().await;
    let nothing_yet = LeaseClock {
        clock: Duration::ZERO,
        last_epoch: 0,
    };
    assert_eq!(ledger.lease_clock().await.unwrap(), nothing_yet);
    let before = ledger.stats().commits;
    let clock = Duration::from_micros(1_234_567);
    ledger
        .write_leases(NewLeaseWrite {
            rows: vec![granted("a", 1), lease("b")],
            operations: vec![operation("create-lease"), operation("grant-lease")],
            clock: clock + Duration::from_nanos(999),
        })
        .await
        .unwrap();
    assert_eq!(ledger.stats().commits, before + 1);
    assert_eq!(whats(&ledger).await, ["create-lease", "grant-lease"]);
    let clock = LeaseClock {
        clock,
        last_epoch: 1,
    };
    assert_eq!(ledger.lease_clock().await.unwrap(), clock);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
    let ledger = place.open().await;
    assert_eq!(ledger.lease_clock().await.unwrap(), clock);
    ledger.close().await;
}

#[tokio::test]
async fn of_a_write_that_is_refused_nothing_is_there() {
    let place = Place::new();
    let ledger = place.open().await;
    let nameless = NewOperation {
        who: String::new(),
        ..operation("nobody's")
    };
    let clock = Duration::from_secs(9);
    let unended = LeaseRow {
        ended: None,
        ..ended(lease("x"), 1)
    };
    let no_object = LeaseRow {
        body: "[]".to_owned(),
        ..lease("x")
    };
    let no_json = LeaseRow {
        body: "{".to_owned(),
        ..lease("x")
    };
    let epochless = LeaseRow {
        epoch: Some(0),
        ..lease("x")
    };
    let wrong = [
        (granted("a", 1), nameless),
        (unended, operation("end-lease")),
        (no_object, operation("create-lease")),
        (no_json, operation("create-lease")),
        (epochless, operation("grant-lease")),
        (lease(""), operation("create-lease")),
    ];
    let wrong = wrong.map(|(row, operation)| {
        ledger.write_leases(NewLeaseWrite {
            rows: vec![lease("a"), row],
            operations: vec![operation],
            clock,
        })
    });
    let (refused, written) = tokio::join!(at_once(wrong), ledger.intend(tap("neighbour")));
    written.unwrap();
    for refused in refused {
        assert!(
            matches!(
                refused,
                Err(LedgerError::Rejected { .. } | LedgerError::EpochTaken { epoch: 0, .. })
            ),
            "{refused:?}"
        );
    }
    assert_eq!(ledger.open_leases().await.unwrap(), []);
    assert_eq!(whats(&ledger).await, [""; 0]);
    assert_eq!(ledger.lease_clock().await.unwrap().clock, Duration::ZERO);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn the_clock_never_goes_back_and_is_no_news() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut news = ledger.watch();
    news.mark_unchanged();
    let at = |seconds| NewLeaseWrite {
        clock: Duration::from_secs(seconds),
        ..NewLeaseWrite::default()
    };
    for (written, expected) in [(5, 5), (3, 5), (0, 5), (6, 6)] {
        ledger.write_leases(at(written)).await.unwrap();
        let clock = ledger.lease_clock().await.unwrap();
        assert_eq!(clock.clock, Duration::from_secs(expected));
    }
    at_once([9, 7, 8].map(|seconds| ledger.write_leases(at(seconds)))).await;
    let clock = ledger.lease_clock().await.unwrap();
    assert_eq!((clock.clock, clock.last_epoch), (Duration::from_secs(9), 0));
    assert!(!news.has_changed().unwrap());
    assert_eq!(ledger.verify(None).await.unwrap().events, 1);
    ledger.operation(operation("news")).await.unwrap();
    assert!(news.has_changed().unwrap());
    ledger.close().await;
}

/// A batch with an entry that must be judged writes leases all the same.
#[tokio::test]
async fn leases_are_written_beside_entries_that_are_refused() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("taken")).await.unwrap();
    ledger
        .set_device(settings(PHONE, Some("front")), operation("first"))
        .await
        .unwrap();
    let theirs: DeviceSettings = settings(OTHER, Some("front"));
    let (duplicate, alias, made, refused, again) = tokio::join!(
        ledger.intend(tap("taken")),
        ledger.set_device(theirs, operation("second")),
        write(&ledger, granted("a", 1)),
        write(&ledger, granted("b", 1)),
        write(&ledger, ended(granted("a", 1), 4)),
    );
    assert!(matches!(duplicate, Err(LedgerError::Duplicate { .. })));
    assert!(matches!(alias, Err(LedgerError::AliasTaken { .. })));
    made.unwrap();
    assert!(
        matches!(refused, Err(LedgerError::EpochTaken { .. })),
        "{refused:?}"
    );
    again.unwrap();
    let written = ledger.lease("a").await.unwrap();
    assert_eq!(written, Some(ended(granted("a", 1), 4)));
    assert_eq!(ledger.lease("b").await.unwrap(), None);
    ledger.close().await;
}

#[tokio::test]
async fn the_schema_keeps_what_leases_rely_on() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger
        .write_leases(NewLeaseWrite {
            clock: Duration::from_secs(5),
            ..rows([granted("a", 3), lease("b")])
        })
        .await
        .unwrap();
    let mut plain = place.plain().await;
    for statement in [
        "DELETE FROM leases",
        "UPDATE leases SET is_open = 0",
        "UPDATE leases SET is_open = 2, ended_us = 1",
        "UPDATE leases SET epoch = 3",
        "UPDATE leases SET epoch = 0 WHERE lease_id = 'b'",
        "UPDATE leases SET devices = '{}'",
        "UPDATE leases SET body = 'nothing'",
        "UPDATE leases SET request_id = ''",
        "UPDATE leases SET owner = 'x', request_id = 'r'",
        "UPDATE lease_clock SET clock_us = clock_us - 1",
        "UPDATE lease_clock SET last_epoch = 2",
        "DELETE FROM lease_clock",
        "INSERT INTO lease_clock VALUES (2, 0, 0)",
    ] {
        let refused = sqlx::query(AssertSqlSafe(statement))
            .execute(&mut plain)
            .await;
        assert!(refused.is_err(), "{statement}");
    }
    // What has ended may be removed by hand.
    run(
        &mut plain,
        "UPDATE leases SET is_open = 0, ended_us = 1 WHERE lease_id = 'a'",
    )
    .await;
    run(&mut plain, "DELETE FROM leases WHERE lease_id = 'a'").await;
    assert_eq!(ledger.open_leases().await.unwrap(), [lease("b")]);
    ledger.close().await;
}

#[tokio::test]
async fn a_lease_that_cannot_be_read_is_named() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger
        .write_leases(rows([lease("a"), lease("b")]))
        .await
        .unwrap();
    let mut plain = place.plain().await;
    run(
        &mut plain,
        "UPDATE leases SET devices = '[\"\"]' WHERE lease_id = 'b'",
    )
    .await;
    assert!(ledger.lease("a").await.is_ok());
    for unreadable in [
        ledger.lease("b").await.err(),
        ledger.open_leases().await.err(),
    ] {
        assert!(
            matches!(&unreadable, Some(LedgerError::UnreadableLease { lease, .. }) if lease == "b"),
            "{unreadable:?}"
        );
    }
    ledger.close().await;
}
