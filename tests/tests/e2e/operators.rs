//! What operators do: to whom, on whose record, with what effect on the phone,
//! and what is left of it after a restart.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use fleetgate_gateway::config::{Alias, DeviceConfig, Devices, Labels};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::effects;
use fleetgate_tests::lane::device;
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Refusal, Rig, plain, plain_lab, refused, soon};
use prost_types::value::Kind;
use tonic::transport::Channel;
use tonic::{Code, Status};

mod asking;
mod cordons;
mod gateways;
mod leased;

/// What was done: what, to whom, and the rest of it as text.
type Row = (String, String, String);

/// What operators did, as the ledger has it. Who did it is checked here.
async fn operations(rig: &Rig) -> Vec<Row> {
    operations_over(rig.channel()).await
}

async fn operations_over(channel: Channel) -> Vec<Row> {
    let request = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let events = LedgerServiceClient::new(channel)
        .tail_commands(request)
        .await;
    let mut events = events.unwrap().into_inner();
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

fn words(operation: pb::Operation) -> Row {
    let pb::Operation {
        who,
        what,
        target,
        detail,
    } = operation;
    if what == "cordon-ended" {
        assert_eq!(who, "fleetgate");
    } else {
        assert_eq!(who, "anonymous");
    }
    let mut detail = detail.unwrap_or_default().fields;
    let address = detail.remove("address").map(text);
    let address = address.map(|address| address.parse::<SocketAddr>().unwrap());
    let is_near = address.map(|address| address.ip().is_loopback());
    assert_eq!(is_near, (what != "cordon-ended").then_some(true));
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

fn row(what: &str, target: &str, detail: &str) -> Row {
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
