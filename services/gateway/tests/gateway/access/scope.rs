//! What a principal is told of phones: of its own everything, of others that it
//! may look at what a viewer is, and of all the others nothing.

use fleetgate_gateway::TABLE;
use fleetgate_identity::{Grant, Role};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::fleet_event::Event;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::tail_commands_response::Item as Tailed;
use fleetgate_proto::v1::watch_fleet_response::Item as Watched;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::calls::{about, with};
use crate::guarded::{Clients, Guarded, LOOSE, RACK_A, RACK_B, detail, in_rack, soon};
use crate::support::{reason, tap};

/// Admin of rack a, viewer of rack b, nobody elsewhere.
fn of_two_racks() -> Vec<Grant> {
    vec![in_rack(Role::Admin, "a"), in_rack(Role::Viewer, "b")]
}

/// The role that the row of a method names.
fn role(method: &str) -> Role {
    let row = TABLE
        .iter()
        .find(|row| row.path.ends_with(&format!("/{method}")));
    row.unwrap().rule.role().unwrap()
}

#[tokio::test]
async fn a_role_is_good_for_the_phones_that_it_is_for() {
    let guarded = Guarded::knowing([("ann", of_two_racks())], "limits.call_burst = 4000").await;
    let mut clients = guarded.by(guarded.says("ann")).await;
    for (method, status) in about(&mut clients, "left", "a").await {
        let refusals = [
            Code::Unauthenticated,
            Code::PermissionDenied,
            Code::NotFound,
        ];
        let is_about_a_command = method == "GetRunnerCommandStatus";
        assert!(
            is_about_a_command || !refusals.contains(&status.code()),
            "{method}: {status:?}"
        );
    }
    let mut denied = Vec::new();
    for (method, status) in about(&mut clients, "right", "b").await {
        if role(method) == Role::Viewer {
            assert_ne!(
                status.code(),
                Code::PermissionDenied,
                "{method}: {status:?}"
            );
            continue;
        }
        let out_of_scope = (Code::PermissionDenied, "DEVICE_OUT_OF_SCOPE".to_owned());
        assert_eq!(reason(&status), out_of_scope, "{method}");
        let details = status.get_error_details();
        let facts = &details.error_info().unwrap().metadata;
        assert_eq!(facts["device"], RACK_B, "{method}");
        assert_eq!(facts["needed"], role(method).to_string(), "{method}");
        assert_eq!(facts["role"], "viewer", "{method}");
        denied.push(method);
    }
    assert!(denied.len() > 10, "{denied:?}");
    drop(clients);
    let entries = guarded.end().await;
    for method in denied {
        let is_of = |entry: &&fleetgate_ledger::OperationRow| {
            let target = entry.operation.target.as_deref().unwrap_or_default();
            target.ends_with(&format!("/{method}"))
        };
        let entry = entries.iter().find(is_of);
        let entry = &entry.unwrap_or_else(|| panic!("{method}")).operation;
        assert_eq!(entry.who, "token:ann");
        assert_eq!(entry.detail["reason"], "DEVICE_OUT_OF_SCOPE");
        assert_eq!(entry.detail["device"], RACK_B);
    }
}

#[tokio::test]
async fn a_phone_that_may_not_be_looked_at_is_as_one_that_is_not_there() {
    let guarded = Guarded::knowing([("ann", of_two_racks())], "limits.call_burst = 4000").await;
    let mut clients = guarded.by(guarded.says("ann")).await;
    let nothing = "fedcba9876543210fedcba9876543210fedcba98";
    let hidden = about(&mut clients, LOOSE, "c").await;
    let absent = about(&mut clients, nothing, "c").await;
    for ((method, hidden), (_, absent)) in hidden.iter().zip(&absent) {
        assert_eq!(
            reason(hidden),
            (Code::NotFound, "DEVICE_UNKNOWN".to_owned()),
            "{method}"
        );
        assert_eq!(hidden.code(), absent.code(), "{method}");
        assert_eq!(hidden.message(), absent.message(), "{method}");
        let facts = |status: &Status| {
            let details = status.get_error_details();
            let mut facts = details.error_info().unwrap().metadata.clone();
            facts.remove("device");
            facts.remove("command_id");
            facts
        };
        assert_eq!(facts(hidden), facts(absent), "{method}");
    }
    // By its alias nothing more is told than was said.
    guarded
        .by(&guarded.admin)
        .await
        .fleet
        .update_device(with(|r: &mut pb::UpdateDeviceRequest| {
            LOOSE.clone_into(&mut r.device);
            r.alias = Some("secret".to_owned());
        }))
        .await
        .unwrap();
    for (method, status) in about(&mut clients, "secret", "d").await {
        assert_eq!(status.code(), Code::NotFound, "{method}");
        assert!(
            !format!("{status:?}").contains(LOOSE),
            "{method}: {status:?}"
        );
    }
    drop(clients);
    let entries = guarded.end().await;
    let hidden = entries
        .iter()
        .filter(|entry| entry.operation.who == "token:ann");
    for entry in hidden {
        assert_eq!(
            entry.operation.detail["device"], LOOSE,
            "the record names it"
        );
    }
}

#[tokio::test]
async fn lists_and_watches_tell_of_phones_that_may_be_looked_at() {
    let guarded = Guarded::knowing([("ann", of_two_racks())], "").await;
    let mut ann = guarded.by(guarded.says("ann")).await;
    let listed = ann
        .fleet
        .list_devices(pb::ListDevicesRequest::default())
        .await
        .unwrap();
    let listed: Vec<_> = listed
        .into_inner()
        .devices
        .into_iter()
        .map(|d| d.udid)
        .collect();
    assert_eq!(listed, [RACK_B, RACK_A]);
    // A page has as many as it may, whoever is between them.
    let page = pb::ListDevicesRequest {
        page_size: 2,
        ..pb::ListDevicesRequest::default()
    };
    let page = ann.fleet.list_devices(page).await.unwrap().into_inner();
    assert_eq!((page.devices.len(), page.next_page_token.as_str()), (2, ""));

    let watch = ann
        .fleet
        .watch_fleet(pb::WatchFleetRequest::default())
        .await;
    let mut watch = watch.unwrap().into_inner();
    let mut seen = Vec::new();
    loop {
        match soon("the fleet", watch.message())
            .await
            .unwrap()
            .unwrap()
            .item
            .unwrap()
        {
            Watched::Snapshot(part) => seen.extend(part.devices.into_iter().map(|d| d.udid)),
            Watched::Synced(_) => break,
            Watched::Event(_) | Watched::Gap(_) | Watched::Heartbeat(_) => {}
        }
    }
    assert_eq!(seen, [RACK_B, RACK_A]);

    let mut admin = guarded.by(&guarded.admin).await;
    for name in [LOOSE, RACK_A] {
        let update = with(|r: &mut pb::UpdateDeviceRequest| {
            name.clone_into(&mut r.device);
            r.set_labels = [("note".to_owned(), "new".to_owned())].into();
        });
        admin.fleet.update_device(update).await.unwrap();
    }
    let next = async |watch: &mut tonic::Streaming<pb::WatchFleetResponse>| loop {
        let item = soon("a change", watch.message())
            .await
            .unwrap()
            .unwrap()
            .item;
        if let Some(Watched::Event(event)) = item
            && let Some(Event::DeviceChanged(changed)) = event.event
        {
            return changed.device.unwrap();
        }
    };
    assert_eq!(
        next(&mut watch).await.udid,
        RACK_A,
        "not a word of the first"
    );
    // Labels decide as they are: now it is in a rack.
    let moved = with(|r: &mut pb::UpdateDeviceRequest| {
        LOOSE.clone_into(&mut r.device);
        r.set_labels = [("rack".to_owned(), "b".to_owned())].into();
    });
    admin.fleet.update_device(moved).await.unwrap();
    assert_eq!(next(&mut watch).await.udid, LOOSE);
    drop((ann, admin, watch));
    guarded.gateway.shutdown().await;
}

/// Taps a phone, in vain, and waits until that is on record.
async fn tapped(admin: &mut Clients, name: &str, id: &str) {
    let refused = admin.automation.tap(tap(name, id)).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    let request = pb::GetCommandRequest {
        command_id: id.to_owned(),
    };
    let command = admin
        .ledger
        .get_command(request)
        .await
        .unwrap()
        .into_inner()
        .command;
    assert_ne!(command.unwrap().fate, 0, "it is on record");
}

#[tokio::test]
async fn the_ledger_tells_of_commands_to_phones_that_may_be_looked_at() {
    let guarded = Guarded::knowing([("ann", of_two_racks())], "").await;
    let mut admin = guarded.by(&guarded.admin).await;
    for (name, id) in [(RACK_A, "on-a"), (LOOSE, "on-loose"), (RACK_B, "on-b")] {
        tapped(&mut admin, name, id).await;
    }
    let mut ann = guarded.by(guarded.says("ann")).await;
    let get = |id: &str| pb::GetCommandRequest {
        command_id: id.to_owned(),
    };
    for id in ["on-a", "on-b"] {
        ann.ledger.get_command(get(id)).await.unwrap();
    }
    let hidden = ann.ledger.get_command(get("on-loose")).await.unwrap_err();
    // Not that it was never sent, which is proof of something else.
    assert_eq!(reason(&hidden), (Code::NotFound, "NO_RECORD".to_owned()));

    let mut ids = Vec::new();
    let mut page = pb::ListCommandsRequest {
        page_size: 1,
        ..pb::ListCommandsRequest::default()
    };
    loop {
        let listed = ann
            .ledger
            .list_commands(page.clone())
            .await
            .unwrap()
            .into_inner();
        ids.extend(
            listed
                .commands
                .into_iter()
                .map(|command| command.command_id),
        );
        if listed.next_page_token.is_empty() {
            break;
        }
        page.page_token = listed.next_page_token;
    }
    assert_eq!(ids, ["on-b", "on-a"]);

    let cordon = with(|r: &mut pb::CordonDeviceRequest| {
        LOOSE.clone_into(&mut r.device);
        "a look".clone_into(&mut r.reason);
    });
    admin.fleet.cordon_device(cordon).await.unwrap();
    let cordon = with(|r: &mut pb::CordonDeviceRequest| {
        RACK_B.clone_into(&mut r.device);
        "a look".clone_into(&mut r.reason);
    });
    ann.fleet.cordon_device(cordon.clone()).await.unwrap_err();
    admin.fleet.cordon_device(cordon).await.unwrap();
    // Of a look at the hidden command, and of the cordon.
    guarded.denials(2).await;
    let tail = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let mut events = ann.ledger.tail_commands(tail).await.unwrap().into_inner();
    let (mut told, mut denied) = (Vec::new(), Vec::new());
    while let Some(message) = soon("an event", events.message()).await.unwrap() {
        let Some(Tailed::Event(event)) = message.item else {
            continue;
        };
        told.push(match event.entry.unwrap() {
            Entry::Intended(row) | Entry::Concluded(row) => row.device,
            Entry::Resolved(resolved) => resolved.command.unwrap().device,
            Entry::Transition(moved) => moved.device,
            Entry::Operation(operation) => {
                let target = operation.target.clone().unwrap_or_default();
                assert_ne!(operation.who, "ledger");
                match operation.what.as_str() {
                    // Its own, whatever it is about.
                    "deny-call" => {
                        assert_eq!(operation.who, "token:ann");
                        assert!(detail(&operation, "reason").is_some());
                        let about = detail(&operation, "device");
                        assert_ne!(about.as_deref(), Some(LOOSE), "{operation:?}");
                        denied.push(about);
                        continue;
                    }
                    _ => target,
                }
            }
        });
    }
    assert!(told.iter().all(|device| device != LOOSE), "{told:?}");
    assert_eq!(denied, [None, Some(RACK_B.to_owned())], "as it was told");
    for device in [RACK_A, RACK_B] {
        assert!(
            told.iter().any(|told| told == device),
            "{device} in {told:?}"
        );
    }
    drop((ann, admin, events));
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn an_alias_that_is_taken_says_nothing_of_a_phone_that_is_hidden() {
    let guarded = Guarded::knowing([("ann", of_two_racks())], "").await;
    let mut ann = guarded.by(guarded.says("ann")).await;
    let mut admin = guarded.by(&guarded.admin).await;
    let call = |device: &str, alias: &str| pb::UpdateDeviceRequest {
        device: device.to_owned(),
        alias: Some(alias.to_owned()),
        ..pb::UpdateDeviceRequest::default()
    };
    let hidden = admin.fleet.update_device(call(LOOSE, "secret")).await;
    hidden.unwrap();
    let taken = (Code::AlreadyExists, "ALIAS_TAKEN".to_owned());
    for (alias, of) in [("secret", None), ("right", Some(RACK_B))] {
        let refused = ann.fleet.update_device(call("left", alias)).await;
        let refused = refused.unwrap_err();
        assert_eq!(reason(&refused), taken);
        assert!(!format!("{refused:?}").contains(LOOSE), "{refused:?}");
        let details = refused.get_error_details();
        let facts = &details.error_info().unwrap().metadata;
        assert_eq!(facts.get("device").map(String::as_str), of);
    }
    drop((ann, admin));
    guarded.gateway.shutdown().await;
}
