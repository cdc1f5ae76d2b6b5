//! What was done other than by commands, looked up.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fleetgate_ledger::{
    Ledger, LedgerError, NewLeaseWrite, NewOperation, OperationQuery, OperationRow, PageToken,
};
use serde_json::json;

use crate::support::{PHONE, Place, at_once, granted, operation, rows, settings};

fn done(who: &str, what: &str, target: Option<&str>) -> NewOperation {
    NewOperation {
        who: who.to_owned(),
        target: target.map(ToOwned::to_owned),
        ..operation(what)
    }
}

async fn whats(ledger: &Ledger, query: OperationQuery) -> Vec<String> {
    let page = ledger.operations(query).await.unwrap();
    let whats = page.operations.into_iter().map(|row| row.operation.what);
    whats.collect()
}

#[tokio::test]
async fn filters_hold_together_and_the_newest_comes_first() {
    let place = Place::new();
    let ledger = place.open().await;
    let tap = "/fleetgate.v1.AutomationService/Tap";
    for operation in [
        done("oidc:eve", "deny-call", Some(tap)),
        done("token:ci", "create-lease", Some("l1")),
        done("token:ci", "deny-call", Some(tap)),
        done("gateway", "expire-lease", Some("l1")),
        done("ledger", "prune", None),
    ] {
        ledger.operation(operation).await.unwrap();
    }
    ledger
        .set_device(settings(PHONE, None), operation("cordon-device"))
        .await
        .unwrap();
    ledger
        .write_leases(NewLeaseWrite {
            operations: vec![done("gateway", "grant-lease", Some("l2"))],
            ..rows([granted("l2", 1)])
        })
        .await
        .unwrap();
    let query = |who: &str, what: &str, target: &str| {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        OperationQuery {
            who: some(who),
            what: some(what),
            target: some(target),
            ..OperationQuery::default()
        }
    };
    for (asked, expected) in [
        (
            query("", "", ""),
            "grant-lease cordon-device prune expire-lease deny-call create-lease deny-call",
        ),
        (query("token:ci", "", ""), "deny-call create-lease"),
        (query("", "deny-call", ""), "deny-call deny-call"),
        (query("", "", "l1"), "expire-lease create-lease"),
        (query("oidc:eve", "deny-call", tap), "deny-call"),
        (query("oidc:eve", "create-lease", ""), ""),
        (query("", "", PHONE), "cordon-device"),
        (query("Token:ci", "", ""), ""),
    ] {
        let found = whats(&ledger, asked.clone()).await;
        assert_eq!(found.join(" "), expected, "{asked:?}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn an_operation_comes_whole_and_with_its_time() {
    let place = Place::new();
    let ledger = place.open().await;
    let written = operation("cordon-device");
    let before = SystemTime::now() - Duration::from_micros(1);
    ledger.operation(written.clone()).await.unwrap();
    let after = SystemTime::now();
    let page = ledger.operations(OperationQuery::default()).await.unwrap();
    let [OperationRow { seq, at, operation }] = &page.operations[..] else {
        panic!("{page:?}")
    };
    assert_eq!(*seq, 1);
    assert!(before < *at && *at <= after);
    assert_eq!(
        (
            &operation.who,
            &operation.what,
            &operation.target,
            &operation.detail
        ),
        (
            &written.who,
            &written.what,
            &written.target,
            &written.detail
        )
    );
    assert_eq!(page.next, None);
    ledger.close().await;
}

#[tokio::test]
async fn those_since_a_time_are_found_although_clocks_step() {
    let place = Place::new();
    place.open().await.close().await;
    let mut plain = place.plain().await;
    for at in [10, 50, 20, 60, 30] {
        sqlx::query("INSERT INTO operations (who, what, detail, at_us) VALUES ('a', ?1, '{}', ?2)")
            .bind(at.to_string())
            .bind(at)
            .execute(&mut plain)
            .await
            .unwrap();
    }
    let ledger = place.open().await;
    for (nanoseconds, expected) in [
        (0, "30 60 20 50 10"),
        (10_000, "30 60 20 50 10"),
        (10_001, "30 60 20 50"),
        (50_000, "60 50"),
        (60_001, ""),
    ] {
        let query = OperationQuery {
            since: Some(UNIX_EPOCH + Duration::from_nanos(nanoseconds)),
            ..OperationQuery::default()
        };
        let found = whats(&ledger, query).await;
        assert_eq!(found.join(" "), expected, "{nanoseconds}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn pages_leave_out_nothing_and_their_tokens_are_for_the_same_filters() {
    let place = Place::new();
    let ledger = place.open().await;
    let names: Vec<String> = (0..5000).map(|n| format!("o{n}")).collect();
    at_once(names.iter().enumerate().map(|(n, name)| {
        let target = if n % 1500 == 7 { "rare" } else { "common" };
        ledger.operation(done("ada", name, Some(target)))
    }))
    .await;
    let rare = OperationQuery {
        target: Some("rare".to_owned()),
        page_size: 3,
        ..OperationQuery::default()
    };
    let first = ledger.operations(rare.clone()).await.unwrap();
    let names: Vec<&str> = first
        .operations
        .iter()
        .map(|row| row.operation.what.as_str())
        .collect();
    assert_eq!(names, ["o4507", "o3007", "o1507"]);
    let token: PageToken = first.next.unwrap().to_string().parse().unwrap();
    let second = OperationQuery {
        page_token: Some(token.clone()),
        page_size: 7,
        ..rare.clone()
    };
    let page = ledger.operations(second).await.unwrap();
    assert_eq!(page.operations[0].operation.what, "o7");
    assert_eq!((page.operations.len(), page.next), (1, None));
    for other in [
        OperationQuery {
            target: Some("common".to_owned()),
            ..rare.clone()
        },
        OperationQuery {
            who: Some("ada".to_owned()),
            ..rare.clone()
        },
        OperationQuery {
            what: Some("o7".to_owned()),
            ..rare.clone()
        },
        OperationQuery {
            since: Some(UNIX_EPOCH),
            ..rare.clone()
        },
    ] {
        let refused = ledger
            .operations(OperationQuery {
                page_token: Some(token.clone()),
                ..other
            })
            .await;
        assert!(
            matches!(refused, Err(LedgerError::PageTokenMismatch)),
            "{refused:?}"
        );
    }
    for (asked, given) in [(0, 100), (9000, 1000)] {
        let query = OperationQuery {
            page_size: asked,
            ..OperationQuery::default()
        };
        let page = ledger.operations(query).await.unwrap();
        assert_eq!(page.operations.len(), given);
    }
    ledger.close().await;
}

#[tokio::test]
async fn typed_text_in_their_details_is_refused_and_named_by_nothing() {
    const CANARY: &str = "hunter2-canary-51c0de";
    let place = Place::new();
    let ledger = place.open().await;
    let mut typed = operation("deny-call");
    typed.detail.insert("text".to_owned(), json!(CANARY));
    let refused = [
        ledger.operation(typed.clone()).await,
        ledger
            .set_device(settings(PHONE, None), typed.clone())
            .await,
        ledger
            .write_leases(NewLeaseWrite {
                operations: vec![operation("create-lease"), typed],
                ..rows([granted("a", 1)])
            })
            .await,
    ];
    for refused in refused {
        let Err(error @ LedgerError::UnredactedOperation { .. }) = refused else {
            panic!("{refused:?}")
        };
        let words = format!("{error} {error:?}");
        assert!(words.contains("deny-call") && !words.contains(CANARY));
        assert!(!error.may_pass());
    }
    assert_eq!(whats(&ledger, OperationQuery::default()).await, [""; 0]);
    assert_eq!(ledger.device_settings().await.unwrap(), []);
    assert_eq!(ledger.open_leases().await.unwrap(), []);
    // Nor does the schema take it from anybody else.
    let mut plain = place.plain().await;
    let refused = sqlx::query(
        "INSERT INTO operations (who, what, detail, at_us) VALUES ('a', 'b', '{\"text\":\"secret\"}', 1)",
    )
    .execute(&mut plain)
    .await;
    assert!(refused.is_err());
    ledger.close().await;
    for bytes in place.files().values() {
        let canary = CANARY.as_bytes();
        assert!(!bytes.windows(canary.len()).any(|window| window == canary));
    }
}
