//! Leases that have ended go; open ones, and the last epoch, stay.

use std::time::{Duration, SystemTime};

use fleetgate_ledger::{
    LeaseRow, Ledger, LedgerConfig, LedgerError, NewLeaseWrite, OperationQuery, RetentionConfig,
    verify,
};
use sqlx::Connection;

use crate::support::{
    Place, at_once, count, ended, granted, lease, operation, record, rows, run, until,
};

async fn open_with(place: &Place, retention: RetentionConfig) -> Ledger {
    Ledger::open(LedgerConfig {
        retention,
        ..place.config()
    })
    .await
    .unwrap()
}

fn kept_for(age: Duration) -> RetentionConfig {
    RetentionConfig {
        max_age: Some(age),
        interval: Duration::from_millis(1),
        ..RetentionConfig::default()
    }
}

/// It ended that long ago.
fn over(id: &str, ago: Duration) -> LeaseRow {
    LeaseRow {
        ended: Some(SystemTime::now() - ago),
        ..ended(lease(id), 0)
    }
}

async fn left(ledger: &Ledger) -> Vec<String> {
    let page = ledger.leases(fleetgate_ledger::LeaseQuery::default()).await;
    let leases = page.unwrap().leases.into_iter();
    leases.map(|lease| lease.id).collect()
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn those_that_ended_long_ago_go_and_no_others() {
    let place = Place::new();
    let ledger = place.open().await;
    let begun_long_ago = lease("waits");
    ledger
        .write_leases(NewLeaseWrite {
            clock: HOUR,
            ..rows([
                over("old", 2 * HOUR),
                begun_long_ago.clone(),
                granted("held", 8),
                LeaseRow {
                    epoch: Some(9),
                    request_id: Some("r".to_owned()),
                    devices: granted("older", 9).devices,
                    ..over("older", 3 * HOUR)
                },
                over("new", HOUR / 2),
                // Draining: it has ended for its owner, and not for its phones.
                LeaseRow {
                    ended: Some(SystemTime::now() - 3 * HOUR),
                    ..lease("drains")
                },
            ])
        })
        .await
        .unwrap();
    ledger.close().await;

    let ledger = open_with(&place, kept_for(HOUR)).await;
    until(|| ledger.stats().leases_pruned == 2).await;
    assert_eq!(left(&ledger).await, ["drains", "new", "held", "waits"]);
    let clock = ledger.lease_clock().await.unwrap();
    assert_eq!((clock.clock, clock.last_epoch), (HOUR, 9));
    let mut plain = place.plain().await;
    let listed = "SELECT count(*) FROM lease_devices";
    assert_eq!(count(&mut plain, listed).await, 2);
    plain.close().await.unwrap();

    // The epoch of a lease that is gone is not given again; its request may be.
    let again = ledger.write_leases(rows([granted("again", 9)])).await;
    assert!(
        matches!(again, Err(LedgerError::EpochTaken { epoch: 9, .. })),
        "{again:?}"
    );
    let same = LeaseRow {
        request_id: Some("r".to_owned()),
        ..granted("same", 10)
    };
    ledger.write_leases(rows([same])).await.unwrap();
    ledger.close().await;
    let ledger = place.open().await;
    assert_eq!(ledger.lease_clock().await.unwrap().last_epoch, 10);
    let ids: Vec<String> = (ledger.open_leases().await.unwrap().into_iter())
        .map(|lease| lease.id)
        .collect();
    assert_eq!(ids, ["waits", "held", "drains", "same"]);
    ledger.close().await;
    assert!(verify(&place.path(), None).await.unwrap().is_intact());
}

#[tokio::test]
async fn that_leases_were_removed_is_on_record_also_if_nothing_else_was() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(crate::support::tap("open")).await.unwrap();
    let old: Vec<LeaseRow> = (0..3000)
        .map(|n| over(&format!("l{n}"), 2 * HOUR))
        .collect();
    ledger.write_leases(rows(old)).await.unwrap();
    ledger.close().await;
    let ledger = open_with(&place, kept_for(HOUR)).await;
    let notes = OperationQuery {
        what: Some("prune".to_owned()),
        ..OperationQuery::default()
    };
    let mut news = ledger.watch();
    let note = loop {
        let page = ledger.operations(notes.clone()).await.unwrap();
        if let Some(note) = page.operations.into_iter().next() {
            break note.operation;
        }
        news.changed().await.unwrap();
    };
    assert_eq!((note.who.as_str(), note.target), ("ledger", None));
    assert_eq!(note.detail["leases"], 3000);
    assert_eq!(note.detail["commands"], 0);
    assert_eq!(ledger.stats().leases_pruned, 3000);
    assert_eq!(left(&ledger).await, [""; 0]);
    ledger.close().await;
    let report = verify(&place.path(), None).await.unwrap();
    assert_eq!((report.first_break, report.checkpoint), (None, None));
}

#[tokio::test]
async fn what_is_kept_for_ever_is_kept() {
    let place = Place::new();
    let ledger = open_with(&place, kept_for(10 * HOUR)).await;
    ledger
        .write_leases(rows([over("old", 2 * HOUR)]))
        .await
        .unwrap();
    for n in 0..5 {
        ledger.record(record(&format!("c{n}"))).await.unwrap();
    }
    assert_eq!(left(&ledger).await, ["old"]);
    ledger.close().await;
}

/// Where there is too much, those go that ended before the newest of what went.
#[tokio::test]
async fn where_there_is_too_much_the_oldest_ended_ones_go_with_what_is_recorded_of_them() {
    const MOST: u64 = 400_000;
    let place = Place::new();
    let ledger = place.open().await;
    let old: Vec<LeaseRow> = (0..2000).map(|n| over(&format!("l{n}"), HOUR)).collect();
    let operations = (0..2000).map(|_| operation("end-lease")).collect();
    ledger
        .write_leases(NewLeaseWrite {
            operations,
            ..rows(old)
        })
        .await
        .unwrap();
    let ids: Vec<String> = (0..500).map(|n| format!("c{n}")).collect();
    at_once(ids.iter().map(|id| ledger.record(record(id)))).await;
    let later = LeaseRow {
        ended: Some(SystemTime::now() + HOUR),
        ..over("later", HOUR)
    };
    ledger
        .write_leases(NewLeaseWrite {
            operations: vec![operation("end-lease")],
            ..rows([granted("held", 1), later])
        })
        .await
        .unwrap();
    ledger.close().await;
    let full = std::fs::metadata(place.path()).unwrap().len();
    assert!(full > 2 * MOST, "{full}");

    let ledger = open_with(
        &place,
        RetentionConfig {
            max_bytes: Some(MOST),
            max_age: None,
            interval: Duration::from_millis(1),
        },
    )
    .await;
    until(|| ledger.stats().leases_pruned == 2000).await;
    assert_eq!(left(&ledger).await, ["later", "held"]);
    ledger.close().await;
    assert_eq!(verify(&place.path(), None).await.unwrap().first_break, None);
}

#[tokio::test]
async fn a_ledger_that_was_tampered_with_keeps_its_leases_too() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.operation(operation("end-lease")).await.unwrap();
    ledger
        .write_leases(rows([over("old", 2 * HOUR)]))
        .await
        .unwrap();
    ledger.close().await;
    let mut plain = place.plain().await;
    run(&mut plain, "DROP TRIGGER operations_are_never_changed").await;
    run(&mut plain, "UPDATE operations SET who = 'mallory'").await;
    plain.close().await.unwrap();
    let ledger = open_with(&place, kept_for(Duration::ZERO)).await;
    for n in 0..5 {
        ledger.record(record(&format!("c{n}"))).await.unwrap();
    }
    assert_eq!(left(&ledger).await, ["old"]);
    assert_eq!(ledger.stats().leases_pruned, 0);
    ledger.close().await;
}
