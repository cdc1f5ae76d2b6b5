//! One id, one command: what is on record is not sent a second time, whoever
//! asks for it.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Arrival, Injection, Phone};
use fleetgate_tests::facts::effects;
use fleetgate_tests::plain::Head;
use fleetgate_tests::{APP, Refusal, Rig, pause, plain, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

/// Sends what must not reach any phone, nor change what is on record.
async fn again(
    rig: &Rig,
    n: usize,
    kind: CommandKind,
    command_id: &str,
) -> Result<pb::CommandReceipt, Refusal> {
    // That a fate which is unknown is still asked about is nothing sent.
    let arrived = || {
        let phones = rig.lab.phones();
        let arrivals = phones.iter().flat_map(Phone::arrivals);
        arrivals
            .filter(|arrival| !arrival.kind.bypasses_queue())
            .count()
    };
    let before = (rig.find(command_id).await, arrived());
    let answer = plain::send(rig, &rig.udid(n), kind, command_id).await;
    let after = (rig.find(command_id).await, arrived());
    assert_eq!(after, before, "the record stands, and nothing was sent");
    answer.map_err(Refusal::from)
}

/// Asserts that the id cannot be used for anything else.
async fn assert_used(rig: &Rig, n: usize, kind: CommandKind, command_id: &str, field: &str) {
    let refusal = again(rig, n, kind, command_id).await.unwrap_err();
    assert_eq!(refusal.code, Code::AlreadyExists, "{refusal:?}");
    assert_eq!(refusal.reason, "COMMAND_ID_CONFLICT", "{refusal:?}");
    let fields: Vec<_> = refusal.violations.iter().map(|(field, _)| field).collect();
    assert!(fields.iter().any(|name| *name == field), "{fields:?}");
    assert_eq!(refusal.meta("command_id"), command_id);
    let proved = (refusal.meta("fate"), refusal.meta("effect"));
    assert_eq!(proved, ("NOT_SENT", "NONE"), "{refusal:?}");
    assert_ne!(refusal.meta("hint"), "");
    assert_eq!(refusal.retry_delay, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_of_a_recorded_mutation_is_never_sent_again() {
    let mut rig = Rig::plain(2).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let tap = CommandKind::Tap;
    let mut told = Vec::new();
    told.push((
        "completed",
        1,
        plain::send(&rig, &udid, tap, "completed").await,
    ));
    phone.fault(Injection::ConnectResult { number: 3 });
    told.push((
        "not-sent",
        0,
        plain::send(&rig, &udid, tap, "not-sent").await,
    ));
    phone.fault(Injection::ReplyLostAfterExecution);
    phone.fault(Injection::JournalEvicted);
    told.push(("unknown", 1, plain::send(&rig, &udid, tap, "unknown").await));
    let told: Vec<_> = told
        .into_iter()
        .map(|(id, times, answer)| (id, times, answer.map_err(Refusal::from)))
        .collect();
    for restarted in [false, true] {
        if restarted {
            rig = rig.restart_gateway().await;
        }
        for (id, times, first) in &told {
            match (again(&rig, 0, tap, id).await, first) {
                (Ok(receipt), Ok(first)) => {
                    assert!(receipt.replayed && !first.replayed, "{receipt:?}");
                    assert_eq!(receipt.command_id, first.command_id);
                    assert_eq!(receipt.fate, first.fate);
                    assert_eq!(receipt.effect, first.effect);
                }
                (Err(refusal), Err(first)) => {
                    assert_eq!(refusal.meta("replayed"), "true", "{refusal:?}");
                    assert_eq!(refusal.reason, first.reason);
                    for fact in ["command_id", "device", "fate", "effect"] {
                        assert_eq!(refusal.meta(fact), first.meta(fact), "{fact}");
                    }
                }
                (again, first) => panic!("{id}: {first:?}, and then {again:?}"),
            }
            assert_used(&rig, 0, CommandKind::LongPress, id, "kind").await;
            assert_used(&rig, 1, tap, id, "device").await;
            assert_eq!(effects(&phone, id).len(), *times, "{id}");
        }
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_at_once_with_one_id_exactly_one_is_sent() {
    let rig = Rig::plain(2).await;
    let mut calls = JoinSet::new();
    for n in 0..16 {
        let (mut client, udid) = (rig.automation(), rig.udid(n % 2));
        calls.spawn(async move {
            let request = pb::PressButtonRequest {
                device: udid,
                command_id: Some("once".to_owned()),
                lease: None,
                button: pb::Button::VolumeUp.into(),
            };
            client.press_button(request).await
        });
    }
    let answers = soon("sixteen answers", calls.join_all()).await;
    let (done, failed): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert!(!done.is_empty());
    for answer in failed {
        assert_eq!(refused(answer).code, Code::AlreadyExists);
    }
    let times: usize = (0..2).map(|n| effects(&rig.phone(n), "once").len()).sum();
    assert_eq!(times, 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_asks_again_at_any_moment_is_told_what_became_of_it_whatever_befell_the_phone() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    for round in 0..30 {
        let id = format!("again-{round}");
        let tap = || {
            let head = Head {
                device: udid.clone(),
                command_id: Some(id.clone()),
                lease: None,
                app_bundle_id: APP.to_owned(),
            };
            plain::send_over(rig.automation(), CommandKind::Tap, head)
        };
        let mut taps = JoinSet::new();
        taps.spawn(tap());
        let came = |arrival: &Arrival| {
            arrival
                .command_id
                .as_ref()
                .is_some_and(|it| it.as_str() == id)
        };
        soon("the tap", async {
            while !phone.arrivals().iter().any(came) {
                pause().await;
            }
        })
        .await;
        let mut fleet = rig.fleet();
        let cordon = pb::CordonDeviceRequest {
            device: udid.clone(),
            reason: "a new screen".to_owned(),
            until: None,
        };
        fleet.cordon_device(cordon).await.unwrap();
        // Around its end, wherever that is.
        for _ in 0..40 {
            while taps.len() < 8 {
                taps.spawn(tap());
            }
            let told = taps.join_next().await.unwrap().unwrap().unwrap();
            assert_eq!(told.fate(), pb::Fate::Completed, "{told:?}");
        }
        for told in taps.join_all().await {
            assert_eq!(told.unwrap().fate(), pb::Fate::Completed, "{id}");
        }
        assert_eq!(effects(&phone, &id).len(), 1, "{id}");
        let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "other").await);
        assert_eq!(refusal.reason, "DEVICE_CORDONED");
        let device = udid.clone();
        let uncordon = pb::UncordonDeviceRequest { device };
        fleet.uncordon_device(uncordon).await.unwrap();
    }
    rig.stop().await;
}
