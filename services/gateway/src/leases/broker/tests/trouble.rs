//! A ledger that takes nothing for a while.

use fleetgate_ledger::LedgerError;
use tokio::sync::oneshot;

use super::*;

/// Does what is to be done next by itself, until nothing is.
pub(super) async fn settle(broker: &mut Broker) {
    loop {
        broker.follow();
        broker.flush();
        let Some(under_way) = &mut broker.under_way else {
            return;
        };
        let written = under_way.end().await;
        broker.written(written);
    }
}

/// Asks for a lease, and lets what is handed to the ledger fail.
fn fails(broker: &mut Broker, order: Order, error: LedgerError) -> LeaseError {
    broker.follow();
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Create(Box::new(order), to));
    broker.flush();
    assert!(broker.under_way.is_some());
    broker.written(Err(error));
    answer.try_recv().unwrap().unwrap_err()
}

/// Asks for a lease.
pub(super) async fn makes(broker: &mut Broker, order: Order) -> LeaseView {
    broker.failing = None;
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Create(Box::new(order), to));
    settle(broker).await;
    answer.try_recv().unwrap().unwrap()
}

#[tokio::test]
async fn a_lease_that_cannot_be_put_on_record_is_taken_back() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    let first = order(wish(CI, &[1]), Some("build-1"));
    let id = first.lease.id.clone();
    let told = fails(&mut broker, first.clone(), LedgerError::Closed);
    assert!(matches!(told, LeaseError::Ledger(LedgerError::Closed)));
    assert!(broker.gathered.has_nothing_to_write());
    assert!(!broker.has_open());
    assert!(broker.void.is_empty() && broker.requests.is_empty());
    settle(&mut broker).await;
    assert!(bench.leases.find(&id).await.unwrap().is_none());

    // Nothing is begun before it is time to try again.
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Create(Box::new(first.clone()), to));
    assert!(answer.try_recv().unwrap().is_err());

    bench.ready();
    broker.follow();
    let again = order(wish(CI, &[1]), Some("build-1"));
    let made = makes(&mut broker, again).await;
    assert_eq!(made.lease.state(), LeaseState::Active);
    assert_eq!(bench.admit(1, CI, &made), Ok(()));
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn what_waits_behind_a_lease_that_is_taken_back_is_granted_in_its_place() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    let command = bench.leases.gate().admit(&phone(1), "anybody", None);
    let mut urgent = order(wish(QA, &[1]), None);
    urgent.lease.priority = fleetgate_lease::Priority(9);
    broker.follow();
    let waiter = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    fails(&mut broker, urgent, LedgerError::Closed);
    drop(command);
    let idle = broker.busy.next().await.unwrap();
    broker.is_idle(idle.0, idle.1);
    while let Some((device, mark)) = broker.busy.next().await {
        broker.is_idle(device, mark);
    }
    broker.failing = None;
    settle(&mut broker).await;
    let granted = bench.leases.find(waiter.lease.id()).await.unwrap().unwrap();
    assert_eq!(granted.lease.state(), LeaseState::Active);
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_may_be_on_record_ends_when_that_is_clear_unless_it_is_asked_for_again() {
    for comes_back in [false, true] {
        let (bench, mut broker) = Bench::by_hand(&[1]).await;
        let first = order(wish(CI, &[1]), Some("build-1"));
        let id = first.lease.id.clone();
        fails(&mut broker, first.clone(), LedgerError::Interrupted);
        assert!(bench.leases.board().get(&id).is_none(), "nobody is told");
        assert!(bench.leases.gate().is_taken(&phone(1)));
        if comes_back {
            let made = makes(&mut broker, first).await;
            assert_eq!(made.lease.id(), &id);
        }
        broker.failing = None;
        settle(&mut broker).await;
        let found = bench.leases.find(&id).await.unwrap().unwrap();
        let expected = if comes_back {
            LeaseState::Active
        } else {
            LeaseState::Released
        };
        assert_eq!(found.lease.state(), expected);
        drop(broker);
        bench.stop().await;
    }
}

#[tokio::test]
async fn phones_are_taken_away_although_it_cannot_be_recorded_and_nobody_else_gets_them() {
    let bench = Bench::of(&[1]).await;
    let view = bench.create(wish(CI, &[1])).await.unwrap();
    let waiter = bench.create(wish(QA, &[1])).await.unwrap();
    let (there, away) = (
        bench.directory.path().join("ledger.db"),
        bench.directory.path().join("away.db"),
    );
    std::fs::rename(&there, &away).unwrap();
    let owner = CI.to_owned();
    let id = view.lease.id().clone();
    let refused = bench.leases.release(id.clone(), owner).await.unwrap_err();
    assert!(
        matches!(refused, LeaseError::Unwritten { ended: true, .. }),
        "{refused}"
    );
    assert_eq!(bench.admit(1, CI, &view), Err("LEASE_RELEASED"));
    let told = bench.leases.board().get(&id).unwrap();
    assert_eq!(
        told.lease.state(),
        LeaseState::Active,
        "it is not on record"
    );
    let waits = bench.leases.board().get(waiter.lease.id()).unwrap();
    assert_eq!(waits.lease.state(), LeaseState::Queued);
    assert_eq!(bench.admit(1, QA, &waits), Err("LEASE_NOT_ACTIVE"));
    let refused = bench.create(wish(QA, &[1])).await.unwrap_err();
    assert!(matches!(refused, LeaseError::Ledger(_)), "{refused}");

    std::fs::rename(&away, &there).unwrap();
    bench.until(&id, LeaseState::Released).await;
    let granted = bench.until(waiter.lease.id(), LeaseState::Active).await;
    assert_eq!(bench.admit(1, QA, &granted), Ok(()));
    bench.stop().await;
}

/// A question to the broker, and where its answer comes.
fn renewal(id: &LeaseId) -> (Ask, oneshot::Receiver<Reply>) {
    let (to, answer) = oneshot::channel();
    let renew = Ask::Renew {
        id: id.clone(),
        owner: CI.to_owned(),
        epoch: 1.try_into().ok(),
        to,
    };
    (renew, answer)
}

#[tokio::test]
async fn renewals_without_end_cost_bounded_memory_while_nothing_is_taken() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let held = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    let id = held.lease.id();
    let (renew, mut answer) = renewal(id);
    broker.hear(renew);
    broker.flush();
    broker.written(Err(LedgerError::Interrupted));
    let refused = answer.try_recv().unwrap().unwrap_err();
    assert!(
        matches!(refused, LeaseError::Unwritten { ended: false, .. }),
        "{refused}"
    );
    for _ in 0..10_000 {
        let (renew, _gone) = renewal(id);
        broker.hear(renew);
    }
    let Batch {
        rows,
        operations,
        effects,
        answers,
        ..
    } = &broker.gathered;
    assert_eq!((rows.rows.len(), operations.len()), (1, 0));
    assert_eq!((effects.len(), answers.len()), (1, 1));

    // What would be an operation each is not taken.
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Update {
        id: id.clone(),
        owner: CI.to_owned(),
        change: fleetgate_lease::Change::default(),
        to,
    });
    let refused = answer.try_recv().unwrap().unwrap_err();
    assert!(matches!(refused, LeaseError::Ledger(_)), "{refused}");

    let latest = broker.scheduler.lease(id).unwrap().deadline();
    broker.failing = None;
    settle(&mut broker).await;
    let told = bench.leases.board().get(id).unwrap();
    assert_eq!(told.lease.deadline(), latest);
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn one_lease_that_can_never_be_recorded_keeps_no_other_from_being() {
    let (bench, mut broker) = Bench::by_hand(&[1, 2]).await;
    broker.follow();
    let held = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    let mut answers = Vec::new();
    let mut ids = Vec::new();
    for owner in ["token:one", "token:bad", "token:three"] {
        let order = order(wish(owner, &[2]), None);
        ids.push(order.lease.id.clone());
        let (to, answer) = oneshot::channel();
        broker.hear(Ask::Create(Box::new(order), to));
        answers.push(answer);
    }
    let (renew, mut renewed) = renewal(held.lease.id());
    broker.hear(renew);
    let rows = &mut broker.gathered.rows.rows;
    let (_, bad) = rows.iter_mut().find(|(id, _)| *id == ids[1]).unwrap();
    // That of the lease that is held.
    bad.epoch = Some(1);
    settle(&mut broker).await;

    let told: Vec<_> = answers
        .iter_mut()
        .map(|answer| answer.try_recv().unwrap().map(|view| view.lease.state()))
        .collect();
    assert_eq!(told[0].as_ref().unwrap(), &LeaseState::Active);
    assert!(
        matches!(
            told[1],
            Err(LeaseError::Ledger(LedgerError::EpochTaken { .. }))
        ),
        "{told:?}"
    );
    assert_eq!(told[2].as_ref().unwrap(), &LeaseState::Queued);
    assert!(renewed.try_recv().unwrap().is_ok());
    assert!(bench.leases.find(&ids[1]).await.unwrap().is_none());
    assert!(broker.void.is_empty() && broker.failing.is_none());
    assert_eq!(bench.operations(&ids[0]).await.len(), 2, "each once");
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_cannot_be_recorded_any_more_gives_its_phone_away_at_its_end() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let held = makes(&mut broker, order(wish(CI, &[1]), None)).await;
    let id = held.lease.id().clone();
    let waiter = makes(&mut broker, order(wish(QA, &[1]), None)).await;
    bench.ready();
    broker.follow();
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Release {
        id: id.clone(),
        owner: CI.to_owned(),
        to,
    });
    let rows = &mut broker.gathered.rows.rows;
    let (_, bad) = rows.iter_mut().find(|(of, _)| *of == id).unwrap();
    "token:else".clone_into(&mut bad.owner);
    settle(&mut broker).await;
    let refused = answer.try_recv().unwrap().unwrap_err();
    assert!(
        matches!(
            refused,
            LeaseError::Unwritten {
                error: LedgerError::LeaseMismatch { .. },
                ended: true
            }
        ),
        "{refused}"
    );
    assert!(bench.leases.board().get(&id).is_none());
    assert!(bench.admit(1, CI, &held).is_err());
    let next = bench.leases.board().get(waiter.lease.id()).unwrap();
    assert_eq!(next.lease.state(), LeaseState::Active);
    assert_eq!(bench.admit(1, QA, &next), Ok(()));
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn who_ends_a_lease_by_force_whose_time_is_over_is_on_record() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let mut short = wish(CI, &[1]);
    short.terms.ttl = Duration::from_secs(1);
    let held = makes(&mut broker, order(short, None)).await;
    let id = held.lease.id().clone();
    let due = held.lease.deadline().unwrap();
    sleep_until(broker.clock.instant(due)).await;
    let (to, mut answer) = oneshot::channel();
    broker.hear(Ask::Revoke {
        id: id.clone(),
        by: "token:boss".to_owned(),
        reason: "demo".to_owned(),
        now: true,
        to,
    });
    settle(&mut broker).await;
    let ended = answer.try_recv().unwrap().unwrap();
    assert_eq!(ended.lease.state(), LeaseState::Expired);
    let done = bench.operations(&id).await;
    for expected in ["expire-lease by fleetgate", "revoke-lease by token:boss"] {
        assert!(done.iter().any(|done| done == expected), "{done:?}");
    }
    drop(broker);
    bench.stop().await;
}

#[tokio::test]
async fn a_phone_is_waited_for_once_however_often_it_is_kept_for_somebody_and_let_go() {
    let (bench, mut broker) = Bench::by_hand(&[1]).await;
    broker.follow();
    let command = bench.leases.gate().admit(&phone(1), "anybody", None);
    for _ in 0..100 {
        bench.ready();
        broker.follow();
        let wanted = makes(&mut broker, order(wish(CI, &[1]), None)).await;
        let (to, _gone) = oneshot::channel();
        broker.hear(Ask::Release {
            id: wanted.lease.id().clone(),
            owner: CI.to_owned(),
            to,
        });
        settle(&mut broker).await;
    }
    assert_eq!(broker.busy.len(), 1);
    bench.ready();
    broker.follow();
    let wanted = makes(&mut broker, order(wish(QA, &[1]), None)).await;
    assert_eq!(wanted.lease.state(), LeaseState::Queued);
    drop(command);
    bench.ready();
    let (device, mark) = broker.busy.next().await.unwrap();
    broker.is_idle(device, mark);
    settle(&mut broker).await;
    let granted = bench.leases.board().get(wanted.lease.id()).unwrap();
    assert_eq!(granted.lease.state(), LeaseState::Active);
    drop(broker);
    bench.stop().await;
}
