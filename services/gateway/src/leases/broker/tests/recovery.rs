//! What another gateway finds.

use super::*;

#[tokio::test]
async fn a_lease_goes_on_with_the_next_gateway_with_its_time_and_its_epoch() {
    let bench = Bench::of(&[1]).await;
    let view = bench.create(wish(CI, &[1])).await.unwrap();
    let waiter = bench.create(wish(QA, &[1])).await.unwrap();
    let left = bench.leases.clock().until(view.lease.deadline().unwrap());
    let directory = bench.stop().await;

    let bench = Bench::over(directory, &[1]).await;
    let found = bench.leases.find(view.lease.id()).await.unwrap().unwrap();
    assert_eq!(found.lease, view.lease);
    let still = bench.leases.clock().until(view.lease.deadline().unwrap());
    assert!(still <= left && still + Duration::from_secs(20) > left);
    assert_eq!(bench.admit(1, CI, &view), Ok(()));
    let anybody = bench.leases.gate().admit(&phone(1), "anybody", None);
    assert!(anybody.is_err());

    let owner = CI.to_owned();
    let released = bench.leases.release(view.lease.id().clone(), owner).await;
    released.unwrap();
    let granted = bench.until(waiter.lease.id(), LeaseState::Active).await;
    assert_eq!(
        granted.lease.epoch().map(fleetgate_lease::Epoch::get),
        Some(2)
    );
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_drained_when_the_gateway_went_has_drained_when_it_is_back() {
    let bench = Bench::of(&[1]).await;
    let view = bench.create(wish(CI, &[1])).await.unwrap();
    let named = Named {
        id: view.lease.id().clone(),
        epoch: 1.try_into().ok(),
    };
    let command = bench.leases.gate().admit(&phone(1), CI, Some(&named));
    let owner = CI.to_owned();
    let released = bench.leases.release(named.id.clone(), owner).await;
    assert_eq!(released.unwrap().lease.state(), LeaseState::Draining);
    let directory = bench.stop().await;
    drop(command);

    let bench = Bench::over(directory, &[1]).await;
    let ended = bench.until(&named.id, LeaseState::Released).await;
    assert_eq!(ended.lease.end().unwrap().reason, EndReason::Released);
    assert!(!bench.leases.gate().is_taken(&phone(1)));
    bench.stop().await;
}

#[tokio::test]
async fn a_request_is_known_to_the_next_gateway() {
    let bench = Bench::of(&[1]).await;
    let first = bench.requested(wish(CI, &[1]), "build-1").await.unwrap();
    let bench = Bench::over(bench.stop().await, &[1]).await;
    let again = bench.requested(wish(CI, &[1]), "build-1").await.unwrap();
    assert_eq!(again.lease.id(), first.lease.id());
    let differs = bench.requested(any(CI, 1), "build-1").await;
    assert!(matches!(differs, Err(LeaseError::Differs { .. })));
    bench.stop().await;
}

#[tokio::test]
async fn the_clock_goes_on_where_it_stood() {
    let bench = Bench::of(&[1]).await;
    bench.create(wish(CI, &[1])).await.unwrap();
    let before = bench.leases.clock().now();
    let bench = Bench::over(bench.stop().await, &[1]).await;
    let after = bench.leases.clock().now();
    assert!(after >= before);
    assert!(after.since(before) < Duration::from_secs(20));
    bench.stop().await;
}

#[tokio::test]
async fn a_lease_that_begins_later_begins_by_the_wall_clock_after_an_outage() {
    let bench = Bench::of(&[1]).await;
    let mut later = wish(CI, &[1]);
    let now = bench.leases.clock().now();
    // As if an hour of the outage had passed already.
    later.begin = Some(fleetgate_lease::Begin {
        at: now.saturating_add(Duration::from_secs(3600)),
        time: SystemTime::now(),
    });
    let view = bench.create(later).await.unwrap();
    assert_eq!(view.lease.state(), LeaseState::Scheduled);
    let bench = Bench::over(bench.stop().await, &[1]).await;
    bench.until(view.lease.id(), LeaseState::Active).await;
    bench.stop().await;
}
