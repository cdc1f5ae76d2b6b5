//! From a wish to its end.

use super::*;

#[tokio::test]
async fn a_lease_of_an_idle_phone_is_granted_before_its_caller_is_answered() {
    let bench = Bench::of(&[1]).await;
    let view = bench.create(wish(CI, &[1])).await.unwrap();
    assert_eq!(view.lease.state(), LeaseState::Active);
    assert_eq!(view.lease.epoch().map(fleetgate_lease::Epoch::get), Some(1));
    assert_eq!(bench.admit(1, CI, &view), Ok(()));
    let row = bench.ledger.lease(view.lease.id().as_str()).await.unwrap();
    let row = row.unwrap();
    assert_eq!((row.state.as_str(), row.epoch), ("ACTIVE", Some(1)));

    let released = bench.leases.release(view.lease.id().clone(), CI.to_owned());
    let released = released.await.unwrap();
    assert_eq!(released.lease.state(), LeaseState::Released);
    assert_eq!(bench.admit(1, CI, &view), Err("LEASE_NOT_FOUND"));
    let anybody = bench.leases.gate().admit(&phone(1), "anybody", None);
    assert!(anybody.is_ok());
    let done = bench.operations(view.lease.id()).await;
    let expected = [
        "create-lease by token:ci",
        "grant-lease by fleetgate",
        "release-lease by token:ci",
        "end-lease by fleetgate",
    ];
    assert_eq!(done, expected);
    bench.stop().await;
}

#[tokio::test]
async fn a_phone_that_is_in_use_is_granted_when_its_last_command_has_ended() {
    let bench = Bench::of(&[1]).await;
    let command = bench.leases.gate().admit(&phone(1), "anybody", None);
    let command = command.unwrap();
    let view = bench.create(wish(CI, &[1])).await.unwrap();
    assert_eq!(view.lease.state(), LeaseState::Queued);
    assert_eq!(view.position, Some(1));
    let other = bench.leases.gate().admit(&phone(1), "anybody", None);
    assert!(other.is_err(), "it is kept for the lease");
    drop(command);
    let view = bench.until(view.lease.id(), LeaseState::Active).await;
    assert_eq!(bench.admit(1, CI, &view), Ok(()));
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_ends_drains_and_only_then_is_the_next_one_granted() {
    let bench = Bench::of(&[1]).await;
    let first = bench.create(wish(CI, &[1])).await.unwrap();
    let named = Named {
        id: first.lease.id().clone(),
        epoch: 1.try_into().ok(),
    };
    let command = bench.leases.gate().admit(&phone(1), CI, Some(&named));
    let command = command.unwrap();
    let second = bench.create(wish(QA, &[1])).await.unwrap();
    assert_eq!(second.position, Some(1));

    let released = bench.leases.release(named.id.clone(), CI.to_owned()).await;
    assert_eq!(released.unwrap().lease.state(), LeaseState::Draining);
    assert_eq!(bench.admit(1, CI, &first), Err("LEASE_RELEASED"));
    assert!(format!("{command:?}").contains("LEASE_RELEASED"));
    let waits = bench.leases.find(second.lease.id()).await.unwrap().unwrap();
    assert_eq!(waits.lease.state(), LeaseState::Queued);

    bench.ready();
    drop(command);
    let second = bench.until(second.lease.id(), LeaseState::Active).await;
    assert_eq!(
        second.lease.epoch().map(fleetgate_lease::Epoch::get),
        Some(2)
    );
    assert_eq!(bench.admit(1, QA, &second), Ok(()));
    bench.stop().await;
}

#[tokio::test]
async fn all_phones_of_a_lease_are_granted_together_and_two_hundred_waiters_in_their_order() {
    let bench = Bench::of(&[1, 2]).await;
    let both = bench.create(any(CI, 2)).await.unwrap();
    assert_eq!(both.lease.devices().len(), 2);
    let mut waiting = Vec::new();
    for number in 0..200 {
        let waiter = bench.create(any(&format!("token:{number}"), 2)).await;
        let waiter = waiter.unwrap();
        assert_eq!(waiter.position, Some(number + 1));
        waiting.push(waiter.lease.id().clone());
    }
    let owner = CI.to_owned();
    let released = bench.leases.release(both.lease.id().clone(), owner).await;
    released.unwrap();
    bench.until(&waiting[0], LeaseState::Active).await;
    for (before, waiter) in waiting[1..].iter().enumerate() {
        let view = bench.leases.find(waiter).await.unwrap().unwrap();
        assert_eq!(view.lease.state(), LeaseState::Queued);
        assert_eq!(view.position, Some(before + 1));
    }
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_expires_and_one_that_is_does_not() {
    let bench = Bench::of(&[1]).await;
    let mut short = wish(CI, &[1]);
    short.terms.ttl = Duration::from_millis(1500);
    let view = bench.create(short).await.unwrap();
    let id = view.lease.id().clone();
    let first = view.lease.deadline().unwrap();
    let renew = |owner: &str, epoch: u64| {
        let (owner, epoch) = (owner.to_owned(), epoch.try_into().ok());
        bench.leases.renew(id.clone(), owner, epoch)
    };
    let renewed = renew(CI, 1).await;
    assert!(renewed.unwrap().lease.deadline().unwrap() >= first);
    for (owner, epoch, why) in [
        (CI, 0, "LEASE_EPOCH_STALE"),
        (CI, 2, "LEASE_EPOCH_STALE"),
        (QA, 1, "LEASE_NOT_OWNER"),
    ] {
        let refused = renew(owner, epoch).await;
        let Err(LeaseError::Refused(refused)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(refused.reason(), why);
    }
    let expired = bench.until(&id, LeaseState::Expired).await;
    let end = expired.lease.end().unwrap();
    assert_eq!(end.reason, EndReason::TtlExpired);
    let late = renew(CI, 1).await;
    assert!(matches!(late, Err(LeaseError::NotOpen)), "{late:?}");
    let done = bench.operations(&id).await;
    assert!(done.contains(&"expire-lease by fleetgate".to_owned()));
    bench.stop().await;
}

#[tokio::test]
async fn the_same_request_gives_the_same_lease_and_another_is_told_in_what_it_differs() {
    let bench = Bench::of(&[1, 2]).await;
    let first = bench.requested(wish(CI, &[1]), "build-1").await.unwrap();
    let again = bench.requested(wish(CI, &[1]), "build-1").await.unwrap();
    assert_eq!(again.lease.id(), first.lease.id());
    let mut other = wish(CI, &[2]);
    other.terms.ttl = Duration::from_secs(5);
    let differs = bench.requested(other, "build-1").await.unwrap_err();
    let LeaseError::Differs { fields } = differs else {
        panic!("{differs}");
    };
    assert_eq!(fields, ["device_list", "ttl"]);
    let others = bench.requested(wish(QA, &[2]), "build-1").await.unwrap();
    assert_ne!(others.lease.id(), first.lease.id(), "whose it is counts");
    // Also when it has ended.
    let id = first.lease.id().clone();
    bench.leases.release(id, CI.to_owned()).await.unwrap();
    let ended = bench.requested(wish(CI, &[1]), "build-1").await.unwrap();
    assert_eq!(ended.lease.id(), first.lease.id());
    assert_eq!(ended.lease.state(), LeaseState::Released);
    bench.stop().await;
}

#[tokio::test]
async fn the_same_request_twenty_times_at_once_gives_one_lease() {
    let bench = Bench::of(&[1]).await;
    let calls = (0..20).map(|_| bench.requested(wish(CI, &[1]), "build-1"));
    let views = futures_util::future::join_all(calls).await;
    let ids: std::collections::BTreeSet<_> = views
        .into_iter()
        .map(|view| view.unwrap().lease.id().clone())
        .collect();
    assert_eq!(ids.len(), 1);
    bench.stop().await;
}

#[tokio::test]
async fn an_owner_has_so_many_leases_and_no_more() {
    let bench = Bench::of(&[1]).await;
    for _ in 0..4 {
        bench.create(wish(CI, &[1])).await.unwrap();
    }
    let refused = bench.create(wish(CI, &[1])).await.unwrap_err();
    assert!(
        matches!(refused, LeaseError::Quota { limit: MOST }),
        "{refused}"
    );
    bench.create(wish(QA, &[1])).await.unwrap();
    bench.stop().await;
}

#[tokio::test]
async fn what_was_asked_for_can_be_changed_while_it_counts() {
    let bench = Bench::of(&[1]).await;
    let holder = bench.create(wish(CI, &[1])).await.unwrap();
    let waiter = bench.create(wish(QA, &[1])).await.unwrap();
    let change = fleetgate_lease::Change {
        priority: Some(fleetgate_lease::Priority(5)),
        set_labels: BTreeMap::from([("build".to_owned(), "7".to_owned())]),
        ..fleetgate_lease::Change::default()
    };
    let update = |id: &LeaseId, owner: &str, change: &fleetgate_lease::Change| {
        let (id, owner) = (id.clone(), owner.to_owned());
        bench.leases.update(id, owner, change.clone())
    };
    let updated = update(waiter.lease.id(), QA, &change).await.unwrap();
    assert_eq!(updated.lease.priority(), fleetgate_lease::Priority(5));
    assert_eq!(updated.lease.labels()["build"], "7");
    let refused = update(holder.lease.id(), CI, &change).await.unwrap_err();
    assert!(matches!(refused, LeaseError::NotWaiting), "{refused}");
    let many = fleetgate_lease::Change {
        set_labels: (0..65).map(|n| (format!("k{n}"), String::new())).collect(),
        ..fleetgate_lease::Change::default()
    };
    let refused = update(waiter.lease.id(), QA, &many).await.unwrap_err();
    assert!(matches!(refused, LeaseError::TooManyLabels), "{refused}");
    bench.stop().await;
}

#[tokio::test]
async fn somebody_else_ends_a_lease_with_a_reason_that_its_owner_is_told() {
    let bench = Bench::of(&[1]).await;
    let view = bench.create(wish(CI, &[1])).await.unwrap();
    let (id, by) = (view.lease.id().clone(), "token:boss".to_owned());
    let revoked = bench.leases.revoke(id.clone(), by, "demo".to_owned(), true);
    let revoked = revoked.await.unwrap();
    assert_eq!(revoked.lease.state(), LeaseState::Revoked);
    let refused = bench
        .leases
        .as_known(Refused::Unknown(id.clone()), CI)
        .await;
    assert_eq!(refused.reason(), "LEASE_REVOKED");
    let told = "the lease was revoked by token:boss: demo";
    assert_eq!(refused.to_string(), told);
    let done = bench.operations(&id).await;
    assert!(done.contains(&"revoke-lease by token:boss".to_owned()));
    bench.stop().await;
}

#[tokio::test]
async fn why_a_lease_waits_is_told_by_the_rule_by_which_it_is_granted() {
    let bench = Bench::of(&[1]).await;
    let holder = bench.create(wish(CI, &[1])).await.unwrap();
    let waiter = bench.create(wish(QA, &[1])).await.unwrap();
    let why = bench.leases.explain(waiter.lease.id().clone()).await;
    let why = why.unwrap().unwrap().why;
    let fleetgate_lease::Obstacle::Leased { lease, until } = &why.devices[0].obstacle else {
        panic!("{why}");
    };
    assert_eq!(lease, holder.lease.id());
    assert!(until.is_some());
    bench.stop().await;
}

#[tokio::test]
async fn grants_ends_and_waits_are_counted() {
    let bench = Bench::of(&[1]).await;
    let first = bench.create(wish(CI, &[1])).await.unwrap();
    let second = bench.create(wish(QA, &[1])).await.unwrap();
    for (lease, owner) in [(first, CI), (second, QA)] {
        let id = lease.lease.id().clone();
        bench.until(&id, LeaseState::Active).await;
        bench.leases.release(id, owner.to_owned()).await.unwrap();
    }
    let text = bench.around.3.text().unwrap();
    for expected in [
        "fleetgate_lease_grants_total 2",
        "fleetgate_lease_ends_total{reason=\"RELEASED\"} 2",
        "fleetgate_lease_wait_seconds_count 2",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    bench.stop().await;
}
