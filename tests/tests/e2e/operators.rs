//! What operators do: to whom, on whose record, with what effect on the phone,
//! and what is left of it after a restart.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use fleetgate_gateway::config::{Alias, DeviceConfig, Devices, Labels};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Lab, Scenario};
use fleetgate_tests::facts::{effects, moment};
use fleetgate_tests::foreign::WriteLock;
use fleetgate_tests::lane::{device, in_hand, queued, tap};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::place::Place;
use fleetgate_tests::{Refusal, Rig, connect, pause, plain, plain_lab, refused, soon};
use prost_types::value::Kind;
use tokio::task::JoinSet;
use tonic::{Code, Status};

/// What operators did, as the ledger has it: what, to whom, and the rest of it
/// as text. Who did it is checked here.
async fn operations(rig: &Rig) -> Vec<(String, String, String)> {
    let request = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let mut events = rig
        .ledger()
        .tail_commands(request)
        .await
        .unwrap()
        .into_inner();
    let mut operations = Vec::new();
    while let Some(message) = soon("an event", events.message()).await.unwrap() {
        if let Some(Item::Event(event)) = message.item
            && let Some(Entry::Operation(operation)) = event.entry
            && operation.who != "ledger"
        {
            operations.push(words(operation));
        }
    }
    operations
}

fn words(operation: pb::Operation) -> (String, String, String) {
    let pb::Operation {
        who,
        what,
        target,
        detail,
    } = operation;
    if what == "cordon-ended" {
        assert_eq!(who, "fleetgate");
    } else {
        let who: SocketAddr = who.parse().unwrap();
        assert!(who.ip().is_loopback(), "{who}");
    }
    let detail = detail.unwrap_or_default().fields;
    let detail: Vec<_> = detail
        .into_iter()
        .map(|(name, value)| format!("{name}={}", text(value)))
        .collect();
    (what, target.unwrap_or_default(), detail.join(" "))
}

fn text(value: prost_types::Value) -> String {
    match value.kind.unwrap() {
        Kind::StringValue(text) => text,
        Kind::BoolValue(value) => value.to_string(),
        Kind::StructValue(fields) => {
            let fields = fields.fields.into_iter();
            let fields = fields.map(|(name, value)| format!("{name}:{}", text(value)));
            fields.collect::<Vec<_>>().join(",")
        }
        Kind::ListValue(list) => {
            let values = list.values.into_iter().map(text);
            values.collect::<Vec<_>>().join(",")
        }
        Kind::NullValue(_) | Kind::NumberValue(_) => panic!("no such detail"),
    }
}

fn row(what: &str, target: &str, detail: &str) -> (String, String, String) {
    (what.to_owned(), target.to_owned(), detail.to_owned())
}

async fn update(
    rig: &Rig,
    device: &str,
    alias: Option<&str>,
    set: &[(&str, &str)],
    remove: &[&str],
) -> Result<pb::Device, Status> {
    let request = pb::UpdateDeviceRequest {
        device: device.to_owned(),
        alias: alias.map(str::to_owned),
        set_labels: set
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        remove_labels: remove.iter().map(ToString::to_string).collect(),
    };
    let reply = rig.fleet().update_device(request).await?;
    Ok(reply.into_inner().device.unwrap())
}

async fn cordon(
    rig: &Rig,
    device: &str,
    reason: &str,
    until: Option<SystemTime>,
) -> Result<pb::Device, Status> {
    let request = pb::CordonDeviceRequest {
        device: device.to_owned(),
        reason: reason.to_owned(),
        until: until.map(Into::into),
    };
    let reply = rig.fleet().cordon_device(request).await?;
    Ok(reply.into_inner().device.unwrap())
}

async fn uncordon(rig: &Rig, device: &str) -> Result<pb::Device, Status> {
    let request = pb::UncordonDeviceRequest {
        device: device.to_owned(),
    };
    let reply = rig.fleet().uncordon_device(request).await?;
    Ok(reply.into_inner().device.unwrap())
}

fn labels(device: &pb::Device) -> Vec<(&str, &str)> {
    let mut labels: Vec<_> = device
        .labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    labels.sort_unstable();
    labels
}

#[tokio::test(flavor = "multi_thread")]
async fn a_phone_is_named_and_labelled_and_is_so_after_a_restart() {
    let rig = Rig::plain(2).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let named = update(
        &rig,
        &udid,
        Some("anna"),
        &[("rack", "7"), ("lab", "3")],
        &[],
    )
    .await;
    let named = named.unwrap();
    assert_eq!(named, device(&rig, "anna").await);
    assert_eq!(named.udid, udid);
    assert_eq!(labels(&named), [("lab", "3"), ("rack", "7")]);
    let told = mirror.until("the name", |seen| {
        let device = seen.devices.get(&udid);
        device.is_some_and(|device| device.alias() == "anna")
    });
    assert_eq!(labels(&told.await.devices[&udid]), labels(&named));
    plain::send(&rig, "anna", CommandKind::Button, "by-name")
        .await
        .unwrap();
    assert_eq!(effects(&rig.phone(0), "by-name").len(), 1);

    // What is so already is done again without a trace.
    update(&rig, "anna", Some("anna"), &[("rack", "7")], &["colour"])
        .await
        .unwrap();
    let renamed = update(&rig, "anna", Some("berta"), &[("lab", "4")], &["rack"]).await;
    assert_eq!(labels(&renamed.unwrap()), [("lab", "4")]);
    let request = pb::GetDeviceRequest {
        device: "anna".to_owned(),
    };
    let gone = refused(rig.fleet().get_device(request).await);
    assert_eq!(
        (gone.code, gone.reason.as_str()),
        (Code::NotFound, "DEVICE_UNKNOWN")
    );

    let expected = [
        row("update-device", &udid, "alias=anna set_labels=lab:3,rack:7"),
        row(
            "update-device",
            &udid,
            "alias=berta removed_labels=rack set_labels=lab:4",
        ),
    ];
    assert_eq!(operations(&rig).await, expected);
    drop(mirror);
    let rig = rig.restart_gateway().await;
    let found = device(&rig, "berta").await;
    assert_eq!(
        (found.udid.as_str(), labels(&found)),
        (udid.as_str(), vec![("lab", "4")])
    );
    let nameless = update(&rig, "berta", Some(""), &[], &["lab"])
        .await
        .unwrap();
    assert_eq!((nameless.alias, nameless.labels.len()), (None, 0));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_phones_only_and_one_of_the_configuration_stays_its_phones() {
    let lab = plain_lab(2, 0.02);
    let phones = [&lab.phones[0], &lab.phones[1]].map(|phone| phone.udid.clone());
    let configured = DeviceConfig {
        alias: Some(Alias::try_from("anna".to_owned()).unwrap()),
        labels: Labels::try_from(BTreeMap::from([("rack".to_owned(), "7".to_owned())])).unwrap(),
        ..DeviceConfig::new(phones[0].clone())
    };
    let devices = Devices::try_from(vec![configured]).unwrap();
    let rig = Rig::configured(lab, |config| config.device = devices).await;
    let [anna, other] = phones.map(|phone| phone.to_string());
    assert_eq!(labels(&device(&rig, "anna").await), [("rack", "7")]);

    let taken = |refusal: Refusal, owner: &str| {
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::AlreadyExists, "ALIAS_TAKEN")
        );
        assert_eq!(refusal.meta("device"), owner);
        assert_eq!(refusal.violations[0].0, "alias");
    };
    taken(
        refused(update(&rig, &other, Some("anna"), &[("lab", "3")], &[]).await),
        &anna,
    );
    assert_eq!(
        device(&rig, &other).await.labels.len(),
        0,
        "nothing of it was done"
    );
    update(&rig, "anna", Some("berta"), &[("rack", "8")], &[])
        .await
        .unwrap();
    taken(
        refused(update(&rig, &other, Some("anna"), &[], &[]).await),
        &anna,
    );
    taken(
        refused(update(&rig, &other, Some("berta"), &[], &[]).await),
        &anna,
    );
    assert_eq!(
        operations(&rig).await.len(),
        1,
        "what was refused leaves no trace"
    );

    let rig = rig.restart_gateway().await;
    let found = device(&rig, &anna).await;
    assert_eq!(
        found.alias(),
        "berta",
        "the ledger goes before the configuration"
    );
    assert_eq!(labels(&found), [("rack", "8")]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acts_that_cannot_be_used_are_refused_field_by_field() {
    let rig = Rig::plain(1).await;
    let udid = rig.udid(0);
    let past = SystemTime::now() - Duration::from_secs(1);
    let long = "x".repeat(257);
    let fields = |refusal: Refusal| {
        assert_eq!(refusal.code, Code::InvalidArgument);
        let fields = refusal.violations.into_iter().map(|(field, _)| field);
        fields.collect::<Vec<_>>()
    };
    let wrong = update(&rig, "", Some("two words"), &[("?", "")], &["!"]).await;
    let expected = ["device", "alias", "set_labels", "remove_labels"];
    assert_eq!(fields(refused(wrong)), expected);
    let wrong = cordon(&rig, " ", "", Some(past)).await;
    assert_eq!(fields(refused(wrong)), ["device", "reason", "until"]);
    assert_eq!(
        fields(refused(cordon(&rig, &udid, &long, None).await)),
        ["reason"]
    );
    assert_eq!(fields(refused(uncordon(&rig, "").await)), ["device"]);
    let request = pb::RecycleRunnerRequest {
        device: String::new(),
        reason: long.clone(),
        force: false,
    };
    let wrong = refused(rig.fleet().recycle_runner(request).await);
    assert_eq!(fields(wrong), ["device", "reason"]);
    let request = pb::DrainGatewayRequest { reason: long };
    let wrong = refused(rig.fleet().drain_gateway(request).await);
    assert_eq!(fields(wrong), ["reason"]);
    let request = pb::ListDeviceTransitionsRequest {
        device: String::new(),
        page_size: -1,
        page_token: "none".to_owned(),
    };
    let wrong = refused(rig.fleet().list_device_transitions(request).await);
    assert_eq!(fields(wrong), ["device", "page_size", "page_token"]);

    for act in [
        update(&rig, "nobody", Some("anna"), &[], &[]).await,
        cordon(&rig, "nobody", "battery", None).await,
        uncordon(&rig, "nobody").await,
    ] {
        let refusal = refused(act);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::NotFound, "DEVICE_UNKNOWN")
        );
    }
    assert_eq!(operations(&rig).await, []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordoned_phone_is_looked_at_and_not_touched() {
    let rig = Rig::start(Scenario::fleet(1).scaled(0.05)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let slow = Injection::Slow {
        by: Duration::from_secs(20),
    };
    phone.fault(Fault::from(slow).on(CommandKind::Tap));
    let mut taps = JoinSet::new();
    taps.spawn(tap(&rig, "in-flight"));
    in_hand(&rig).await;
    taps.spawn(tap(&rig, "waiting"));
    queued(&rig, 1).await;

    let cordoned = cordon(&rig, &udid, "battery swells", None).await.unwrap();
    let told = cordoned.cordon.unwrap();
    assert_eq!((told.reason.as_str(), told.until), ("battery swells", None));
    assert!(told.who.parse::<SocketAddr>().is_ok());
    assert!(moment(told.time) <= SystemTime::now());
    while let Some(answer) = taps.join_next().await {
        answer.unwrap().unwrap();
    }
    assert_eq!(phone.effects().len(), 2, "what was let in is carried out");

    for kind in plain::queued().filter(|kind| kind.is_mutation() || *kind == CommandKind::Viewport)
    {
        let id = format!("refused-{kind}");
        let refusal = refused(plain::send(&rig, &udid, kind, &id).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::FailedPrecondition, "DEVICE_CORDONED"),
            "{kind}"
        );
        assert!(refusal.message.contains("battery swells"), "{refusal:?}");
        assert_eq!(refusal.meta("fate"), "NOT_SENT");
        assert_eq!(refusal.meta("effect"), "NONE");
        assert_eq!(refusal.meta("command_id"), id);
    }
    for kind in [
        CommandKind::Snapshot,
        CommandKind::Screenshot,
        CommandKind::Status,
    ] {
        plain::send(&rig, &udid, kind, &format!("look-{kind}"))
            .await
            .unwrap();
    }
    assert_eq!(phone.effects().len(), 2, "it was not touched");

    let rig = rig.restart_gateway().await;
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "later").await);
    assert_eq!(refusal.reason, "DEVICE_CORDONED", "across a restart");
    let again = cordon(&rig, &udid, "battery swells", None).await.unwrap();
    assert_eq!(again.cordon.unwrap().who, told.who, "nothing has changed");
    let free = uncordon(&rig, &udid).await.unwrap();
    assert_eq!(free.cordon, None);
    uncordon(&rig, &udid).await.unwrap();
    plain::send(&rig, &udid, CommandKind::Tap, "free")
        .await
        .unwrap();
    assert_eq!(effects(&rig.phone(0), "free").len(), 1);
    let expected = [
        row("cordon-device", &udid, "reason=battery swells"),
        row("uncordon-device", &udid, "reason=battery swells"),
    ];
    assert_eq!(operations(&rig).await, expected);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cordon_ends_by_itself_when_its_time_has_come() {
    let rig = Rig::plain(1).await;
    let udid = rig.udid(0);
    let mut mirror = Mirror::follow(rig.channel()).await;
    let until = SystemTime::now() + Duration::from_millis(400);
    let cordoned = cordon(&rig, &udid, "cable", Some(until)).await.unwrap();
    let told = moment(cordoned.cordon.unwrap().until);
    assert!(until.duration_since(told).unwrap() < Duration::from_micros(1));
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Button, "early").await);
    assert_eq!(refusal.reason, "DEVICE_CORDONED");
    assert!(refusal.meta("cordon_until").ends_with('Z'), "{refusal:?}");
    mirror
        .until("the cordon", |seen| seen.devices[&udid].cordon.is_some())
        .await;
    mirror
        .until("its end", |seen| seen.devices[&udid].cordon.is_none())
        .await;
    assert!(SystemTime::now() >= until);
    plain::send(&rig, &udid, CommandKind::Button, "late")
        .await
        .unwrap();

    // One that runs out while nobody is there to end it.
    let until = SystemTime::now() + Duration::from_millis(50);
    cordon(&rig, &udid, "cable", Some(until)).await.unwrap();
    drop(mirror);
    let paused = rig.pause().await;
    let rest = until.duration_since(SystemTime::now()).unwrap_or_default();
    tokio::time::sleep(rest).await;
    let rig = paused.resume().await;
    plain::send(&rig, &udid, CommandKind::Button, "next")
        .await
        .unwrap();
    soon("the record", async {
        while operations(&rig).await.len() < 4 {
            pause().await;
        }
    })
    .await;
    let told: Vec<_> = operations(&rig)
        .await
        .into_iter()
        .map(|(what, ..)| what)
        .collect();
    assert_eq!(
        told,
        [
            "cordon-device",
            "cordon-ended",
            "cordon-device",
            "cordon-ended"
        ]
    );
    rig.stop().await;
}

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
    let mut ledger = LedgerServiceClient::new(connect(&server.url).await);
    let request = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let mut events = ledger.tail_commands(request).await.unwrap().into_inner();
    let mut drains = Vec::new();
    while let Some(message) = soon("an event", events.message()).await.unwrap() {
        if let Some(Item::Event(event)) = message.item
            && let Some(Entry::Operation(operation)) = event.entry
            && operation.what == "drain-gateway"
        {
            drains.push(words(operation));
        }
    }
    assert_eq!(drains, [row("drain-gateway", "", "reason=moving the rack")]);
    assert_eq!(server.end().await, Some(0));
    lab.shutdown().await;
}
