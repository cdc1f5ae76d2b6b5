//! Many callers: one command at a time on a phone, in the order in which they
//! came, and no phone that waits for another.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Arrival, Fault, Injection, Phone, Scenario};
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::lane::{Plug, device, queued, tap, tap_request};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::{APP, Rig, pause, plain, refused, soon};
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tonic::{Code, Status};

/// One phone in its own time.
async fn real_time() -> Rig {
    Rig::start(Scenario::fleet(1)).await
}

/// The ids of the commands that the runner read, but for the plug and its
/// recovery, in order.
fn arrived(phone: &Phone) -> Vec<String> {
    let other = |arrival: &Arrival| {
        let id = arrival.command_id.as_ref().map(ToString::to_string);
        id.filter(|id| id != "plug")
    };
    phone.arrivals().iter().filter_map(other).collect()
}

fn snapshot(
    rig: &Rig,
    command_id: &str,
    app: &str,
) -> impl Future<Output = Result<pb::CaptureSnapshotResponse, Status>> + Send + 'static {
    let mut client = rig.automation();
    let request = pb::CaptureSnapshotRequest {
        device: rig.udid(0),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: app.to_owned(),
    };
    async move { Ok(client.capture_snapshot(request).await?.into_inner()) }
}

/// Waits until the gateway knows of all these commands.
async fn admitted(rig: &Rig, ids: &[String]) {
    soon("the admission of all", async {
        for id in ids {
            while rig.find(id).await.is_none() {
                pause().await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_have_their_turns_one_by_one_in_the_order_they_came() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    let plug = Plug::hold(&rig).await;
    let ids: Vec<_> = (0..64).map(|n| format!("tap-{n}")).collect();
    let mut calls = JoinSet::new();
    for (id, waiting) in ids.iter().zip(1..) {
        calls.spawn(tap(&rig, id));
        queued(&rig, waiting).await;
    }
    plug.release().await;

    let replies = soon("every reply", calls.join_all()).await;
    assert_eq!(replies.len(), 64);
    for reply in replies {
        let receipt = reply.unwrap().receipt.unwrap();
        let id = receipt.command_id.clone();
        clean(Some(receipt), &id);
        assert_eq!(effects(&phone, &id).len(), 1, "{id}");
    }
    assert_eq!(arrived(&phone), ids);
    assert_eq!(phone.max_in_flight(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_at_once_are_never_two_at_once_on_the_phone() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    let channels = join_all((0..8).map(|_| rig.connect())).await;
    let mut calls = JoinSet::new();
    for n in 0..64 {
        let channel = channels[n % channels.len()].clone();
        let mut client = pb::automation_service_client::AutomationServiceClient::new(channel);
        let request = tap_request(&rig.udid(0), &format!("tap-{n}"));
        calls.spawn(async move { client.tap(request).await });
    }
    for reply in soon("every reply", calls.join_all()).await {
        let receipt = reply.unwrap().into_inner().receipt.unwrap();
        assert_eq!(effects(&phone, &receipt.command_id).len(), 1);
    }
    let report = phone.report();
    assert_eq!((report.max_in_flight, report.effects_total), (1, 64));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_lane_lets_nobody_in_and_says_when_to_come_back() {
    let two = |config: &mut fleetgate_gateway::Config| {
        config.lane.capacity = 2.try_into().unwrap();
    };
    let rig = Rig::configured(Scenario::fleet(1), two).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let plug = Plug::hold(&rig).await;
    let mut calls = JoinSet::new();
    for (id, waiting) in [("one", 1), ("two", 2)] {
        calls.spawn(tap(&rig, id));
        queued(&rig, waiting).await;
    }
    let refusal = refused(tap(&rig, "three").await);

    let full = Outcome {
        attempts: 0,
        ..Outcome::not_sent(Code::ResourceExhausted, "LANE_FULL")
    };
    full.assert_refusal(&udid, "three", &refusal);
    // A flood must not become a flood of writes.
    assert_eq!(rig.find("three").await, None);

    plug.release().await;
    for reply in calls.join_all().await {
        reply.unwrap();
    }
    assert_eq!(arrived(&phone), ["one", "two"]);
    clean(tap(&rig, "three").await.unwrap().receipt, "three");
    assert_eq!(effects(&phone, "three").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_phones_are_at_work_at_the_same_moment() {
    let rig = Rig::start(Scenario::fleet(50)).await;
    let by = Duration::from_secs(5);
    let phones = rig.lab.phones();
    for phone in &phones {
        phone.fault(Injection::Slow { by });
    }
    let calls = join_all(phones.iter().map(async |phone| {
        let udid = phone.udid().to_string();
        let id = format!("tap-{udid}");
        let receipt = plain::send(&rig, &udid, CommandKind::Tap, &id)
            .await
            .unwrap();
        clean(Some(receipt), &id);
        assert_eq!((effects(phone, &id).len(), phone.max_in_flight()), (1, 1));
    }));
    let all = rig.lab.wait_until(|load| load.in_flight == 50);
    let (load, _) = tokio::join!(soon("fifty in flight", all), calls);
    assert_eq!(load.max_in_flight, 50);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_phone_holds_up_nobody_elses() {
    let rig = Rig::start(Scenario::fleet(3)).await;
    let plug = Plug::hold(&rig).await;
    let mut behind = JoinSet::new();
    behind.spawn(tap(&rig, "behind"));
    queued(&rig, 1).await;
    for n in 0..40 {
        let (udid, id) = (rig.udid(1 + n % 2), format!("tap-{n}"));
        let receipt = plain::send(&rig, &udid, CommandKind::Tap, &id)
            .await
            .unwrap();
        clean(Some(receipt), &id);
    }
    let stuck = device(&rig, &rig.udid(0)).await;
    assert_eq!(stuck.command_in_flight.as_deref(), Some("plug"));
    assert_eq!(stuck.queued_commands, 1);
    plug.release().await;
    behind.join_next().await.unwrap().unwrap().unwrap();
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_answers_while_a_command_is_stuck() {
    let rig = real_time().await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Fault::from(Injection::NeverEnds).on(CommandKind::Tap));
    let mut stuck = JoinSet::new();
    stuck.spawn(tap(&rig, "stuck"));
    phone
        .wait_until(|report| report.in_flight == 1 && report.faults.is_empty())
        .await;

    let request = pb::GetRunnerStatusRequest {
        device: udid.clone(),
    };
    let status = rig.automation().get_runner_status(request).await.unwrap();
    // Executing is not what the runner calls busy.
    assert_eq!(status.get_ref().state(), pb::RunnerState::Idle);
    let request = pb::GetRunnerCommandStatusRequest {
        device: udid.clone(),
        command_id: "stuck".to_owned(),
    };
    let entry = rig.automation().get_runner_command_status(request).await;
    assert_eq!(entry.unwrap().get_ref().state(), pb::JournalState::Started);
    assert_eq!(phone.report().in_flight, 1);
    assert_eq!(rig.find("stuck").await.unwrap().fate(), Fate::Unspecified);

    phone.restart_runner(fleetgate_simulator::scenario::DEFAULT_PORT);
    let refusal = refused(stuck.join_next().await.unwrap().unwrap());
    Outcome::unknown()
        .assert(&rig, &udid, CommandKind::Tap, "stuck", &refusal)
        .await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_equal_snapshots_are_one_exchange_and_one_entry() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    let plug = Plug::hold(&rig).await;
    let by = Duration::from_secs(1);
    phone.fault(Fault::from(Injection::Slow { by }).on(CommandKind::Snapshot));
    let ids: Vec<_> = (0..20).map(|n| format!("snapshot-{n}")).collect();
    let mut calls = JoinSet::new();
    for id in &ids {
        calls.spawn(snapshot(&rig, id, APP));
    }
    admitted(&rig, &ids).await;
    plug.release().await;

    let replies: Vec<_> = calls
        .join_all()
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    assert_eq!(replies.len(), 20);
    let first = &replies[0];
    assert!(!first.nodes.is_empty());
    assert!(
        replies.iter().all(|reply| reply == first),
        "one answer for all"
    );
    let shared = &first.receipt.as_ref().unwrap().command_id;
    assert_eq!(arrived(&phone), std::slice::from_ref(shared));
    for id in &ids {
        assert_eq!(rig.find(id).await.is_some(), id == shared, "{id}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_shared_neither_between_apps_nor_past_a_mutation() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    let other = "com.example.mail";
    let plug = Plug::hold(&rig).await;
    let mut calls = JoinSet::new();
    calls.spawn(snapshot(&rig, "ours", APP));
    queued(&rig, 1).await;
    let (mail, mut told) = (snapshot(&rig, "theirs", other), JoinSet::new());
    told.spawn(async move { refused(mail.await).reason });
    queued(&rig, 2).await;
    let mut tapped = JoinSet::new();
    tapped.spawn(tap(&rig, "tap"));
    queued(&rig, 3).await;
    calls.spawn(snapshot(&rig, "after", APP));
    queued(&rig, 4).await;
    plug.release().await;

    assert!(calls.join_all().await.iter().all(Result::is_ok));
    assert_eq!(told.join_all().await, ["APP_NOT_AVAILABLE"]);
    assert!(tapped.join_all().await.iter().all(Result::is_ok));
    assert_eq!(arrived(&phone), ["ours", "theirs", "tap", "after"]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_comes_between_a_viewport_and_the_tap_that_it_was_read_for() {
    let rig = real_time().await;
    let phone = rig.phone(0);
    let plug = Plug::hold(&rig).await;
    let mut calls = JoinSet::new();
    for n in 0..12_u32 {
        let mut client = rig.automation();
        let mut request = tap_request(&rig.udid(0), &format!("tap-{n}"));
        if n % 2 == 0 {
            request.point = plain::normalized(0.5, 0.5);
        }
        calls.spawn(async move { client.tap(request).await });
        queued(&rig, n + 1).await;
    }
    let before = phone.arrivals().len();
    plug.release().await;

    for reply in calls.join_all().await {
        let receipt = reply.unwrap().into_inner().receipt.unwrap();
        assert_eq!(
            (receipt.fate(), receipt.effect(), receipt.attempts),
            (Fate::Completed, Effect::Applied, 1)
        );
    }
    let order: Vec<_> = phone.arrivals()[before..]
        .iter()
        .filter(|arrival| arrival.kind != CommandKind::CommandStatus)
        .map(|arrival| {
            if arrival.kind == CommandKind::Tap {
                arrival.command_id.as_ref().unwrap().to_string()
            } else {
                arrival.kind.to_string()
            }
        })
        .collect();
    let expected: Vec<_> = (0..12)
        .flat_map(|n| {
            let viewport = (n % 2 == 0).then(|| "viewport".to_owned());
            viewport.into_iter().chain([format!("tap-{n}")])
        })
        .collect();
    assert_eq!(order, expected);
    assert_eq!(phone.max_in_flight(), 1);
    let middle = effects(&phone, "tap-0").remove(0);
    assert!(middle.starts_with("tap at (196.5, 426.0)"), "{middle}");
    rig.stop().await;
}
