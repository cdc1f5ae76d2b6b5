//! What an operator finds out about others: who had a phone, how that ended,
//! what was done under it, and which calls were denied meanwhile.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{LeaseState, RevokeMode};
use fleetgate_tests::facts::object;
use fleetgate_tests::leasing::{self, BOSS, Caller, by, these};
use fleetgate_tests::{pause, refused, soon};

/// The operations that an operator is told, the oldest first.
async fn told(operator: &Caller, request: pb::ListOperationsRequest) -> Vec<pb::Operation> {
    let mut ledger = operator.ledger();
    let page = soon("operations", ledger.list_operations(request)).await;
    let page = page.unwrap().into_inner();
    assert_eq!(page.next_page_token, "");
    let records = page.operations.into_iter().rev();
    records.map(|record| record.operation.unwrap()).collect()
}

/// What was done to a lease, in words.
async fn life(operator: &Caller, lease: &str) -> Vec<String> {
    let request = pb::ListOperationsRequest {
        target: lease.to_owned(),
        ..pb::ListOperationsRequest::default()
    };
    let done = told(operator, request).await.into_iter();
    done.map(|done| format!("{} {}", done.who, done.what))
        .collect()
}

/// The calls of somebody that were denied, once so many are on record: a
/// refusal does not wait for its record.
async fn denied(operator: &Caller, who: &Caller, count: usize) -> Vec<pb::Operation> {
    let request = pb::ListOperationsRequest {
        who: who.principal(),
        what: "deny-call".to_owned(),
        ..pb::ListOperationsRequest::default()
    };
    soon("the denials", async {
        loop {
            let denied = told(operator, request.clone()).await;
            if denied.len() >= count {
                return denied;
            }
            pause().await;
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_finds_a_denied_call_and_the_whole_life_of_a_lease() {
    let (rig, cast) = leasing::rig(1).await;
    let [anna, berta, carla, boss] =
        ["anna", "berta", "carla", BOSS].map(|name| cast.caller(name, rig.channel()));
    let udid = rig.udid(0);
    let lease = anna.take(these(&[&udid])).await;
    anna.tap(&udid, "by-anna", by(&lease)).await.unwrap();
    let refusal = refused(berta.tap(&udid, "by-berta", None).await);
    assert_eq!(refusal.reason, "LEASE_HELD_BY_OTHER");
    boss.revoke(&lease.id, RevokeMode::Drain).await.unwrap();
    anna.until(&lease.id, LeaseState::Revoked).await;
    let refusal = refused(anna.tap(&udid, "too-late", by(&lease)).await);
    assert_eq!(refusal.reason, "LEASE_REVOKED");
    carla.tap(&udid, "by-carla", None).await.unwrap();

    let expected = [
        "token:anna create-lease",
        "fleetgate grant-lease",
        "token:boss revoke-lease",
        "fleetgate end-lease",
    ];
    assert_eq!(life(&carla, &lease.id).await, expected);
    for (who, reason, named) in [
        (&berta, "LEASE_HELD_BY_OTHER", None),
        (&anna, "LEASE_REVOKED", Some(lease.id.as_str())),
    ] {
        let denied = denied(&carla, who, 1).await;
        assert_eq!(denied.len(), 1, "{denied:?}");
        let pb::Operation { target, detail, .. } = denied[0].clone();
        let target = target.as_deref();
        assert_eq!(target, Some("/fleetgate.v1.AutomationService/Tap"));
        let detail = object(detail.unwrap());
        assert_eq!(detail["reason"], reason);
        assert_eq!(detail["device"], *udid);
        assert_eq!(detail["lease"].as_str(), named);
    }

    for (principal, lease_id, expected) in [
        (anna.principal(), "", "by-anna"),
        (String::new(), lease.id.as_str(), "by-anna"),
        (carla.principal(), "", "by-carla"),
        (carla.principal(), lease.id.as_str(), ""),
        (berta.principal(), "", ""),
    ] {
        let request = pb::ListCommandsRequest {
            principal: principal.clone(),
            lease_id: lease_id.to_owned(),
            ..pb::ListCommandsRequest::default()
        };
        let page = carla.ledger().list_commands(request).await.unwrap();
        let commands = page.into_inner().commands;
        let ids: Vec<_> = commands
            .iter()
            .map(|command| command.command_id.as_str())
            .collect();
        assert_eq!(ids.join(" "), expected, "{principal} {lease_id}");
    }
    rig.stop().await;
}
