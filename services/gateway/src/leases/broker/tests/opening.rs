//! When the time of a lease begins to run.

use fleetgate_ledger::LedgerError;

use super::trouble::{makes, settle};
use super::*;

/// A broker with a phone that a lease has given back, a waiter who is granted it
/// for so long, and a ledger that has not taken that.
async fn granted(ttl: Duration) -> (Bench, Broker, LeaseId) {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let held = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    let mut short = wish(QA, &[1]);
    short.terms.ttl = ttl;
    short.terms.max_duration = ttl;
    let waiter = makes(&mut broker, order(short, None)).await;
    bench.ready();
    broker.follow();
    let (to, _gone) = tokio::sync::oneshot::channel();
    broker.hear(Ask::Release {
        id: held.lease.id().clone(),
        owner: CI.to_owned(),
        to,
    });
    broker.flush();
    (bench, broker, waiter.lease.id().clone())
}

#[tokio::test]
async fn a_ledger_that_is_long_in_coming_takes_nothing_from_a_grant() {
    let ttl = Duration::from_millis(300);
    let (bench, mut broker, id) = granted(ttl).await;
    broker.written(Err(LedgerError::Closed));
    let decided = broker.scheduler.lease(&id).unwrap();
    assert_eq!(decided.state(), LeaseState::Active);
    // Its time is over, if it ran.
    let over = broker.clock.now().saturating_add(ttl);
    sleep_until(broker.clock.instant(over)).await;
    broker.tick();
    assert!(broker.clock.now() >= over);

    broker.failing = None;
    let before = broker.clock.now();
    settle(&mut broker).await;
    let told = bench.leases.board().get(&id).unwrap();
    assert_eq!(told.lease.state(), LeaseState::Active);
    let (granted, end) = (told.lease.granted().unwrap().0, told.lease.deadline());
    assert!(granted < over);
    assert!(end.unwrap() >= before.saturating_add(ttl));
    assert_eq!(told.lease.latest_end(), end);
    // That it runs is on record, too, and is no operation of its own.
    let row = bench.ledger.lease(id.as_str()).await.unwrap().unwrap();
    let (on_record, _) = crate::leases::rows::read(&row).unwrap();
    assert_eq!(on_record.deadline(), end);
    let expected = ["create-lease by token:qa", "grant-lease by fleetgate"];
    assert_eq!(bench.operations(&id).await, expected);
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn whoever_is_told_of_a_grant_is_told_when_it_ends() {
    let bench = Bench::of(&[1]).await;
    let held = bench.create(wish(CI, &[1])).await.unwrap();
    assert!(held.lease.deadline().is_some());
    let waiter = bench.create(wish(QA, &[1])).await.unwrap();
    let follow = bench.leases.board().follow(waiter.lease.id()).unwrap();
    let owner = CI.to_owned();
    let released = bench.leases.release(held.lease.id().clone(), owner).await;
    released.unwrap();
    bench.until(waiter.lease.id(), LeaseState::Active).await;
    let granted = follow.borrow().granted.clone().unwrap();
    assert!(granted.deadline().is_some());
    assert_eq!(follow.borrow().updates, 0, "nobody has changed it");
    bench.stop().await;
}

#[tokio::test]
async fn a_grant_that_can_never_be_recorded_comes_to_an_end_all_the_same() {
    let ttl = Duration::from_millis(100);
    let (bench, mut broker, id) = granted(ttl).await;
    let Some(under_way) = &mut broker.under_way else {
        panic!("nothing is under way");
    };
    let rows = &mut under_way.batch.rows.rows;
    let (_, bad) = rows.iter_mut().find(|(of, _)| *of == id).unwrap();
    "token:else".clone_into(&mut bad.owner);
    let error = LedgerError::LeaseMismatch {
        lease: id.to_string(),
        what: "owner",
    };
    broker.written(Err(error));
    settle(&mut broker).await;
    let end = broker.scheduler.lease(&id).unwrap().deadline().unwrap();
    sleep_until(broker.clock.instant(end)).await;
    broker.tick();
    settle(&mut broker).await;
    let last = broker.scheduler.lease(&id);
    assert!(last.is_none_or(|last| !last.state().is_open()));
    drop(broker);
    bench.stop().await;
}
