//! Case 4: one phone, however its UDID is spelt, by usbmuxd or by an operator.

use std::collections::BTreeSet;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::ledger_event::Entry;
use fleetgate_proto::v1::tail_commands_response::Item;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::{effects, rows};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, history, launching, plain, plain_lab, refused, soon};

use super::{LAUNCHED, LAUNCHING, PLUGGED, assert_history, listed, until_launches};

const DASHED: &str = "00008020-00060D691AD8003A";
const LONG: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567";

/// Every act of an operator, each under another spelling.
async fn act(rig: &Rig, udid: &str, spellings: &[&str]) {
    let mut spellings = spellings.iter().copied().cycle();
    let mut next = || spellings.next().unwrap().to_owned();
    let mut fleet = rig.fleet();
    let request = pb::UpdateDeviceRequest {
        device: next(),
        alias: None,
        set_labels: [("rack".to_owned(), "7".to_owned())].into(),
        remove_labels: Vec::new(),
    };
    let updated = fleet.update_device(request).await.unwrap().into_inner();
    assert_eq!(updated.device.unwrap().udid, udid);
    let request = pb::CordonDeviceRequest {
        device: next(),
        reason: "battery".to_owned(),
        until: None,
    };
    let cordoned = fleet.cordon_device(request).await.unwrap().into_inner();
    assert_eq!(cordoned.device.unwrap().udid, udid);
    // A phone that is out of service under one name is so under each.
    for _ in 0..4 {
        let tap = plain::send(rig, &next(), CommandKind::Tap, "cordoned").await;
        let refusal = refused(tap);
        assert_eq!(refusal.reason, "DEVICE_CORDONED");
        assert_eq!(refusal.meta("device"), udid);
    }
    let request = pb::UncordonDeviceRequest { device: next() };
    let free = fleet.uncordon_device(request).await.unwrap().into_inner();
    assert_eq!(free.device.unwrap().cordon, None);
    let request = pb::RecycleRunnerRequest {
        device: next(),
        reason: String::new(),
        force: false,
    };
    let recycled = fleet.recycle_runner(request).await.unwrap().into_inner();
    assert_eq!(recycled.device.unwrap().udid, udid);
}

/// What was done to whom, by operators.
async fn operations(rig: &Rig) -> Vec<(String, String)> {
    let request = pb::TailCommandsRequest {
        until_now: true,
        ..pb::TailCommandsRequest::default()
    };
    let events = rig.ledger().tail_commands(request).await;
    let mut events = events.unwrap().into_inner();
    let mut operations = Vec::new();
    while let Some(message) = soon("an event", events.message()).await.unwrap() {
        if let Some(Item::Event(event)) = message.item
            && let Some(Entry::Operation(operation)) = event.entry
            && operation.who != "ledger"
            && let Some(target) = operation.target
        {
            operations.push((operation.what, target));
        }
    }
    operations
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_done_under_whatever_spelling_is_done_to_one_phone() {
    let upper = LONG.to_uppercase();
    let dashed = [
        "0000802000060d691ad8003a",
        DASHED,
        "00008020-00060d691ad8003a",
        "0000802000060D691AD8003A",
    ];
    let long = [upper.as_str(), LONG];
    let phones = [(DASHED, &dashed[..]), (LONG, &long[..])];
    let mut lab = plain_lab(2, 0.02);
    for (phone, (udid, spellings)) in lab.phones.iter_mut().zip(phones) {
        phone.udid = udid.parse().unwrap();
        spellings[0].clone_into(&mut phone.serial);
    }
    let rig = launching::rig(lab, |_| {}).await;
    let mut mirror = Mirror::follow(rig.channel()).await;
    for (n, (udid, spellings)) in phones.into_iter().enumerate() {
        until_launches(&mut mirror, udid, 1).await;
        act(&rig, udid, spellings).await;
        until_launches(&mut mirror, udid, 2).await;

        // One command id under every spelling is one command.
        let id = format!("once-{n}");
        for (nth, spelling) in spellings.iter().enumerate() {
            let receipt = plain::send(&rig, spelling, CommandKind::Tap, &id).await;
            assert_eq!(receipt.unwrap().replayed, nth > 0, "{spelling}");
        }
        assert_eq!(effects(&rig.phone(n), &id).len(), 1);
        for spelling in spellings {
            let found = history::rows(rig.channel(), spelling).await;
            assert_eq!(found, history::rows(rig.channel(), udid).await);
            assert!(found.iter().all(|row| row.device == udid));
        }
        assert_history(
            &rig,
            udid,
            &[
                PLUGGED,
                LAUNCHING,
                LAUNCHED,
                "READY RECYCLE_REQUESTED RECYCLING",
                "RECYCLING LAUNCHING LAUNCHING",
                LAUNCHED,
            ],
        )
        .await;
    }

    let canonical: BTreeSet<_> = phones.map(|(udid, _)| udid.to_owned()).into();
    let devices = listed(&rig).await;
    assert_eq!(devices.len(), 2);
    let watched = mirror.look(|seen| seen.devices.keys().cloned().collect::<BTreeSet<_>>());
    assert_eq!(watched, canonical, "nobody else was told of");
    let commands = rows(&rig).await.into_iter();
    assert_eq!(
        commands.map(|row| row.device).collect::<BTreeSet<_>>(),
        canonical
    );
    let mut expected = Vec::new();
    for (udid, _) in phones {
        for what in [
            "update-device",
            "cordon-device",
            "uncordon-device",
            "recycle-runner",
        ] {
            expected.push((what.to_owned(), udid.to_owned()));
        }
    }
    assert_eq!(operations(&rig).await, expected);
    rig.stop().await;
}
