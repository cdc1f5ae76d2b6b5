//! Following the events.

use fleetgate_ledger::{Cursor, EventKind, LedgerError, Subject};
use fleetgate_runner::Fate;

use crate::support::{
    PHONE, Place, conclude, id, operation, read, record, resolve, run, tap, transition, unknown,
};

#[tokio::test]
async fn every_event_is_told_in_its_order_with_what_it_is_about() {
    let place = Place::new();
    let ledger = place.open().await;
    ledger.intend(tap("a")).await.unwrap();
    ledger.resolve(resolve("a", unknown())).await.unwrap();
    ledger
        .resolve(resolve("a", conclude("a").outcome))
        .await
        .unwrap();
    ledger.record(record("b")).await.unwrap();
    ledger.record(read("r")).await.unwrap();
    ledger.record(read("r")).await.unwrap();
    ledger.operation(operation("cordon")).await.unwrap();
    ledger.transition(transition("RUNNER_READY")).await.unwrap();

    let page = ledger.tail(None, 0).await.unwrap();
    let kinds: Vec<EventKind> = page.events.iter().map(|event| event.kind).collect();
    assert_eq!(
        kinds,
        [
            EventKind::Opened,
            EventKind::Intended,
            EventKind::Resolved,
            EventKind::Resolved,
            EventKind::Recorded,
            EventKind::Recorded,
            EventKind::Repeated,
            EventKind::Operation,
            EventKind::Transition,
        ]
    );
    let fates: Vec<Option<Fate>> = page
        .events
        .iter()
        .filter_map(|event| match &event.subject {
            Subject::Command(row) => Some(row.conclusion.as_ref().map(|it| it.outcome.fate)),
            Subject::Ledger { .. }
            | Subject::Operation(_)
            | Subject::Transition(_)
            | Subject::Checkpoint(_) => None,
        })
        .collect();
    assert_eq!(
        fates,
        [
            None,
            Some(Fate::Unknown),
            Some(Fate::Completed),
            Some(Fate::Completed),
            Some(Fate::Completed),
            Some(Fate::Completed)
        ]
    );
    let Subject::Operation(told) = &page.events[7].subject else {
        panic!("{:?}", page.events[7])
    };
    assert_eq!((told.who.as_str(), told.what.as_str()), ("ada", "cordon"));
    assert_eq!(told.detail, operation("cordon").detail);
    let Subject::Transition(told) = &page.events[8].subject else {
        panic!("{:?}", page.events[8])
    };
    let moved = transition("RUNNER_READY");
    assert_eq!((told.seq, told.at), (9, page.events[8].at));
    assert_eq!(told.device.as_str(), PHONE);
    assert_eq!((&told.from, &told.to), (&moved.from, &moved.to));
    assert_eq!((&told.reason, &told.detail), (&moved.reason, &moved.detail));
    assert_eq!(page.cursor, Some(page.events[8].cursor));
    assert_eq!(ledger.now().await.unwrap(), page.cursor);
    ledger.close().await;
}

#[tokio::test]
async fn pages_follow_each_other_across_a_reopening_and_leave_nothing_out() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut cursor: Option<Cursor> = None;
    let mut seen = Vec::new();
    for n in 0..25 {
        ledger.record(record(&format!("c{n}"))).await.unwrap();
    }
    for _ in 0..3 {
        let page = ledger.tail(cursor, 7).await.unwrap();
        seen.extend(page.events.iter().map(|event| event.seq));
        cursor = page.cursor;
    }
    ledger.close().await;

    let ledger = place.open().await;
    let mut cursor = cursor.map(|cursor| cursor.to_string().parse().unwrap());
    loop {
        let page = ledger.tail(cursor, 7).await.unwrap();
        if page.events.is_empty() {
            assert_eq!(page.cursor, cursor);
            break;
        }
        seen.extend(page.events.iter().map(|event| event.seq));
        cursor = page.cursor;
    }
    assert_eq!(seen, (1..=26).collect::<Vec<i64>>());
    ledger.close().await;
}

#[tokio::test]
async fn a_commit_is_published_and_its_events_can_be_read_by_then() {
    let place = Place::new();
    let ledger = place.open().await;
    let mut watch = ledger.watch();
    let now = ledger.now().await.unwrap();
    assert_eq!(*watch.borrow_and_update(), 1);
    ledger.intend(tap("a")).await.unwrap();
    watch.changed().await.unwrap();
    assert_eq!(*watch.borrow(), 2);
    let page = ledger.tail(now, 0).await.unwrap();
    assert_eq!(page.events.len(), 1);
    ledger.close().await;
    assert!(
        watch.changed().await.is_err(),
        "a closed ledger says no more"
    );

    let ledger = place.open().await;
    assert_eq!(*ledger.watch().borrow(), 2);
    ledger.close().await;
}

#[tokio::test]
async fn a_cursor_of_another_ledger_or_of_a_later_state_is_refused() {
    let (place, other) = (Place::new(), Place::new());
    let ledger = place.open().await;
    ledger.record(record("a")).await.unwrap();
    let theirs = other.open().await;
    for name in ["a", "b", "c"] {
        theirs.record(record(name)).await.unwrap();
    }
    for event in theirs.tail(None, 0).await.unwrap().events {
        let refused = ledger.tail(Some(event.cursor), 0).await;
        assert!(
            matches!(refused, Err(LedgerError::ForeignCursor)),
            "{refused:?}"
        );
    }
    theirs.close().await;

    let newest = ledger.now().await.unwrap();
    let mut plain = place.plain().await;
    run(&mut plain, "DELETE FROM chain WHERE seq = 2").await;
    let refused = ledger.tail(newest, 0).await;
    assert!(
        matches!(refused, Err(LedgerError::ForeignCursor)),
        "{refused:?}"
    );
    ledger.close().await;
}

#[tokio::test]
async fn what_is_no_cursor_is_refused() {
    let place = Place::new();
    let ledger = place.open().await;
    let good = ledger.now().await.unwrap().unwrap().to_string();
    assert!(good.parse::<Cursor>().is_ok());
    let zero = "A".repeat(good.len());
    for wrong in ["", "x", &good[1..], &zero, &"é".repeat(27), &"-".repeat(54)] {
        let refused = wrong.parse::<Cursor>();
        assert!(
            matches!(refused, Err(LedgerError::InvalidCursor)),
            "{wrong}: {refused:?}"
        );
    }
    assert_eq!(ledger.command(&id("x")).await.unwrap(), None);
    ledger.close().await;
}
