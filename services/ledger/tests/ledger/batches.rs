//! Group commit, and one bad entry among good ones.

use fleetgate_ledger::{CommandQuery, Ledger, LedgerError};
use tokio::task::JoinSet;

use crate::support::{Place, at_once, conclude, id, record, tap};

async fn intend_together<T: AsRef<str>>(
    ledger: &Ledger,
    ids: &[T],
) -> Vec<Result<(), LedgerError>> {
    at_once(ids.iter().map(|id| ledger.intend(tap(id.as_ref())))).await
}

#[tokio::test]
async fn writers_that_wait_together_share_a_commit() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut writers = JoinSet::new();
    for writer in 0..64 {
        let ledger = ledger.clone();
        writers.spawn(async move {
            for n in 0..10 {
                let id = format!("{writer}-{n}");
                ledger.intend(tap(&id)).await.unwrap();
                ledger.conclude(conclude(&id)).await.unwrap();
            }
        });
    }
    writers.join_all().await;

    let stats = ledger.stats();
    assert_eq!((stats.written, stats.refused), (1280, 0));
    assert!(stats.commits * 4 < stats.written, "{stats:?}");
    ledger.close().await;
}

#[tokio::test]
async fn a_batch_has_a_limit() {
    let place = Place::new();
    let ledger = place.open().await;
    let ids: Vec<String> = (0..600).map(|n| format!("c{n}")).collect();
    let results = intend_together(&ledger, &ids).await;
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(ledger.stats().commits, 3);
    ledger.close().await;
}

#[tokio::test]
async fn entries_are_recorded_in_the_order_of_their_arrival() {
    let place = Place::new();
    let ledger = place.open().await;
    let ids: Vec<String> = (0..300).map(|n| format!("c{n}")).collect();
    assert!(
        intend_together(&ledger, &ids)
            .await
            .iter()
            .all(Result::is_ok)
    );
    let query = CommandQuery {
        page_size: 300,
        ..CommandQuery::default()
    };
    let page = ledger.commands(query).await.unwrap();
    let listed: Vec<String> = page
        .commands
        .iter()
        .rev()
        .map(|row| row.command_id.to_string())
        .collect();
    assert_eq!(listed, ids);
    ledger.close().await;
}

#[tokio::test]
async fn of_two_entries_with_one_id_in_a_batch_the_second_is_refused() {
    let place = Place::new();
    let ledger = place.open().await;
    let results = intend_together(&ledger, &["a", "b", "a", "c"]).await;
    assert!(
        matches!(&results[..], [Ok(()), Ok(()), Err(LedgerError::Duplicate { command_id }), Ok(())]
            if *command_id == id("a")),
        "{results:?}"
    );
    assert_eq!(ledger.stats().commits, 1);
    for name in ["a", "b", "c"] {
        assert!(ledger.command(&id(name)).await.unwrap().is_some(), "{name}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn a_known_id_is_refused_and_its_neighbours_are_written() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger.record(record("r")).await.unwrap();
    let results = intend_together(&ledger, &["b", "a", "r", "c"]).await;
    assert!(
        matches!(
            &results[..],
            [
                Ok(()),
                Err(LedgerError::Duplicate { .. }),
                Err(LedgerError::Duplicate { .. }),
                Ok(())
            ]
        ),
        "{results:?}"
    );
    for name in ["b", "c"] {
        assert!(ledger.command(&id(name)).await.unwrap().is_some(), "{name}");
    }
    ledger.close().await;
}

#[tokio::test]
async fn recording_an_open_intent_is_refused_and_leaves_it_open() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    assert!(matches!(
        ledger.record(record("a")).await,
        Err(LedgerError::Duplicate { .. })
    ));
    assert_eq!(
        ledger.command(&id("a")).await.unwrap().unwrap().conclusion,
        None
    );
    ledger.conclude(conclude("a")).await.unwrap();
    ledger.close().await;
}

#[tokio::test]
async fn a_fate_needs_an_intent_and_is_given_once() {
    let place = Place::new();
    let ledger = place.open().await;
    assert!(matches!(
        ledger.conclude(conclude("a")).await,
        Err(LedgerError::NotIntended { .. })
    ));
    ledger.intend(tap("a")).await.unwrap();
    let results = at_once([
        ledger.conclude(conclude("a")),
        ledger.conclude(conclude("a")),
        ledger.conclude(conclude("x")),
    ])
    .await;
    assert!(
        matches!(
            &results[..],
            [
                Ok(()),
                Err(LedgerError::AlreadyConcluded { .. }),
                Err(LedgerError::NotIntended { .. })
            ]
        ),
        "{results:?}"
    );
    assert!(matches!(
        ledger.conclude(conclude("a")).await,
        Err(LedgerError::AlreadyConcluded { .. })
    ));
    assert_eq!(ledger.stats().refused, 4);
    ledger.close().await;
}
