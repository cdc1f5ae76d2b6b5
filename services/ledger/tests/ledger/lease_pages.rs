//! Leases page by page, and what a page costs.

use std::time::Duration;

use fleetgate_ledger::{LeaseQuery, LeaseRow, Ledger, LedgerError, NewLeaseWrite, PageToken};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::support::{OTHER, PHONE, Place, ended, granted, lease, operation, rows};

async fn all_pages(ledger: &Ledger, query: &LeaseQuery) -> Vec<LeaseRow> {
    let mut leases = Vec::new();
    let mut query = query.clone();
    loop {
        let page = ledger.leases(query.clone()).await.unwrap();
        assert!(page.leases.len() <= query.page_size as usize);
        leases.extend(page.leases);
        match page.next {
            // As a client would send it.
            Some(next) => query.page_token = Some(next.to_string().parse().unwrap()),
            None => return leases,
        }
    }
}

/// The leases that a query is for, by looking at each.
fn naive(leases: &[LeaseRow], query: &LeaseQuery) -> Vec<LeaseRow> {
    let matches = |lease: &&LeaseRow| {
        (query.states.is_empty() || query.states.contains(&lease.state))
            && query.owner.as_ref().is_none_or(|it| *it == lease.owner)
            && (query.device.as_ref()).is_none_or(|it| lease.devices.contains(it))
    };
    leases.iter().rev().filter(matches).cloned().collect()
}

#[tokio::test]
async fn every_filter_gives_what_a_look_at_each_lease_would_newest_first() {
    const STATES: [&str; 4] = ["QUEUED", "ACTIVE", "RELEASED", "EXPIRED"];
    const OWNERS: [&str; 3] = ["token:ci", "oidc:ada", "local"];
    let place = Place::new();
    let ledger = place.open().await;
    let mut random = StdRng::seed_from_u64(5);
    let phones = [PHONE, OTHER, "00008110-0000000000000003"].map(|it| it.parse().unwrap());
    let mut leases: Vec<LeaseRow> = Vec::new();
    for n in 0..300 {
        let mut row = lease(&format!("l{n}"));
        row.owner = (*OWNERS.choose(&mut random).unwrap()).to_owned();
        leases.push(row);
    }
    ledger.write_leases(rows(leases.clone())).await.unwrap();
    for (n, row) in (1..).zip(&mut leases) {
        row.state = (*STATES.choose(&mut random).unwrap()).to_owned();
        row.epoch = Some(n);
        row.devices = phones
            .iter()
            .filter(|_| random.random_bool(0.4))
            .cloned()
            .collect();
    }
    ledger.write_leases(rows(leases.clone())).await.unwrap();

    let mut found = 0;
    for _ in 0..200 {
        let states = STATES.into_iter().filter(|_| random.random_bool(0.4));
        let query = LeaseQuery {
            states: states.map(ToOwned::to_owned).collect(),
            owner: random
                .random_bool(0.5)
                .then(|| (*OWNERS.choose(&mut random).unwrap()).to_owned()),
            device: random
                .random_bool(0.5)
                .then(|| phones.choose(&mut random).unwrap().clone()),
            page_size: random.random_range(1..60),
            page_token: None,
        };
        let expected = naive(&leases, &query);
        assert_eq!(all_pages(&ledger, &query).await, expected, "{query:?}");
        found += expected.len();
    }
    assert!(found > 2000, "{found}");
    ledger.close().await;
}

#[tokio::test]
async fn a_lease_is_listed_for_the_phones_that_it_has_now() {
    let place = Place::new();
    let ledger = place.open().await;
    let of = async |device: &str| {
        let query = LeaseQuery {
            device: Some(device.parse().unwrap()),
            ..LeaseQuery::default()
        };
        let leases = ledger.leases(query).await.unwrap().leases;
        leases.into_iter().map(|lease| lease.id).collect::<Vec<_>>()
    };
    ledger
        .write_leases(rows([lease("a"), granted("b", 1)]))
        .await
        .unwrap();
    assert_eq!(
        (of(PHONE).await, of(OTHER).await),
        (vec!["b".to_owned()], vec!["b".to_owned()])
    );
    let one = |id: &str, epoch, device: &str| LeaseRow {
        // Named twice, listed once.
        devices: [device, device].map(|it| it.parse().unwrap()).into(),
        ..granted(id, epoch)
    };
    ledger
        .write_leases(rows([one("a", 2, PHONE), one("b", 1, OTHER)]))
        .await
        .unwrap();
    assert_eq!(
        (of(PHONE).await, of(OTHER).await),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    assert_eq!(of("00008110-0000000000000003").await, [""; 0]);
    ledger.close().await;
}

#[tokio::test]
async fn a_page_is_a_hundred_unless_asked_and_never_more_than_a_thousand() {
    let place = Place::new();
    let ledger = place.open().await;
    let leases: Vec<LeaseRow> = (0..1001).map(|n| lease(&format!("l{n}"))).collect();
    ledger.write_leases(rows(leases)).await.unwrap();
    for (asked, given) in [(0, 100), (7, 7), (5000, 1000)] {
        let query = LeaseQuery {
            page_size: asked,
            ..LeaseQuery::default()
        };
        let page = ledger.leases(query).await.unwrap();
        assert_eq!(page.leases.len(), given);
        assert!(page.next.is_some());
    }
    ledger.close().await;
}

#[tokio::test]
async fn a_token_is_of_use_only_with_the_same_filters() {
    let place = Place::new();
    let ledger = place.open().await;
    // As long an owner as anybody may have.
    let owner = "o".repeat(5000);
    let leases = ["a", "b", "c"].map(|id| LeaseRow {
        owner: owner.clone(),
        ..lease(id)
    });
    ledger.write_leases(rows(leases)).await.unwrap();
    let query = LeaseQuery {
        states: vec!["QUEUED".to_owned(), "ACTIVE".to_owned()],
        owner: Some(owner),
        page_size: 1,
        ..LeaseQuery::default()
    };
    let token = ledger.leases(query.clone()).await.unwrap().next.unwrap();
    let token: PageToken = token.to_string().parse().unwrap();
    let with = |change: fn(&mut LeaseQuery)| {
        let mut query = LeaseQuery {
            page_token: Some(token.clone()),
            ..query.clone()
        };
        change(&mut query);
        query
    };
    let same = ledger
        .leases(with(|query| {
            query.states = ["ACTIVE", "QUEUED", "ACTIVE"].map(ToOwned::to_owned).into();
        }))
        .await
        .unwrap();
    assert_eq!(same.leases[0].id, "b");
    let others: [fn(&mut LeaseQuery); 4] = [
        |query| query.states.clear(),
        |query| query.owner = None,
        |query| query.owner = Some("o".to_owned()),
        |query| query.device = Some(PHONE.parse().unwrap()),
    ];
    for other in others {
        let refused = ledger.leases(with(other)).await;
        assert!(
            matches!(refused, Err(LedgerError::PageTokenMismatch)),
            "{refused:?}"
        );
    }
    // Nor is it one for anything else.
    let commands = fleetgate_ledger::CommandQuery {
        page_token: Some(token.clone()),
        ..Default::default()
    };
    let operations = fleetgate_ledger::OperationQuery {
        page_token: Some(token.clone()),
        ..Default::default()
    };
    assert!(matches!(
        ledger.commands(commands).await,
        Err(LedgerError::PageTokenMismatch)
    ));
    assert!(matches!(
        ledger.operations(operations).await,
        Err(LedgerError::PageTokenMismatch)
    ));
    ledger.close().await;
}

#[tokio::test]
async fn what_comes_and_changes_meanwhile_shifts_no_page() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger
        .write_leases(rows(["a", "b", "c"].map(lease)))
        .await
        .unwrap();
    let mut query = LeaseQuery {
        page_size: 2,
        ..LeaseQuery::default()
    };
    let first = ledger.leases(query.clone()).await.unwrap();
    ledger
        .write_leases(NewLeaseWrite {
            operations: vec![operation("create-lease")],
            clock: Duration::from_secs(1),
            ..rows([lease("d"), ended(lease("c"), 3), granted("a", 1)])
        })
        .await
        .unwrap();
    query.page_token = first.next;
    let second = ledger.leases(query).await.unwrap();
    assert_eq!((second.leases, second.next), (vec![granted("a", 1)], None));
    ledger.close().await;
}

/// What is asked for again and again must not look at everything that ever was.
#[tokio::test]
async fn open_leases_and_those_of_a_request_are_found_by_an_index() {
    let place = Place::new();
    place.open().await.close().await;
    let mut plain = place.plain().await;
    for (query, index) in [
        (
            "EXPLAIN QUERY PLAN SELECT * FROM leases AS l WHERE l.is_open = 1 ORDER BY l.seq",
            "leases_open",
        ),
        (
            "EXPLAIN QUERY PLAN SELECT * FROM leases WHERE owner = 'a' AND request_id = 'b'",
            "sqlite_autoindex_leases",
        ),
        (
            "EXPLAIN QUERY PLAN SELECT seq FROM leases WHERE is_open = 0 AND ended_us < 9 ORDER BY ended_us LIMIT 9",
            "leases_by_end",
        ),
        (
            "EXPLAIN QUERY PLAN SELECT max(seq), min(seq) FROM operations WHERE at_us >= 9",
            "operations_by_time",
        ),
        (
            "EXPLAIN QUERY PLAN SELECT * FROM operations WHERE target = 'a' AND seq >= 1 AND seq < 9 ORDER BY seq DESC",
            "operations_by_target",
        ),
    ] {
        let found: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(query).fetch_all(&mut plain).await.unwrap();
        let steps: Vec<&str> = found.iter().map(|step| step.3.as_str()).collect();
        assert!(
            steps.len() == 1 && steps[0].contains(index),
            "{query}: {steps:?}"
        );
    }
}
