//! Ledgers of the third version, which knew neither principals nor leases.

use fleetgate_ledger::{
    EventKind, Fault, Head, LeaseClock, LeaseRow, LeaseStamp, LedgerError, NewIntent,
    NewLeaseWrite, OperationQuery, verify,
};
use sqlx::Connection;
use sqlx::sqlite::SqliteAutoVacuum;

use crate::support::{
    PHONE, Place, completed, conclude, granted, id, operation, read, resolve, rows, run, tap,
};
use crate::upgrade::{assert_as_migrated, marked};

/// As a gateway of the third version left it; written down by sqlite3.
const THIRD: &str = include_str!("versions/3.sql");

/// Its last link.
const LAST: (i64, &str) = (
    25,
    "81487885116236f0703729670896409a4572618cc4683ca5831ae0f8797e4ef9",
);

async fn third_version(place: &Place) {
    let pool = marked(place, SqliteAutoVacuum::Incremental).await;
    sqlx::raw_sql(THIRD).execute(&pool).await.unwrap();
    pool.close().await;
}

fn last() -> Head {
    Head {
        seq: LAST.0,
        hash: LAST.1.parse().unwrap(),
    }
}

fn leased(command_id: &str) -> NewIntent {
    NewIntent {
        principal: Some("token:ci".to_owned()),
        lease: Some(LeaseStamp {
            id: "l1".to_owned(),
            epoch: 1,
        }),
        ..tap(command_id)
    }
}

#[tokio::test]
async fn what_the_third_version_wrote_is_as_its_migrations_made_it() {
    let written = Place::new();
    third_version(&written).await;
    assert_as_migrated(&written, 3).await;
}

#[tokio::test]
async fn its_chain_holds_as_it_is_and_goes_on_with_principals_and_leases() {
    let place = Place::new();
    third_version(&place).await;
    let older = verify(&place.path(), None).await;
    assert!(
        matches!(
            older,
            Err(LedgerError::OlderSchema {
                found: 3,
                known: 4,
                ..
            })
        ),
        "{older:?}"
    );

    let ledger = place.open().await;
    let report = ledger.verify(Some(last())).await.unwrap();
    assert_eq!(report.first_break, None);
    assert!(report.known_compared);
    assert_eq!(
        (report.head, report.events, report.commands),
        (last(), 16, 6)
    );
    assert_eq!(report.checkpoint.unwrap().commands_pruned, 4);
    let row = ledger.command(&id("a")).await.unwrap().unwrap();
    assert_eq!((row.principal, row.lease), (None, None));
    assert_eq!(row.caller.as_deref(), Some("127.0.0.1:47348"));
    let settings = ledger.device_settings().await.unwrap();
    assert_eq!(settings[0].alias.as_deref(), Some("front desk"));
    let done = ledger.operations(OperationQuery::default()).await.unwrap();
    let whats: Vec<&str> = done
        .operations
        .iter()
        .map(|row| row.operation.what.as_str())
        .collect();
    assert_eq!(whats, ["launch-runner", "cordon-device", "prune"]);
    assert_eq!(ledger.open_leases().await.unwrap(), []);
    let clock = ledger.lease_clock().await.unwrap();
    let nothing_yet = LeaseClock {
        clock: std::time::Duration::ZERO,
        last_epoch: 0,
    };
    assert_eq!(clock, nothing_yet);

    ledger
        .write_leases(NewLeaseWrite {
            operations: vec![operation("grant-lease")],
            ..rows([granted("l1", 1)])
        })
        .await
        .unwrap();
    ledger.intend(leased("leased")).await.unwrap();
    ledger.conclude(conclude("leased")).await.unwrap();
    ledger.intend(tap("unleased")).await.unwrap();
    ledger.close().await;

    let ledger = place.open().await;
    let row = ledger.command(&id("leased")).await.unwrap().unwrap();
    assert_eq!(row.principal, leased("any").principal);
    assert_eq!(row.lease, leased("any").lease);
    assert_eq!(ledger.lease("l1").await.unwrap(), Some(granted("l1", 1)));
    let report = ledger.verify(Some(last())).await.unwrap();
    assert!(report.is_intact() && report.known_compared, "{report:?}");
    assert_eq!((report.events, report.commands), (20, 8));
    ledger.close().await;
}

#[tokio::test]
async fn what_it_left_open_can_be_settled_and_its_reads_run_again() {
    let place = Place::new();
    third_version(&place).await;
    let ledger = place.open().await;
    let unsettled = ledger.unsettled(None, None).await.unwrap();
    let names: Vec<&str> = (unsettled.iter())
        .map(|row| row.command_id.as_str())
        .collect();
    assert_eq!(names, ["open", "unknown", "newest"]);
    ledger.conclude(conclude("open")).await.unwrap();
    ledger
        .resolve(resolve("unknown", completed()))
        .await
        .unwrap();
    ledger.conclude(conclude("newest")).await.unwrap();
    assert_eq!(ledger.unsettled(None, None).await.unwrap(), []);
    let mut again = read("r");
    again.command.app_bundle_id = Some("com.example.settings".parse().unwrap());
    again.command.principal = Some("token:ci".to_owned());
    ledger.record(again).await.unwrap();
    let phone = PHONE.parse().unwrap();
    let page = ledger.transitions(&phone, 0, None).await.unwrap();
    assert_eq!(page.transitions.len(), 1);
    assert!(ledger.verify(Some(last())).await.unwrap().is_intact());
    ledger.close().await;
}

/// A principal or a lease that is written into what had none shows.
#[tokio::test]
async fn nothing_can_be_added_to_what_it_wrote() {
    for (statement, seq, kind) in [
        (
            "UPDATE commands SET principal = 'token:ci' WHERE command_id = 'a'",
            13,
            EventKind::Intended,
        ),
        (
            "UPDATE commands SET lease_id = 'l', lease_epoch = 1 WHERE command_id = 'r'",
            20,
            EventKind::Recorded,
        ),
        (
            "UPDATE commands SET principal = 'x' WHERE command_id = 'open'",
            10,
            EventKind::Carried,
        ),
    ] {
        let place = Place::new();
        third_version(&place).await;
        place.open().await.close().await;
        let mut plain = place.plain().await;
        run(&mut plain, "DROP TRIGGER commands_are_never_changed").await;
        run(&mut plain, statement).await;
        plain.close().await.unwrap();
        let found = verify(&place.path(), None).await.unwrap().first_break;
        let found = found.map(|it| (it.seq, it.what));
        assert_eq!(found, Some((seq, Fault::Changed { kind })), "{statement}");
    }
}

/// A file that is brought up to date while a lease row is what it can hold.
#[tokio::test]
async fn its_phones_can_be_leased_at_once() {
    let place = Place::new();
    third_version(&place).await;
    let ledger = place.open().await;
    let lease = LeaseRow {
        request_id: Some("r".to_owned()),
        ..granted("l1", 1)
    };
    ledger.write_leases(rows([lease.clone()])).await.unwrap();
    let query = fleetgate_ledger::LeaseQuery {
        device: Some(PHONE.parse().unwrap()),
        ..Default::default()
    };
    assert_eq!(ledger.leases(query).await.unwrap().leases, [lease]);
    ledger.close().await;
}
