//! Who did what, and which calls were denied, as an operator asks for it.

use std::time::SystemTime;

use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use prost_types::Timestamp;
use tonic::Code;
use tonic_types::StatusExt;

use crate::guarded::{Clients, Guarded, RACK_A, RACK_B, detail, everywhere, in_rack};
use crate::support::{reason, tap};

const TAP: &str = "/fleetgate.v1.AutomationService/Tap";
const LIST: &str = "/fleetgate.v1.LedgerService/ListOperations";

fn all() -> pb::ListOperationsRequest {
    pb::ListOperationsRequest::default()
}

fn of_kind(what: &str) -> pb::ListOperationsRequest {
    pb::ListOperationsRequest {
        what: what.to_owned(),
        ..all()
    }
}

async fn list(by: &mut Clients, request: pb::ListOperationsRequest) -> Vec<pb::OperationRecord> {
    let page = by.ledger.list_operations(request).await.unwrap();
    let page = page.into_inner();
    assert_eq!(page.next_page_token, "");
    page.operations
}

/// Who did what, in a word each.
fn words(records: &[pb::OperationRecord]) -> Vec<String> {
    let operations = records.iter().map(|record| record.operation.as_ref());
    let words = operations.map(|operation| {
        let pb::Operation { who, what, .. } = operation.unwrap();
        format!("{who} {what}")
    });
    words.collect()
}

async fn cordon(by: &mut Clients, device: &str) {
    let cordon = pb::CordonDeviceRequest {
        device: device.to_owned(),
        reason: "a new battery".to_owned(),
        until: None,
    };
    by.fleet.cordon_device(cordon).await.unwrap();
}

/// With an operator of all phones, one of rack a, and a viewer of all.
async fn staffed() -> Guarded {
    let staff = [
        ("ann", everywhere(Role::Operator)),
        ("ray", vec![in_rack(Role::Operator, "a")]),
        ("eve", everywhere(Role::Viewer)),
    ];
    Guarded::knowing(staff, "").await
}

#[tokio::test]
async fn an_operator_finds_who_did_what_and_what_was_denied_to_whom() {
    let guarded = staffed().await;
    let mut ann = guarded.by(guarded.says("ann")).await;
    let mut ray = guarded.by(guarded.says("ray")).await;
    let mut eve = guarded.by(guarded.says("eve")).await;
    let before = SystemTime::now();
    cordon(&mut ann, "left").await;
    let denied = eve.automation.tap(tap("left", "by-eve")).await;
    assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    guarded.denials(1).await;
    // Not for him to see.
    let hidden = ray.automation.tap(tap(RACK_B, "by-ray")).await;
    assert_eq!(hidden.unwrap_err().code(), Code::NotFound);
    guarded.denials(2).await;

    let records = list(&mut ann, all()).await;
    let told = [
        "token:ray deny-call",
        "token:eve deny-call",
        "token:ann cordon-device",
    ];
    assert_eq!(words(&records), told, "the newest first");
    let numbers: Vec<_> = records.iter().map(|record| record.seq).collect();
    assert!(
        numbers.is_sorted_by(|one, next| one > next),
        "in the order of recording: {numbers:?}"
    );
    for record in &records {
        let time = SystemTime::try_from(record.time.unwrap()).unwrap();
        assert!(time <= SystemTime::now(), "{record:?}");
    }
    let [by_ray, by_eve, by_ann] = [0, 1, 2].map(|at| records[at].operation.clone().unwrap());
    assert_eq!(by_ann.target.as_deref(), Some(RACK_A));
    assert_eq!(detail(&by_ann, "reason").unwrap(), "a new battery");
    assert_eq!(by_eve.target.as_deref(), Some(TAP));
    assert_eq!(detail(&by_eve, "reason").unwrap(), "ROLE_TOO_LOW");
    assert_eq!(by_ray.target.as_deref(), Some(TAP));
    assert_eq!(detail(&by_ray, "reason").unwrap(), "DEVICE_OUT_OF_SCOPE");
    assert_eq!(detail(&by_ray, "device").unwrap(), RACK_B);

    let asked = |who: &str, what: &str, target: &str| pb::ListOperationsRequest {
        who: who.to_owned(),
        what: what.to_owned(),
        target: target.to_owned(),
        ..all()
    };
    for (request, expected) in [
        (asked("", "deny-call", ""), &told[..2]),
        (asked("token:eve", "", ""), &told[1..2]),
        (asked("", "", TAP), &told[..2]),
        (asked("", "", RACK_A), &told[2..]),
        (asked("token:ann", "deny-call", ""), &[]),
        // As it is on record, and in no other way.
        (asked("", "", "left"), &[]),
        (asked("eve", "", ""), &[]),
    ] {
        let found = list(&mut ann, request.clone()).await;
        assert_eq!(words(&found), expected, "{request:?}");
    }
    let since = |start: Option<Timestamp>| pb::ListOperationsRequest {
        start_time: start,
        ..all()
    };
    let found = list(&mut ann, since(Some(before.into()))).await;
    assert_eq!(found, records);
    let last = records[0].time;
    assert_eq!(list(&mut ann, since(last)).await, records[..1]);
    let later = SystemTime::now() + std::time::Duration::from_secs(1);
    assert_eq!(list(&mut ann, since(Some(later.into()))).await, []);
    drop((ann, ray, eve));
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn whoever_is_no_operator_of_all_phones_is_told_nothing_and_that_is_on_record() {
    let guarded = staffed().await;
    for (who, why) in [("eve", "ROLE_TOO_LOW"), ("ray", "DEVICE_OUT_OF_SCOPE")] {
        let mut by = guarded.by(guarded.says(who)).await;
        let refused = by.ledger.list_operations(all()).await.unwrap_err();
        assert_eq!(reason(&refused), (Code::PermissionDenied, why.to_owned()));
    }
    guarded.denials(2).await;
    let mut ann = guarded.by(guarded.says("ann")).await;
    let records = list(&mut ann, of_kind("deny-call")).await;
    let told = ["token:ray deny-call", "token:eve deny-call"];
    assert_eq!(words(&records), told);
    for record in records {
        let target = record.operation.unwrap().target;
        assert_eq!(target.as_deref(), Some(LIST));
    }
    drop(ann);
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn operations_come_in_pages_whose_tokens_are_for_the_same_filters() {
    let guarded = staffed().await;
    let mut ann = guarded.by(guarded.says("ann")).await;
    for device in ["left", "right"] {
        for _ in 0..2 {
            cordon(&mut ann, device).await;
            let device = device.to_owned();
            let uncordon = pb::UncordonDeviceRequest { device };
            ann.fleet.uncordon_device(uncordon).await.unwrap();
        }
    }
    let whole = list(&mut ann, of_kind("cordon-device")).await;
    assert_eq!(whole.len(), 4);

    let mut paged = Vec::new();
    let mut request = pb::ListOperationsRequest {
        page_size: 3,
        ..of_kind("cordon-device")
    };
    loop {
        let page = ann.ledger.list_operations(request.clone()).await.unwrap();
        let page = page.into_inner();
        paged.extend(page.operations);
        if page.next_page_token.is_empty() {
            break;
        }
        // What is done meanwhile shifts nothing.
        cordon(&mut ann, RACK_B).await;
        request.page_token = page.next_page_token;
    }
    assert_eq!(paged, whole);

    for wrong in [
        pb::ListOperationsRequest {
            what: "uncordon-device".to_owned(),
            ..request.clone()
        },
        pb::ListOperationsRequest {
            page_token: "no token".to_owned(),
            ..all()
        },
    ] {
        let refused = ann.ledger.list_operations(wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
        let details = refused.get_error_details();
        let violations = &details.bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, "page_token");
    }
    drop(ann);
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn commands_are_found_by_who_asked_for_them() {
    let guarded = staffed().await;
    let mut ann = guarded.by(guarded.says("ann")).await;
    let mut ray = guarded.by(guarded.says("ray")).await;
    for (by, id) in [(&mut ann, "ann-1"), (&mut ray, "ray-1")] {
        // No phone is there, which is on record, too.
        let refused = by.automation.tap(tap(RACK_A, id)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unavailable);
    }
    for (principal, lease_id, expected) in [
        ("token:ann", "", &["ann-1"][..]),
        ("token:ray", "", &["ray-1"]),
        ("ann", "", &[]),
        ("token:ann", "l-1", &[]),
    ] {
        let request = pb::ListCommandsRequest {
            principal: principal.to_owned(),
            lease_id: lease_id.to_owned(),
            ..pb::ListCommandsRequest::default()
        };
        let listed = ann.ledger.list_commands(request).await.unwrap();
        let commands = listed.into_inner().commands;
        let ids: Vec<_> = commands
            .iter()
            .map(|command| command.command_id.as_str())
            .collect();
        assert_eq!(ids, expected, "{principal} {lease_id}");
    }
    drop((ann, ray));
    guarded.gateway.shutdown().await;
}
