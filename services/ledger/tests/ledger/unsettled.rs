//! What is unsettled is found, however much is settled.

use fleetgate_ledger::{Fault, Ledger, NewFate, verify};
use sqlx::Connection;

use crate::support::{
    Place, at_once, completed, conclude, count, id, read, record, resolve, run, tap, unknown,
};

/// More than two steps of a survey.
const MANY: usize = 10_000;

async fn names(ledger: &Ledger) -> Vec<String> {
    let unsettled = ledger.unsettled(None, None).await.unwrap();
    unsettled
        .iter()
        .map(|row| row.command_id.to_string())
        .collect()
}

/// `MANY` commands that are settled, and among them `open-N` without a fate,
/// `unknown-N` with one that may be settled, `lost` with one that may not and
/// `seen`, a read whose fate is unknown.
async fn filled(ledger: &Ledger) {
    for part in 0..4 {
        ledger.intend(tap(&format!("open-{part}"))).await.unwrap();
        let name = format!("unknown-{part}");
        ledger.intend(tap(&name)).await.unwrap();
        ledger
            .conclude(NewFate {
                command_id: id(&name),
                outcome: unknown(),
            })
            .await
            .unwrap();
        let names: Vec<String> = (0..MANY / 8).map(|n| format!("c{part}-{n}")).collect();
        at_once(names.iter().map(|name| ledger.intend(tap(name)))).await;
        at_once(names.iter().map(|name| ledger.conclude(conclude(name)))).await;
        let names: Vec<String> = (0..MANY / 8).map(|n| format!("r{part}-{n}")).collect();
        at_once(names.iter().map(|name| ledger.record(record(name)))).await;
    }
    ledger.intend(tap("lost")).await.unwrap();
    let mut lost = resolve("lost", unknown());
    lost.is_final = true;
    ledger.resolve(lost).await.unwrap();
    let mut seen = read("seen");
    seen.outcome = unknown();
    ledger.record(seen).await.unwrap();
}

/// Waits until less than a step is left to be surveyed.
async fn surveyed(place: &Place) {
    const LEFT: &str = "SELECT (SELECT max(seq) FROM commands) - (SELECT through FROM survey)";
    let mut plain = place.plain().await;
    while count(&mut plain, LEFT).await >= 4096 {
        tokio::task::yield_now().await;
    }
    plain.close().await.unwrap();
}

fn expected() -> Vec<String> {
    (0..4)
        .flat_map(|part| [format!("open-{part}"), format!("unknown-{part}")])
        .collect()
}

#[tokio::test]
async fn it_is_listed_while_the_rest_is_passed_by() {
    let place = Place::new();
    let ledger = place.open().await;
    filled(&ledger).await;
    surveyed(&place).await;
    assert_eq!(names(&ledger).await, expected());

    // Settled after it was listed, and before.
    for name in ["open-0", "open-3"] {
        ledger.conclude(conclude(name)).await.unwrap();
    }
    for name in ["unknown-0", "unknown-3"] {
        ledger.resolve(resolve(name, completed())).await.unwrap();
    }
    ledger.resolve(resolve("open-1", unknown())).await.unwrap();
    let left = ["open-1", "unknown-1", "open-2", "unknown-2"];
    assert_eq!(names(&ledger).await, left);
    assert_eq!(ledger.verify(None).await.unwrap().first_break, None);
    ledger.close().await;

    let ledger = place.open().await;
    assert_eq!(names(&ledger).await, left);
    // The next step forgets what has been settled since.
    let names: Vec<String> = (0..5000).map(|n| format!("later-{n}")).collect();
    at_once(names.iter().map(|name| ledger.record(record(name)))).await;
    surveyed(&place).await;
    ledger.close().await;
    let mut plain = place.plain().await;
    assert_eq!(count(&mut plain, "SELECT count(*) FROM unsettled").await, 4);
}

#[tokio::test]
async fn a_survey_that_is_lost_is_made_again() {
    let place = Place::new();
    let ledger = place.open().await;
    filled(&ledger).await;
    surveyed(&place).await;
    ledger.close().await;
    let mut plain = place.plain().await;
    run(&mut plain, "DELETE FROM survey").await;
    run(&mut plain, "DELETE FROM unsettled").await;
    plain.close().await.unwrap();

    assert_eq!(verify(&place.path(), None).await.unwrap().first_break, None);
    let ledger = place.open().await;
    assert_eq!(names(&ledger).await, expected());
    let mut plain = place.plain().await;
    while count(
        &mut plain,
        "SELECT count(*) FROM survey WHERE through > 4096",
    )
    .await
        == 0
    {
        tokio::task::yield_now().await;
    }
    plain.close().await.unwrap();
    assert_eq!(names(&ledger).await, expected());
    ledger.close().await;
}

#[tokio::test]
async fn one_that_was_taken_from_the_list_shows() {
    let place = Place::new();
    let ledger = place.open().await;
    filled(&ledger).await;
    surveyed(&place).await;
    let known = ledger.verify(None).await.unwrap();
    assert_eq!(known.first_break, None);
    ledger.close().await;
    let mut plain = place.plain().await;
    run(&mut plain, "DELETE FROM unsettled WHERE command_seq = 1").await;
    plain.close().await.unwrap();
    let found = verify(&place.path(), None).await.unwrap();
    assert_eq!(found.head, known.head);
    let found = found.first_break.unwrap();
    assert_eq!(found.what, Fault::Unlisted { command: 1 });
    assert!(found.to_string().contains("unsettled"), "{found}");
}
