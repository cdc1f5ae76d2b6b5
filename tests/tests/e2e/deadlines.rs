//! Callers that stop waiting, by their deadline or for good: they are told so
//! in time, and what they asked for goes on to a fate on record.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandRecord, Effect, Fate};
use fleetgate_runner::CommandKind;
use fleetgate_simulator::{Fault, Injection, Scenario};
use fleetgate_tests::bare::Bare;
use fleetgate_tests::facts::{clean, effects};
use fleetgate_tests::lane::{Plug, queued, tap, tap_request};
use fleetgate_tests::outcome::Outcome;
use fleetgate_tests::{APP, Rig, pause, refused, soon};
use tokio::task::JoinSet;
use tonic::Code;

/// What a command that was still waiting at its deadline is told.
const IN_QUEUE: Outcome = Outcome {
    attempts: 0,
    ..Outcome::not_sent(Code::DeadlineExceeded, "DEADLINE_IN_QUEUE")
};

/// A phone in its own time, whose next command of this kind takes two seconds.
async fn slow(kind: CommandKind) -> Rig {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let by = Duration::from_secs(2);
    rig.phone(0)
        .fault(Fault::from(Injection::Slow { by }).on(kind));
    rig
}

fn snapshot_request(rig: &Rig, command_id: &str) -> pb::CaptureSnapshotRequest {
    pb::CaptureSnapshotRequest {
        device: rig.udid(0),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    }
}

#[track_caller]
fn assert_completed(row: &CommandRecord) {
    assert_eq!(
        (
            row.fate(),
            row.effect(),
            row.attempts,
            row.reason.as_deref()
        ),
        (Fate::Completed, Effect::Applied, 1, None),
        "{row:?}"
    );
    assert!(!row.recovered, "{row:?}");
}

/// Asserts that nothing is known of a command but that it was asked for.
#[track_caller]
fn assert_open(row: &CommandRecord) {
    assert_eq!(
        (row.fate(), row.effect(), row.attempts),
        (Fate::Unspecified, Effect::Unspecified, 0),
        "{row:?}"
    );
    assert!(row.create_time.is_some() && row.conclude_time.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_that_outlasts_its_deadline_is_overdue_and_then_completed_on_record() {
    let rig = slow(CommandKind::Tap).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let bare = Bare::connect(&rig).await;
    let mut client = bare.automation(Some("500m"));
    let refusal = refused(client.tap(tap_request(&udid, "overdue")).await);

    Outcome::overdue().assert_refusal(&udid, "overdue", &refusal);
    assert_open(&rig.find("overdue").await.unwrap());
    assert_eq!(effects(&phone, "overdue"), [""; 0], "it is still at it");
    assert_completed(&rig.concluded("overdue").await);
    assert_eq!(effects(&phone, "overdue").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_whose_caller_hangs_up_is_completed_on_record() {
    let rig = slow(CommandKind::Tap).await;
    let phone = rig.phone(0);
    let mut call = JoinSet::new();
    call.spawn(tap(&rig, "orphan"));
    phone
        .wait_until(|report| report.arrivals_of(CommandKind::Tap) == 1)
        .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    call.shutdown().await;

    assert_open(&rig.find("orphan").await.unwrap());
    assert_completed(&rig.concluded("orphan").await);
    assert_eq!(effects(&phone, "orphan").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_whose_callers_connection_breaks_is_completed_on_record() {
    let rig = slow(CommandKind::Tap).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let bare = Bare::connect(&rig).await;
    let mut client = bare.automation(None);
    let call = client.tap(tap_request(&udid, "orphan"));
    let tear = async {
        phone
            .wait_until(|report| report.arrivals_of(CommandKind::Tap) == 1)
            .await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        bare.tear();
    };
    let (broken, ()) = tokio::join!(call, tear);

    assert_eq!(refused(broken).reason, "", "nobody could say anything");
    assert_open(&rig.find("orphan").await.unwrap());
    assert_completed(&rig.concluded("orphan").await);
    assert_eq!(effects(&phone, "orphan").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_outlasts_its_deadline_may_be_asked_for_again() {
    let rig = slow(CommandKind::Snapshot).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let bare = Bare::connect(&rig).await;
    let mut client = bare.automation(Some("500m"));
    let refusal = refused(
        client
            .capture_snapshot(snapshot_request(&rig, "late"))
            .await,
    );

    let harmless = Outcome {
        retry: true,
        ..Outcome::overdue()
    };
    harmless.assert_refusal(&udid, "late", &refusal);
    assert_open(&rig.find("late").await.unwrap());
    assert_completed(&rig.concluded("late").await);
    assert_eq!(phone.report().arrivals_of(CommandKind::Snapshot), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_leaves_enough_time_changes_nothing() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let bare = Bare::connect(&rig).await;
    for (id, timeout) in [("minute", "1M"), ("half", "30S"), ("micros", "30000000u")] {
        let mut client = bare.automation(Some(timeout));
        let reply = client.tap(tap_request(&rig.udid(0), id)).await.unwrap();
        clean(reply.into_inner().receipt, id);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_passes_in_the_queue_is_not_sent_and_gives_its_place_back() {
    let one = |config: &mut fleetgate_gateway::Config| {
        config.lane.capacity = 1.try_into().unwrap();
    };
    let rig = Rig::configured(Scenario::fleet(1), one).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let plug = Plug::hold(&rig).await;
    let bare = Bare::connect(&rig).await;
    let mut client = bare.automation(Some("300m"));
    let refusal = refused(client.tap(tap_request(&udid, "late")).await);

    let row = IN_QUEUE
        .assert(&rig, &udid, CommandKind::Tap, "late", &refusal)
        .await;
    assert!(
        row.queue_wait
            .is_some_and(|wait| wait.nanos > 0 || wait.seconds > 0)
    );
    // The one place is free, and the one after it is taken.
    let mut next = JoinSet::new();
    next.spawn(tap(&rig, "next"));
    queued(&rig, 1).await;
    let refusal = refused(tap(&rig, "full").await);
    assert_eq!(refusal.reason, "LANE_FULL");

    plug.release().await;
    let reply = next.join_next().await.unwrap().unwrap().unwrap();
    clean(reply.receipt, "next");
    let arrived = phone.arrivals().into_iter();
    let taps: Vec<_> = arrived
        .filter(|arrival| arrival.kind == CommandKind::Tap)
        .filter_map(|arrival| arrival.command_id)
        .collect();
    assert_eq!(taps, ["plug", "next"].map(|id| id.parse().unwrap()));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_that_has_passed_on_arrival_is_not_sent() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let bare = Bare::connect(&rig).await;
    let mut ids = Vec::new();
    for timeout in ["0m", "1n"] {
        let mut client = bare.automation(Some(timeout));
        // Whether an id of the caller's was used before, there is no time to
        // find out; one that is minted here is new.
        let request = pb::TapRequest {
            command_id: None,
            ..tap_request(&udid, "")
        };
        let refusal = refused(client.tap(request).await);
        let id = refusal.meta("command_id").to_owned();
        IN_QUEUE
            .assert(&rig, &udid, CommandKind::Tap, &id, &refusal)
            .await;
        ids.push(id);
    }
    let request = pb::GetCommandRequest {
        command_id: ids.remove(0),
    };
    let refusal = refused(bare.ledger(Some("0m")).get_command(request).await);
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED")
    );
    let report = phone.report();
    assert_eq!((report.arrivals.len(), report.effects_total), (0, 0));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_deadline_is_refused_and_nothing_is_done() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let bare = Bare::connect(&rig).await;
    for timeout in ["soon", "500", "m", "-1S", "1.5S", "123456789m", "5 S"] {
        let mut client = bare.automation(Some(timeout));
        let refusal = refused(client.tap(tap_request(&udid, "odd")).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::InvalidArgument, "INVALID_ARGUMENT"),
            "{timeout}"
        );
        assert!(refusal.message.contains("grpc-timeout"), "{refusal:?}");
        assert_eq!(refusal.retry_delay, None);
    }
    assert_eq!(rig.find("odd").await, None);
    let report = phone.report();
    assert_eq!((report.arrivals.len(), report.effects_total), (0, 0));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_be_looked_up_while_it_waits_and_while_it_is_in_flight() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let udid = rig.udid(0);
    let plug = Plug::hold(&rig).await;
    let mut waiting = JoinSet::new();
    waiting.spawn(tap(&rig, "waits"));
    queued(&rig, 1).await;

    for id in ["plug", "waits"] {
        let row = rig.find(id).await.unwrap();
        assert_open(&row);
        assert_eq!(
            (row.command_id.as_str(), row.device.as_str()),
            (id, udid.as_str())
        );
        assert_eq!(row.kind(), pb::CommandKind::Tap);
        assert_eq!(row.app_bundle_id.as_deref(), Some(APP));
    }
    assert!(plug.release().await.recovered);
    assert_eq!(rig.find("plug").await.unwrap().fate(), Fate::Completed);
    waiting.join_next().await.unwrap().unwrap().unwrap();
    assert_completed(&rig.find("waits").await.unwrap());
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_waits_without_a_caller_mutations_are_done_and_reads_are_dropped() {
    let rig = Rig::start(Scenario::fleet(1)).await;
    let phone = rig.phone(0);
    let plug = Plug::hold(&rig).await;
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "asked"));
    queued(&rig, 1).await;
    let (mut client, request) = (rig.automation(), snapshot_request(&rig, "unread"));
    calls.spawn(async move {
        client.capture_snapshot(request).await?;
        panic!("nobody waits for it");
    });
    queued(&rig, 2).await;
    calls.shutdown().await;
    soon("the snapshot to be forgotten", async {
        while rig.find("unread").await.is_some() {
            pause().await;
        }
    })
    .await;

    plug.release().await;
    assert_completed(&rig.concluded("asked").await);
    assert_eq!(effects(&phone, "asked").len(), 1);
    // Had the snapshot been next in the lane, it would be before this.
    tap(&rig, "last").await.unwrap();
    assert_eq!(phone.report().arrivals_of(CommandKind::Snapshot), 0);
    rig.stop().await;
}
