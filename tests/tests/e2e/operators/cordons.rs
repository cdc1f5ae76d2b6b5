//! Phones that are taken out of service, and put into it again.

use std::time::{Duration, SystemTime};

use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::facts::{effects, moment};
use fleetgate_tests::lane::{in_hand, queued, tap};
use fleetgate_tests::mirror::Mirror;
use fleetgate_tests::{Rig, pause, plain, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

use super::{cordon, operations, row, uncordon};

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
    assert_eq!(told.who, "anonymous");
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
