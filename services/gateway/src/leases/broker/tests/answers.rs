//! What is told while something is decided and not on record.

use fleetgate_lease::Obstacle;
use tokio::sync::oneshot;

use super::trouble::{makes, settle};
use super::*;

/// A lease that a broker has made, whose time is over and nobody has said so.
async fn overdue(broker: &mut Broker) -> LeaseId {
    let mut short = wish(CI, &[1]);
    short.terms.ttl = Duration::from_millis(50);
    let held = makes(broker, order(short, None)).await;
    let end = held.lease.deadline().unwrap();
    sleep_until(broker.clock.instant(end)).await;
    held.lease.id().clone()
}

fn renew(broker: &mut Broker, id: &LeaseId) -> oneshot::Receiver<Reply> {
    let (to, answer) = oneshot::channel();
    broker.hear(Ask::Renew {
        id: id.clone(),
        owner: CI.to_owned(),
        epoch: 1.try_into().ok(),
        to,
    });
    answer
}

fn release(broker: &mut Broker, id: &LeaseId) -> oneshot::Receiver<Reply> {
    let (to, answer) = oneshot::channel();
    let (id, owner) = (id.clone(), CI.to_owned());
    broker.hear(Ask::Release { id, owner, to });
    answer
}

fn explained(broker: &mut Broker, id: &LeaseId) -> Explained {
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Explain { id: id.clone(), to });
    answer.try_recv().unwrap().unwrap()
}

#[tokio::test]
async fn a_renewal_that_comes_too_late_is_told_so_whether_the_end_is_on_record_or_not() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let id = overdue(&mut broker).await;
    // Before anybody has said that its time is over, when that is decided, and
    // while it is written.
    for step in 0..3 {
        if step == 2 {
            broker.flush();
            assert!(broker.under_way.is_some());
        }
        let told = renew(&mut broker, &id).try_recv().unwrap();
        let Err(LeaseError::Refused(refused)) = told else {
            panic!("{told:?}");
        };
        assert_eq!(refused.reason(), "LEASE_EXPIRED", "{step}");
    }
    settle(&mut broker).await;
    // Once the scheduler has forgotten it, the ledger says so.
    broker.step(Input::Tick).unwrap();
    let told = renew(&mut broker, &id).try_recv().unwrap();
    assert!(matches!(told, Err(LeaseError::NotOpen)), "{told:?}");
    let on_record = bench.leases.find(&id).await.unwrap().unwrap();
    let refused = crate::leases::ended(&on_record.lease).unwrap();
    assert_eq!(refused.reason(), "LEASE_EXPIRED");
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_is_given_back_is_never_told_of_as_active() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let id = overdue(&mut broker).await;
    // At its end, when that is decided, while it is written, and after that.
    let mut answers = vec![release(&mut broker, &id), release(&mut broker, &id)];
    broker.flush();
    answers.push(release(&mut broker, &id));
    settle(&mut broker).await;
    for mut answer in answers {
        let told = answer.try_recv().unwrap().unwrap();
        assert_eq!(told.lease.state(), LeaseState::Expired);
    }
    broker.step(Input::Tick).unwrap();
    let told = release(&mut broker, &id).try_recv().unwrap();
    assert!(matches!(told, Err(LeaseError::NotOpen)), "{told:?}");

    bench.ready();
    broker.follow();
    let held = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    let command = bench.leases.gate().admit(
        &phone(1),
        CI,
        Some(&Named {
            id: held.lease.id().clone(),
            epoch: held.lease.epoch(),
        }),
    );
    let mut answer = release(&mut broker, held.lease.id());
    settle(&mut broker).await;
    let told = answer.try_recv().unwrap().unwrap();
    assert_eq!(told.lease.state(), LeaseState::Draining);
    drop((command, broker));
    bench.stop().await;
}

#[tokio::test]
async fn why_a_lease_waits_is_told_as_long_as_it_is_told_to_wait() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let held = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    let waiter = makes(&mut broker, order(wish(QA, &[1]), None)).await;
    bench.ready();
    broker.follow();
    let _answer = release(&mut broker, held.lease.id());
    let id = waiter.lease.id();
    let decided = broker.scheduler.lease(id).unwrap();
    assert_eq!(decided.state(), LeaseState::Active);
    let told = explained(&mut broker, id);
    assert_eq!(told.view.lease.state(), LeaseState::Queued);
    assert_eq!(told.why.devices[0].obstacle, Obstacle::Busy);
    let summary = "1 matches, 1 wanted: 1 kept for it and busy";
    assert_eq!(told.why.to_string(), summary);
    settle(&mut broker).await;
    assert_eq!(explained(&mut broker, id).why.to_string(), "granted");
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn a_wish_is_on_record_with_what_it_asked_for_and_where_it_came_from() {
    let bench = Bench::of(&[1]).await;
    let view = bench.create(any(CI, 1)).await.unwrap();
    let query = fleetgate_ledger::OperationQuery {
        what: Some("create-lease".to_owned()),
        target: Some(view.lease.id().to_string()),
        ..fleetgate_ledger::OperationQuery::default()
    };
    let page = bench.ledger.operations(query).await.unwrap();
    let created = &page.operations[0].operation.detail;
    assert_eq!(created["address"], "192.0.2.1:7");
    assert_eq!(created["count"], 1);
    assert_eq!(created["selector"]["labels"]["rack"], "a");
    bench.stop().await;
}

#[tokio::test]
async fn leases_whose_broker_is_gone_are_not_seen_to() {
    let (bench, broker) = Bench::by_hand(&[1]).await;
    assert!(bench.leases.are_seen_to());
    drop(broker);
    assert!(!bench.leases.are_seen_to());
    let refused = bench.create(wish(CI, &[1])).await;
    assert!(matches!(refused, Err(LeaseError::Closed)), "{refused:?}");
    bench.stop().await;
}
