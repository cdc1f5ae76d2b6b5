//! Tampering shows.

use fleetgate_ledger::{
    EventKind, Fault, Head, LeaseStamp, LedgerError, NewIntent, VerifyReport, verify,
};
use sqlx::{AssertSqlSafe, Connection};

use crate::support::{
    Place, conclude, id, operation, read, record, resolve, run, tap, transition, unknown,
};

/// Every kind of event that entries make. In the order of the chain: 1 opened,
/// 2 intended a, 3 concluded a, 4 intended b, 5 concluded b, 6 resolved b,
/// 7 recorded r, 8 repeated r, 9 operation, 10 transition, 11 intended c.
async fn eventful(place: &Place) {
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger.conclude(conclude("a")).await.unwrap();
    ledger.intend(tap("b")).await.unwrap();
    let mut fate = conclude("b");
    fate.outcome = unknown();
    ledger.conclude(fate).await.unwrap();
    ledger
        .resolve(resolve("b", conclude("b").outcome))
        .await
        .unwrap();
    ledger.record(read("r")).await.unwrap();
    ledger.record(read("r")).await.unwrap();
    ledger.operation(operation("cordon")).await.unwrap();
    ledger.transition(transition("RUNNER_READY")).await.unwrap();
    ledger
        .intend(NewIntent {
            principal: Some("token:ci".to_owned()),
            lease: Some(LeaseStamp {
                id: "lease-1".to_owned(),
                epoch: 7,
            }),
            ..tap("c")
        })
        .await
        .unwrap();
    ledger.close().await;
}

async fn check(place: &Place, known: Option<Head>) -> VerifyReport {
    verify(&place.path(), known).await.unwrap()
}

/// Changes the file as somebody would who knows it.
async fn tamper(place: &Place, statements: &str) {
    let mut plain = place.plain().await;
    run(&mut plain, "PRAGMA foreign_keys = OFF").await;
    for trigger in [
        "commands",
        "fates",
        "operations",
        "device_transitions",
        "checkpoints",
    ] {
        let drop = AssertSqlSafe(format!("DROP TRIGGER {trigger}_are_never_changed"));
        sqlx::query(drop).execute(&mut plain).await.unwrap();
    }
    for trigger in ["chain", "identity"] {
        let drop = AssertSqlSafe(format!("DROP TRIGGER {trigger}_is_never_changed"));
        sqlx::query(drop).execute(&mut plain).await.unwrap();
    }
    sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
        .execute(&mut plain)
        .await
        .unwrap();
    plain.close().await.unwrap();
}

#[tokio::test]
async fn a_ledger_that_nobody_touched_is_intact_open_or_closed() {
    let place = Place::new();
    eventful(&place).await;
    let report = check(&place, None).await;
    assert_eq!(report.first_break, None);
    assert_eq!((report.events, report.commands), (11, 4));
    assert_eq!(report.head.seq, 11);
    assert!(!report.known_compared);

    let ledger = place.open().await;
    ledger.record(record("d")).await.unwrap();
    let later = ledger.verify(Some(report.head)).await.unwrap();
    assert!(later.is_intact() && later.known_compared, "{later:?}");
    assert_eq!(later.head.seq, 12);
    assert_eq!(later.ledger_id, report.ledger_id);
    ledger.close().await;
}

#[tokio::test]
async fn a_new_ledger_has_one_link_and_an_identity_of_its_own() {
    let (one, other) = (Place::new(), Place::new());
    for place in [&one, &other] {
        place.open().await.close().await;
    }
    let (one, other) = (check(&one, None).await, check(&other, None).await);
    assert_eq!((one.events, other.events), (1, 1));
    assert_ne!(one.ledger_id, other.ledger_id);
    assert_ne!(one.head, other.head);
}

/// Ways to tamper with what [`eventful`] made, each with where it shows and how.
#[expect(clippy::too_many_lines, reason = "a table")]
fn ways() -> Vec<(&'static str, (i64, Fault))> {
    use EventKind::{Concluded, Intended, Opened, Operation, Recorded, Resolved, Transition};

    let changed = |seq, kind| (seq, Fault::Changed { kind });
    let outside = |table, row| (12, Fault::Outside { table, row });
    vec![
        // Changed rows.
        (
            "UPDATE commands SET caller = 'mallory' WHERE command_id = 'a'",
            changed(2, Intended),
        ),
        (
            "UPDATE commands SET parameters = '{ }' WHERE command_id = 'c'",
            changed(11, Intended),
        ),
        (
            "UPDATE commands SET principal = 'token:eve' WHERE command_id = 'c'",
            changed(11, Intended),
        ),
        (
            "UPDATE commands SET lease_epoch = 8 WHERE command_id = 'c'",
            changed(11, Intended),
        ),
        (
            "UPDATE commands SET principal = NULL, lease_id = NULL, lease_epoch = NULL",
            changed(11, Intended),
        ),
        (
            "UPDATE commands SET principal = 'token:ci' WHERE command_id = 'r'",
            changed(7, Recorded),
        ),
        (
            "UPDATE commands SET asked = NULL WHERE command_id = 'r'",
            changed(7, Recorded),
        ),
        (
            "UPDATE fates SET fate = 'NOT_SENT' WHERE seq = 1",
            changed(3, Concluded),
        ),
        (
            "UPDATE fates SET message = '' WHERE seq = 1",
            changed(3, Concluded),
        ),
        (
            "UPDATE fates SET final = 1 WHERE revision = 1 AND fate = 'COMPLETED' AND why IS NOT NULL",
            changed(6, Resolved),
        ),
        (
            "UPDATE fates SET command_seq = 4 WHERE seq = 1",
            changed(3, Concluded),
        ),
        ("UPDATE operations SET who = 'eve'", changed(9, Operation)),
        (
            "UPDATE device_transitions SET to_state = 'WEDGED'",
            changed(10, Transition),
        ),
        (
            "UPDATE device_transitions SET detail = NULL",
            changed(10, Transition),
        ),
        (
            "UPDATE device_transitions SET device = '00008020-00060D691AD8003A'",
            changed(10, Transition),
        ),
        (
            "UPDATE device_transitions SET at_us = at_us + 1",
            changed(10, Transition),
        ),
        (
            "UPDATE identity SET created_us = created_us + 1",
            changed(1, Opened),
        ),
        // Changed links.
        (
            "UPDATE chain SET at_us = at_us + 1 WHERE seq = 4",
            changed(4, Intended),
        ),
        (
            "UPDATE chain SET kind = 'concluded' WHERE seq = 6",
            changed(6, Concluded),
        ),
        (
            "UPDATE chain SET hash = zeroblob(32) WHERE seq = 9",
            changed(9, Operation),
        ),
        (
            "UPDATE chain SET kind = 'forgotten' WHERE seq = 6",
            (
                6,
                Fault::UnknownKind {
                    kind: "forgotten".to_owned(),
                },
            ),
        ),
        // Removed rows.
        (
            "DELETE FROM fates WHERE command_seq = 1; DELETE FROM commands WHERE seq = 1",
            (2, Fault::Unbound { kind: Intended }),
        ),
        (
            "DELETE FROM fates WHERE seq = 3",
            (6, Fault::Unbound { kind: Resolved }),
        ),
        (
            "DELETE FROM device_transitions",
            (10, Fault::Unbound { kind: Transition }),
        ),
        (
            "UPDATE device_transitions SET seq = 20",
            (10, Fault::Unbound { kind: Transition }),
        ),
        ("DELETE FROM chain WHERE seq = 5", (5, Fault::Missing)),
        (
            "DELETE FROM device_transitions; DELETE FROM chain WHERE seq = 10",
            (10, Fault::Missing),
        ),
        ("DELETE FROM chain WHERE seq = 1", (2, Fault::NoBeginning)),
        ("DELETE FROM chain", (1, Fault::NoBeginning)),
        // The links of a removed command closed up.
        (
            "DELETE FROM fates WHERE command_seq = 1; DELETE FROM commands WHERE seq = 1; \
             DELETE FROM chain WHERE seq IN (2, 3); UPDATE chain SET seq = seq - 2 WHERE seq > 3",
            changed(2, Intended),
        ),
        // Reordered rows.
        (
            "UPDATE chain SET seq = 100 WHERE seq = 2; UPDATE chain SET seq = 2 WHERE seq = 4; \
             UPDATE chain SET seq = 4 WHERE seq = 100",
            changed(2, Intended),
        ),
        (
            "UPDATE commands SET seq = 100 WHERE seq = 1; UPDATE commands SET seq = 1 WHERE seq = 2; \
             UPDATE commands SET seq = 2 WHERE seq = 100",
            changed(2, Intended),
        ),
        // Inserted rows.
        (
            "INSERT INTO commands (command_id, device, kind, mutation, parameters, created_us) \
             VALUES ('z', 'x', 'tap', 1, '{}', 0)",
            outside("commands", 5),
        ),
        (
            "INSERT INTO fates SELECT 77, 4, 0, fate, effect, reason, message, warning, reactivated, attempts, \
             recovered, queue_wait_us, device_time_us, concluded_us, reply, reply_bytes, hint, why, final \
             FROM fates WHERE seq = 1",
            outside("fates", 77),
        ),
        (
            "INSERT INTO operations (who, what, detail, at_us) VALUES ('eve', 'nothing', '{}', 0)",
            outside("operations", 2),
        ),
        (
            "INSERT INTO device_transitions SELECT 12, device, from_state, to_state, reason, detail, at_us \
             FROM device_transitions",
            outside("device_transitions", 12),
        ),
        (
            "INSERT INTO device_transitions SELECT 3, device, from_state, to_state, reason, detail, at_us \
             FROM device_transitions",
            outside("device_transitions", 3),
        ),
        // The link of a transition told a second time.
        (
            "INSERT INTO chain SELECT 12, kind, reference, at_us, hash FROM chain WHERE seq = 10",
            changed(12, Transition),
        ),
        (
            "INSERT INTO chain SELECT 12, kind, reference, at_us, hash FROM chain WHERE seq = 11",
            changed(12, Intended),
        ),
        // The end cut off, and what it bound left behind.
        (
            "DELETE FROM chain WHERE seq > 8",
            (
                9,
                Fault::Outside {
                    table: "commands",
                    row: 4,
                },
            ),
        ),
    ]
}

#[tokio::test]
async fn each_way_to_tamper_shows_where_it_was_done() {
    for (statements, (seq, what)) in ways() {
        let place = Place::new();
        eventful(&place).await;
        tamper(&place, statements).await;
        let found = check(&place, None).await.first_break;
        let found = found.unwrap_or_else(|| panic!("unseen: {statements}"));
        assert_eq!((found.seq, &found.what), (seq, &what), "{statements}");
        assert!(!found.to_string().is_empty());
    }
}

/// Cut cleanly, a shorter ledger is a ledger: what is missing only shows
/// against what was known of it.
#[tokio::test]
async fn a_chain_that_was_cut_off_cleanly_shows_to_whoever_kept_its_head() {
    let place = Place::new();
    eventful(&place).await;
    let known = check(&place, None).await.head;
    tamper(
        &place,
        "DELETE FROM chain WHERE seq > 8; DELETE FROM operations; DELETE FROM device_transitions; \
         DELETE FROM commands WHERE command_id = 'c'",
    )
    .await;
    assert_eq!(check(&place, None).await.first_break, None);
    let found = check(&place, Some(known)).await.first_break.unwrap();
    assert_eq!((found.seq, found.what), (9, Fault::CutOff { known }));
}

#[tokio::test]
async fn a_ledger_that_was_put_in_the_place_of_another_shows_to_whoever_kept_its_head() {
    let (place, other) = (Place::new(), Place::new());
    for place in [&place, &other] {
        eventful(place).await;
    }
    let known = check(&other, None).await.head;
    let report = check(&place, Some(known)).await;
    assert_eq!(report.first_break.unwrap().what, Fault::Rewritten { known });
}

#[tokio::test]
async fn a_long_chain_is_walked_beside_the_writer() {
    let place = Place::new();
    let ledger = place.open().await;
    let ids: Vec<String> = (0..3000).map(|n| format!("c{n}")).collect();
    futures_util::future::join_all(ids.iter().map(|id| ledger.intend(tap(id)))).await;
    let writing = async {
        for n in 0..200 {
            ledger.conclude(conclude(&format!("c{n}"))).await.unwrap();
        }
    };
    let ((), report) = tokio::join!(writing, ledger.verify(None));
    let report = report.unwrap();
    assert_eq!(report.first_break, None);
    assert!((3001..=3201).contains(&report.events), "{report:?}");
    ledger.close().await;
}

#[tokio::test]
async fn a_ledger_that_lost_its_chain_is_not_opened_and_kept_as_it_is() {
    let place = Place::new();
    eventful(&place).await;
    tamper(&place, "DELETE FROM chain").await;
    let refused = fleetgate_ledger::Ledger::open(place.config()).await;
    assert!(
        matches!(refused, Err(LedgerError::BrokenChain { .. })),
        "{refused:?}"
    );
    let mut plain = place.plain().await;
    let kept: Option<String> =
        sqlx::query_scalar("SELECT command_id FROM commands WHERE command_id = 'a'")
            .fetch_optional(&mut plain)
            .await
            .unwrap();
    assert_eq!(kept, Some(id("a").to_string()));
}

#[tokio::test]
async fn what_is_no_ledger_is_not_verified() {
    let place = Place::new();
    let missing = verify(&place.path(), None).await;
    assert!(
        matches!(missing, Err(LedgerError::File { .. })),
        "{missing:?}"
    );
    run(&mut place.plain().await, "CREATE TABLE songs (title TEXT)").await;
    let foreign = verify(&place.path(), None).await;
    assert!(
        matches!(foreign, Err(LedgerError::Foreign { .. })),
        "{foreign:?}"
    );
}
