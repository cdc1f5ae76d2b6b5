//! What nobody gets to write of leases, each told from the others.

use std::time::Duration;

use fleetgate_ledger::{LeaseRow, LedgerError, NewLeaseWrite};

use crate::leases::{requested, whats, write};
use crate::support::{Place, at_once, ended, granted, lease, operation, record, rows};

#[tokio::test]
async fn an_owners_request_makes_one_lease_and_costs_its_neighbours_in_the_batch_nothing() {
    let place = Place::new();
    let ledger = place.open().await;
    write(&ledger, requested("first", "token:ci", "r"))
        .await
        .unwrap();
    let before = ledger.stats().commits;
    let writes = [
        requested("second", "token:ci", "r"),
        requested("anothers", "oidc:ada", "r"),
        requested("new", "token:ci", "s"),
        requested("late", "token:ci", "s"),
        lease("unasked"),
        lease("unasked-too"),
        // Once more, not anew.
        requested("first", "token:ci", "r"),
    ];
    let (results, recorded) = tokio::join!(
        at_once(writes.map(|lease| {
            ledger.write_leases(NewLeaseWrite {
                operations: vec![operation(&lease.id)],
                ..rows([lease])
            })
        })),
        ledger.record(record("neighbour")),
    );
    recorded.unwrap();
    let taken = |result: &Result<(), LedgerError>| match result {
        Ok(()) => None,
        Err(LedgerError::LeaseRequestTaken {
            owner,
            request_id,
            lease,
        }) => Some([owner, request_id, lease].map(Clone::clone).join(" ")),
        Err(error) => panic!("{error:?}"),
    };
    let results: Vec<Option<String>> = results.iter().map(taken).collect();
    let of = |text: &str| Some(text.to_owned());
    assert_eq!(
        results,
        [
            of("token:ci r first"),
            None,
            None,
            of("token:ci s new"),
            None,
            None,
            None
        ]
    );
    assert_eq!(ledger.stats().commits, before + 1);
    assert_eq!(
        whats(&ledger).await,
        ["anothers", "new", "unasked", "unasked-too", "first"]
    );
    let ids: Vec<String> = ledger
        .open_leases()
        .await
        .unwrap()
        .into_iter()
        .map(|lease| lease.id)
        .collect();
    assert_eq!(ids, ["first", "anothers", "new", "unasked", "unasked-too"]);
    assert!(ledger.verify(None).await.unwrap().is_intact());
    ledger.close().await;
}

#[tokio::test]
async fn two_leases_of_one_write_cannot_have_one_request_either() {
    let place = Place::new();
    let ledger = place.open().await;
    let both = rows([
        requested("a", "token:ci", "r"),
        requested("b", "token:ci", "r"),
    ]);
    let refused = ledger.write_leases(both).await;
    assert!(
        matches!(&refused, Err(LedgerError::LeaseRequestTaken { lease, .. }) if lease == "a"),
        "{refused:?}"
    );
    assert_eq!(ledger.open_leases().await.unwrap(), []);
    ledger.close().await;
}

#[tokio::test]
async fn what_never_changes_of_a_lease_stays() {
    let place = Place::new();
    let ledger = place.open().await;
    let kept = LeaseRow {
        request_id: Some("r".to_owned()),
        ..granted("a", 4)
    };
    write(&ledger, kept.clone()).await.unwrap();
    write(&ledger, ended(lease("over"), 1)).await.unwrap();
    let changed = |change: fn(&mut LeaseRow)| {
        let mut row = kept.clone();
        change(&mut row);
        row
    };
    for (row, expected) in [
        (changed(|row| row.owner = "oidc:eve".to_owned()), "owner"),
        (
            changed(|row| row.request_id = Some("s".to_owned())),
            "request",
        ),
        (changed(|row| row.epoch = Some(5)), "epoch"),
        (changed(|row| row.epoch = None), "epoch"),
        (lease("over"), "end"),
    ] {
        let id = row.id.clone();
        match write(&ledger, row).await {
            Err(LedgerError::LeaseMismatch { lease, what }) => {
                assert_eq!((lease, what), (id, expected));
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
    // Whoever has it from elsewhere need not know its request, nor to the
    // microsecond when it was made.
    let later = changed(|row| {
        row.request_id = None;
        row.created += Duration::from_secs(1);
        row.state = "DRAINING".to_owned();
    });
    write(&ledger, later).await.unwrap();
    let expected = changed(|row| row.state = "DRAINING".to_owned());
    assert_eq!(ledger.lease("a").await.unwrap(), Some(expected));
    // What has ended may be told otherwise, as long as it stays ended.
    let otherwise = ended(lease("over"), 2);
    write(&ledger, otherwise.clone()).await.unwrap();
    assert_eq!(ledger.lease("over").await.unwrap(), Some(otherwise));
    ledger.close().await;
}

#[tokio::test]
async fn a_new_epoch_is_higher_than_all_before_it() {
    let place = Place::new();
    let ledger = place.open().await;
    let waiting = ["a", "b", "c", "d"].map(lease);
    ledger.write_leases(rows(waiting)).await.unwrap();
    write(&ledger, granted("a", 7)).await.unwrap();
    for (id, epoch) in [("b", 7), ("b", 6), ("new", 7), ("new", 1)] {
        let refused = write(&ledger, granted(id, epoch)).await;
        assert!(
            matches!(&refused, Err(LedgerError::EpochTaken { epoch: it, lease }) if (*it, lease.as_str()) == (epoch, id)),
            "{id} {epoch}: {refused:?}"
        );
    }
    // In one commit in any order, but each once.
    let results = at_once([
        write(&ledger, granted("b", 12)),
        write(&ledger, granted("c", 11)),
        write(&ledger, granted("d", 12)),
        write(&ledger, granted("new", 11)),
        write(&ledger, granted("b", 12)),
    ])
    .await;
    let taken = |result: &Result<(), LedgerError>| match result {
        Ok(()) => None,
        Err(LedgerError::EpochTaken { epoch, .. }) => Some(*epoch),
        Err(error) => panic!("{error:?}"),
    };
    assert_eq!(
        results.iter().map(taken).collect::<Vec<_>>(),
        [None, None, Some(12), Some(11), None]
    );
    assert_eq!(ledger.lease_clock().await.unwrap().last_epoch, 12);
    // A lease that has its epoch is written again with it.
    write(&ledger, granted("a", 7)).await.unwrap();
    write(&ledger, ended(granted("a", 7), 1)).await.unwrap();
    assert_eq!(ledger.lease_clock().await.unwrap().last_epoch, 12);
    let refused = write(&ledger, granted("d", 1 << 63)).await;
    assert!(
        matches!(refused, Err(LedgerError::Rejected { .. })),
        "{refused:?}"
    );
    write(&ledger, granted("d", (1 << 63) - 1)).await.unwrap();
    assert_eq!(
        ledger.lease("d").await.unwrap(),
        Some(granted("d", (1 << 63) - 1))
    );
    ledger.close().await;
}
