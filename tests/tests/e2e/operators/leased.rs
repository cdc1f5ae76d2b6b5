//! Acts on phones that somebody has leased.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::DeviceState;
use fleetgate_tests::leasing::{self, BOSS, Caller, any, by};
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::{launching, pause, plain_lab, refused, soon};
use tonic::{Code, Status};

async fn recycle(who: &Caller, device: &str, force: bool) -> Result<(), Status> {
    let request = pb::RecycleRunnerRequest {
        device: device.to_owned(),
        reason: "it looks odd".to_owned(),
        force,
    };
    who.fleet().recycle_runner(request).await.map(drop)
}

/// How many calls of berta's were denied.
async fn denied(boss: &Caller) -> usize {
    let request = pb::ListOperationsRequest {
        who: "token:berta".to_owned(),
        what: "deny-call".to_owned(),
        target: "/fleetgate.v1.FleetService/RecycleRunner".to_owned(),
        ..pb::ListOperationsRequest::default()
    };
    let listed = boss.ledger().list_operations(request).await.unwrap();
    listed.into_inner().operations.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn whose_a_phone_is_its_runner_is_too_until_an_admin_takes_it_away() {
    let mut cast = None;
    let rig = launching::rig(plain_lab(1, 0.02), |config| {
        cast = Some(leasing::attend(config));
    })
    .await;
    let cast = cast.unwrap();
    let caller = |name: &str| cast.caller(name, rig.channel());
    let (anna, berta, boss) = (caller("anna"), caller("berta"), caller(BOSS));
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    mirror.until_state(&udid, DeviceState::Ready).await;
    let lease = anna.take(any(1)).await;
    for force in [false, true] {
        let refusal = refused(recycle(&berta, &udid, force).await);
        let words = (refusal.code, refusal.reason.as_str());
        let held = (Code::PermissionDenied, "LEASE_HELD_BY_OTHER");
        assert_eq!(words, held, "{refusal:?}");
        assert_eq!(refusal.meta("lease_owner"), "token:anna", "{refusal:?}");
    }
    soon("both denials", async {
        while denied(&boss).await != 2 {
            pause().await;
        }
    })
    .await;
    anna.tap(&udid, "undisturbed", by(&lease)).await.unwrap();
    // Its holder's, an admin's, and everybody's once it is nobody's.
    let launches = |wanted| {
        let udid = udid.clone();
        move |seen: &Seen| {
            seen.devices.get(&udid).is_some_and(|device| {
                let runner = device.runner.as_ref().unwrap();
                device.state() == DeviceState::Ready && runner.launches == wanted
            })
        }
    };
    recycle(&anna, &udid, false).await.unwrap();
    mirror.until("a second runner", launches(2)).await;
    recycle(&boss, &udid, true).await.unwrap();
    mirror.until("a third runner", launches(3)).await;
    anna.release(&lease.id).await.unwrap();
    recycle(&berta, &udid, false).await.unwrap();
    mirror.until("a fourth runner", launches(4)).await;
    drop((anna, berta, boss));
    rig.stop().await;
}
