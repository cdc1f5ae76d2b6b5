//! Case 25: two hundred wait, and one gives back.

use std::collections::BTreeSet;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Lease, LeaseChange, LeaseState};
use fleetgate_tests::leasing::{self, Caller, DRIVERS, any, by};
use fleetgate_tests::{plain_lab, soon};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Stage, order};

const WAITERS: usize = 200;

/// Everybody who has a phone, or had it and drains.
async fn holders(who: &Caller) -> Vec<String> {
    let states = [LeaseState::Active, LeaseState::Draining];
    let request = pb::ListLeasesRequest {
        states: states.map(i32::from).to_vec(),
        ..pb::ListLeasesRequest::default()
    };
    let listed = who.leases().list_leases(request).await.unwrap();
    let leases = listed.into_inner().leases.into_iter();
    leases.map(|lease| lease.id).collect()
}

/// Follows a lease for as long as it takes, and hands it over as it is at first
/// and when it is granted. Says so when it is told of a place that is behind the
/// one before.
async fn follow(who: Caller, id: String, tell: mpsc::Sender<Lease>) -> Result<(), String> {
    let request = pb::WatchLeaseRequest { lease_id: id };
    let stream = who.leases().watch_lease(request).await;
    let mut stream = stream.map_err(|status| status.to_string())?.into_inner();
    let mut place = u32::MAX;
    let mut grants = 0;
    while let Some(message) = stream
        .message()
        .await
        .map_err(|status| status.to_string())?
    {
        let change = message.change();
        let lease = message.lease.ok_or("no lease")?;
        if let Some(now) = lease.queue_position {
            if now > place {
                return Err(format!("from {place} back to {now}"));
            }
            place = now;
        }
        grants += usize::from(change == LeaseChange::Granted);
        if matches!(change, LeaseChange::Snapshot | LeaseChange::Granted) {
            tell.send(lease).await.map_err(|_| "nobody listens")?;
        }
    }
    (grants == 1)
        .then_some(())
        .ok_or(format!("{grants} grants"))
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_hundred_that_wait_one_is_granted_for_each_that_gives_back_and_in_order() {
    let rig = leasing::configured(plain_lab(1, 1.0), |config| {
        config.limits.max_open_leases = WAITERS.try_into().unwrap();
    });
    let stage = Stage::of(rig.await);
    let (phone, udid) = (stage.rig.phone(0), stage.rig.udid(0));
    let mut callers = Vec::new();
    for name in DRIVERS {
        // A connection carries so many streams only.
        callers.push(stage.cast.caller(name, stage.rig.connect().await));
    }
    let mut holder = (stage.boss(), stage.boss().take(any(1)).await);

    // They come all at once.
    let mut coming = JoinSet::new();
    for n in 0..WAITERS {
        let caller = callers[n % callers.len()].clone();
        coming.spawn(async move {
            let lease = caller.queue(any(1)).await;
            (lease.id, caller)
        });
    }
    let mut waiting: std::collections::BTreeMap<_, _> =
        coming.join_all().await.into_iter().collect();
    assert_eq!(waiting.len(), WAITERS);
    let last = stage.boss().queue(any(1)).await;
    let line = stage.boss().explain(&last.id).await.leases_ahead;
    stage.boss().release(&last.id).await.unwrap();
    assert_eq!(
        line.iter().collect::<BTreeSet<_>>(),
        waiting.keys().collect()
    );

    let (tell, mut granted) = mpsc::channel(WAITERS);
    let mut watchers = JoinSet::new();
    for (id, caller) in &waiting {
        watchers.spawn(follow(caller.clone(), id.clone(), tell.clone()));
    }
    drop(tell);
    for _ in 0..WAITERS {
        let lease = soon("a snapshot", granted.recv())
            .await
            .expect("a snapshot");
        assert_eq!(lease.state(), LeaseState::Queued);
    }
    for id in &line {
        let (before, held) = &holder;
        before.release(&held.id).await.unwrap();
        let lease = soon("a grant", granted.recv()).await.expect("a grant");
        assert_eq!(lease.id, *id, "in order");
        assert!(lease.epoch > held.epoch, "{lease:?}");
        assert_eq!(lease.devices, [udid.as_str()]);
        assert_eq!(holders(&stage.boss()).await, [id.as_str()]);
        assert!(granted.try_recv().is_err(), "one for one");
        let caller = waiting.remove(id).unwrap();
        caller.tap(&udid, id, by(&lease)).await.unwrap();
        holder = (caller, lease);
    }
    holder.0.release(&holder.1.id).await.unwrap();
    while let Some(ended) = soon("the watchers", watchers.join_next()).await {
        ended.unwrap().unwrap();
    }
    assert_eq!(order(&phone), line, "by the phone's own account");
    assert_eq!(holders(&stage.boss()).await, [""; 0]);
    stage.stop().await;
}
