//! Acts on runners and on the gateway itself, and what it says of itself and of
//! what phones went through.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Lab, Scenario};
use fleetgate_tests::facts::effects;
use fleetgate_tests::foreign::WriteLock;
use fleetgate_tests::lane::device;
use fleetgate_tests::mirror::{Mirror, Seen};
use fleetgate_tests::place::Place;
use fleetgate_tests::{Refusal, Rig, connect, launching, plain, plain_lab, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

use super::{cordon, operations, operations_over, row, update};

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_recorded_is_not_done() {
    let rig = Rig::plain(1).await;
    let udid = rig.udid(0);
    let lock = WriteLock::take(&rig.ledger_path()).await;
    let (named, cordoned, drained) = tokio::join!(
        update(&rig, &udid, Some("anna"), &[], &[]),
        cordon(&rig, &udid, "battery", None),
        async {
            let request = pb::DrainGatewayRequest::default();
            rig.fleet()
                .drain_gateway(request)
                .await
                .map(|_| pb::Device::default())
        },
    );
    for act in [named, cordoned, drained] {
        let refusal = refused(act);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::Unavailable, "LEDGER_UNAVAILABLE")
        );
        assert!(refusal.retry_delay.is_some(), "{refusal:?}");
    }
    let found = device(&rig, &udid).await;
    assert_eq!((found.alias, found.cordon), (None, None));
    lock.release().await;
    let gateway = rig
        .fleet()
        .get_gateway(pb::GetGatewayRequest {})
        .await
        .unwrap();
    assert!(!gateway.into_inner().draining);
    assert_eq!(operations(&rig).await, []);
    update(&rig, &udid, Some("anna"), &[], &[]).await.unwrap();
    assert_eq!(device(&rig, "anna").await.udid, udid);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_was_not_launched_from_here_is_not_recycled() {
    let rig = Rig::plain(1).await;
    let udid = rig.udid(0);
    for force in [false, true] {
        let request = pb::RecycleRunnerRequest {
            device: udid.clone(),
            reason: "it is slow".to_owned(),
            force,
        };
        let refusal = refused(rig.fleet().recycle_runner(request).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::FailedPrecondition, "RUNNER_NOT_LAUNCHED")
        );
        assert_eq!(refusal.meta("device"), udid);
    }
    assert_eq!(operations(&rig).await, []);
    plain::send(&rig, &udid, CommandKind::Button, "alive")
        .await
        .unwrap();
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_is_recycled_on_record_as_often_as_that_is_asked_for() {
    let rig = launching::rig(plain_lab(1, 0.02), |_| {}).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    for (force, reason, launches) in [(false, "it looks odd", 1), (true, "", 2)] {
        let is_up = |seen: &Seen| {
            seen.devices.get(&udid).is_some_and(|device| {
                let runner = device.runner.as_ref().unwrap();
                device.state() == pb::DeviceState::Ready && runner.launches == launches
            })
        };
        mirror.until("a runner", is_up).await;
        let request = pb::RecycleRunnerRequest {
            device: udid.to_lowercase(),
            reason: reason.to_owned(),
            force,
        };
        let told = rig.fleet().recycle_runner(request).await.unwrap();
        assert_eq!(told.into_inner().device.unwrap().udid, udid);
    }
    mirror
        .until("the third", |seen| {
            let runner = seen.devices[&udid].runner.as_ref().unwrap();
            runner.launches == 3
        })
        .await;
    rig.phone(0).detach();
    mirror.until_state(&udid, pb::DeviceState::Detached).await;
    let request = pb::RecycleRunnerRequest {
        device: udid.clone(),
        ..pb::RecycleRunnerRequest::default()
    };
    let refusal = refused(rig.fleet().recycle_runner(request).await);
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::FailedPrecondition, "DEVICE_UNATTACHED")
    );
    let recycled = operations(&rig).await.into_iter();
    let recycled: Vec<_> = recycled
        .filter(|(what, ..)| what == "recycle-runner")
        .collect();
    let expected = [
        row("recycle-runner", &udid, "force=false reason=it looks odd"),
        row("recycle-runner", &udid, "force=true"),
    ];
    assert_eq!(recycled, expected);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_phone_went_through_is_told_by_page_and_is_what_watchers_were_told() {
    let rig = Rig::plain(2).await;
    let (phone, udid) = (rig.phone(1), rig.udid(1));
    let mut mirror = Mirror::follow(rig.channel()).await;
    mirror.until("the fleet", |seen| seen.synced == 1).await;
    for _ in 0..3 {
        phone.detach();
        mirror.until_state(&udid, pb::DeviceState::Detached).await;
        phone.attach();
        mirror.until_state(&udid, pb::DeviceState::Attached).await;
    }
    let told = mirror.seen().transitions;
    drop(mirror);
    let rig = rig.restart_gateway().await;
    let mut rows = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = pb::ListDeviceTransitionsRequest {
            device: udid.to_lowercase(),
            page_size: 2,
            page_token,
        };
        let page = rig
            .fleet()
            .list_device_transitions(request)
            .await
            .unwrap()
            .into_inner();
        assert!(page.transitions.len() <= 2);
        rows.extend(page.transitions);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    rows.reverse();
    assert!(rows.is_sorted_by_key(|row| row.seq));
    assert!(rows.iter().all(|row| row.seq > 0 && row.device == udid));
    let facts =
        |row: &pb::DeviceTransition| (row.from(), row.to(), row.reason.clone(), row.detail.clone());
    let rows: Vec<_> = rows.iter().map(facts).collect();
    let told: Vec<_> = told.iter().map(facts).collect();
    assert!(told.len() >= 6);
    let start = rows.windows(told.len()).position(|rows| rows == told);
    assert!(start.is_some(), "{told:?} in {rows:?}");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_says_what_it_can_and_how_its_ledger_fares() {
    let rig = Rig::plain(1).await;
    plain::send(&rig, &rig.udid(0), CommandKind::Button, "first")
        .await
        .unwrap();
    let gateway = rig
        .fleet()
        .get_gateway(pb::GetGatewayRequest {})
        .await
        .unwrap();
    let gateway = gateway.into_inner();
    for capability in [
        "cordon",
        "device-history",
        "device-settings",
        "fleet-watch",
        "gateway-drain",
        "operation-history",
        "runner-launching",
        "runner-recycling",
    ] {
        assert!(
            gateway.capabilities.iter().any(|has| has == capability),
            "{capability}"
        );
    }
    assert!(gateway.capabilities.is_sorted());
    let ledger = gateway.ledger.unwrap();
    assert_eq!(ledger.path, rig.ledger_path().display().to_string());
    assert!(ledger.writable);
    assert_eq!(ledger.last_error, None);
    assert!(ledger.size_bytes > 4096, "{ledger:?}");
    assert!(ledger.free_bytes.is_some_and(|free| free > 0));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_ends_when_an_operator_says_so_and_finishes_what_it_has_begun() {
    let place = Place::new();
    let lab = Lab::start(Scenario::fleet(1).scaled(0.05));
    lab.serve_unix(place.usbmuxd()).await.unwrap();
    let phone = lab.phones().remove(0);
    let mut server = place.serve().await;
    let channel = connect(&server.url).await;
    let mut mirror = Mirror::follow(channel.clone()).await;
    let udid = phone.udid().to_string();
    mirror
        .until("the phone", |seen| {
            seen.state(&udid)
                .is_some_and(|state| state != pb::DeviceState::Detached)
        })
        .await;
    let slow = Injection::Slow {
        by: Duration::from_secs(20),
    };
    phone.fault(Fault::from(slow).on(CommandKind::Button));
    let mut pressed = JoinSet::new();
    let head = plain::Head {
        device: udid,
        command_id: Some("in-flight".to_owned()),
        lease: None,
        app_bundle_id: String::new(),
    };
    let client = AutomationServiceClient::new(channel.clone());
    pressed.spawn(plain::send_over(client, CommandKind::Button, head));
    phone.wait_until(|phone| phone.in_flight == 1).await;

    let mut fleet = FleetServiceClient::new(channel);
    let request = pb::DrainGatewayRequest {
        reason: "moving the rack".to_owned(),
    };
    fleet.drain_gateway(request.clone()).await.unwrap();
    // Twice is once, whether it is heard any more or not.
    drop(fleet.drain_gateway(request).await);
    pressed.join_next().await.unwrap().unwrap().unwrap();
    let end = mirror
        .until("the end", |seen| seen.ended.is_some())
        .await
        .ended;
    let end = Refusal::from(end.unwrap().unwrap_err());
    assert_eq!(
        (end.code, end.reason.as_str()),
        (Code::Unavailable, "GATEWAY_DRAINING")
    );
    let ended = soon("the end of the process", server.running.child.wait()).await;
    assert_eq!(ended.unwrap().code(), Some(0), "as with SIGTERM");
    assert_eq!(effects(&phone, "in-flight").len(), 1);

    let server = place.serve().await;
    let said = server
        .ask(&["command", "show", "in-flight", "-o", "json"])
        .await;
    assert_eq!(said.json()["fate"], "completed");
    let drains = operations_over(connect(&server.url).await).await;
    assert_eq!(drains, [row("drain-gateway", "", "reason=moving the rack")]);
    assert_eq!(server.end().await, Some(0));
    lab.shutdown().await;
}
