//! A command id that is used again for the same request: it gets the same
//! outcome, and nothing happens twice.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::bare::Bare;
use fleetgate_tests::facts::{effects, rows};
use fleetgate_tests::lane::{in_hand, queued, slow, tap, tap_request};
use fleetgate_tests::{Rig, plain, refused};
use futures_util::future::join_all;
use tokio::task::JoinSet;
use tonic::{Code, Status};

/// A reply without the one thing in which a replay may differ.
fn as_first_told(reply: pb::TapResponse) -> pb::TapResponse {
    let receipt = reply.receipt.map(|receipt| pb::CommandReceipt {
        replayed: false,
        ..receipt
    });
    pb::TapResponse { receipt, ..reply }
}

/// Asserts that a call was answered from the record with just this reply.
#[track_caller]
fn assert_replay(again: &pb::TapResponse, first: &pb::TapResponse) {
    assert!(again.receipt.as_ref().unwrap().replayed, "{again:?}");
    assert_eq!(as_first_told(again.clone()), *first);
}

/// A tap with a `grpc-timeout` that its client itself does not keep.
async fn tap_within(rig: &Rig, id: &str, timeout: &str) -> Result<pb::TapResponse, Status> {
    let bare = Bare::connect(rig).await;
    let mut client = bare.automation(Some(timeout));
    let reply = client.tap(tap_request(&rig.udid(0), id)).await?;
    Ok(reply.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_while_a_tap_is_in_flight_gets_its_outcome_and_the_phone_one_tap() {
    let rig = Rig::plain(1).await;
    rig.phone(0).fault(slow(Duration::from_secs(20)));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "once"));
    in_hand(&rig).await;
    for _ in 0..20 {
        calls.spawn(tap(&rig, "once"));
    }
    let replies = calls.join_all().await;
    let first = as_first_told(replies[0].clone().unwrap());
    for reply in replies {
        assert_eq!(as_first_told(reply.unwrap()), first);
    }
    assert_eq!(first.receipt.unwrap().fate(), Fate::Completed);
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    assert_eq!(rig.phone(0).report().arrivals_of(CommandKind::Tap), 1);
    assert_eq!(rows(&rig).await.len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_calls_at_once_are_one_tap() {
    let rig = Rig::plain(1).await;
    let calls = (0..50).map(|_| tap(&rig, "once"));
    let replies = join_all(calls).await;
    let first = as_first_told(replies[0].clone().unwrap());
    for reply in replies {
        assert_eq!(as_first_told(reply.unwrap()), first);
    }
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_that_its_caller_gave_up_is_not_done_again_for_the_next() {
    let rig = Rig::plain(1).await;
    rig.phone(0).fault(slow(Duration::from_secs(20)));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "once"));
    in_hand(&rig).await;
    calls.shutdown().await;
    let reply = tap(&rig, "once").await.unwrap();
    assert_eq!(reply.receipt.unwrap().fate(), Fate::Completed);
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_joins_waits_no_longer_than_its_own_deadline() {
    let rig = Rig::plain(1).await;
    rig.phone(0).fault(slow(Duration::from_secs(70)));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "once"));
    in_hand(&rig).await;
    let refusal = refused(tap_within(&rig, "once", "50m").await);
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::DeadlineExceeded, "DEADLINE_EXCEEDED")
    );
    assert_eq!(refusal.meta("command_id"), "once");
    assert_eq!(
        (refusal.meta("fate"), refusal.meta("effect")),
        ("UNKNOWN", "UNKNOWN"),
        "it is in flight, whoever sent it"
    );
    assert_eq!(refusal.retry_delay, None);
    let reply = calls.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(reply.receipt.unwrap().fate(), Fate::Completed);
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_joins_a_tap_in_the_queue_is_never_told_that_it_will_not_be_sent() {
    let rig = Rig::plain(1).await;
    rig.phone(0).fault(slow(Duration::from_secs(70)));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "before"));
    in_hand(&rig).await;
    calls.spawn(tap(&rig, "once"));
    queued(&rig, 1).await;
    let refusal = refused(tap_within(&rig, "once", "50m").await);
    assert_eq!(refusal.code, Code::DeadlineExceeded);
    assert_eq!(
        (refusal.meta("fate"), refusal.meta("effect")),
        ("UNKNOWN", "UNKNOWN"),
        "the other caller's tap is still to come"
    );
    assert_eq!(refusal.retry_delay, None);
    for reply in calls.join_all().await {
        assert_eq!(reply.unwrap().receipt.unwrap().fate(), Fate::Completed);
    }
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_is_told_again_after_the_end_over_any_connection_and_after_a_restart() {
    let rig = Rig::plain(1).await;
    let first = tap(&rig, "once").await.unwrap();
    assert!(!first.receipt.as_ref().unwrap().replayed);
    let row = rig.find("once").await.unwrap();
    assert_replay(&tap(&rig, "once").await.unwrap(), &first);

    let connection = rig.connect().await;
    let mut other = pb::automation_service_client::AutomationServiceClient::new(connection);
    let request = tap_request(&rig.udid(0), "once");
    assert_replay(&other.tap(request).await.unwrap().into_inner(), &first);
    drop(other);

    let rig = rig.restart_gateway().await;
    assert_replay(&tap(&rig, "once").await.unwrap(), &first);
    // What is on record can be told of a phone that is not there.
    rig.phone(0).detach();
    assert_replay(&tap(&rig, "once").await.unwrap(), &first);

    assert_eq!(rig.find("once").await.unwrap(), row, "nothing was recorded");
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    assert_eq!(rig.phone(0).report().arrivals_of(CommandKind::Tap), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_reply_with_all_its_facts_is_told_again() {
    let rig = Rig::plain(1).await;
    rig.phone(0).fault(Injection::ReplyLostAfterExecution);
    let first = tap(&rig, "lost").await.unwrap();
    assert!(first.receipt.as_ref().unwrap().recovered);
    assert_replay(&tap(&rig, "lost").await.unwrap(), &first);
    assert_eq!(effects(&rig.phone(0), "lost").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_is_told_again_in_every_detail() {
    let mut rig = Rig::plain(1).await;
    let verdicts = [
        RunnerCode::CommandFailed,
        RunnerCode::AppNotAvailable,
        RunnerCode::UnsupportedOperation,
        RunnerCode::InvalidRequest,
        RunnerCode::RunnerWedged,
        RunnerCode::Other("NEW_CODE".to_owned()),
    ];
    let mut told = Vec::new();
    for code in verdicts {
        let id = format!("id-{code}");
        rig.phone(0).fault(Injection::Error {
            code,
            message: "words of the runner: 100 % \"so\"".to_owned(),
            hint: Some("do something about it".to_owned()),
            after_effect: false,
        });
        told.push((id.clone(), refused(tap(&rig, &id).await)));
    }
    for _ in 0..2 {
        for (id, first) in &told {
            let mut again = refused(tap(&rig, id).await);
            let replayed = again.metadata.remove("replayed");
            assert_eq!(replayed.as_deref(), Some("true"), "{id}");
            assert_eq!(again, *first, "{id}");
        }
        rig = rig.restart_gateway().await;
    }
    assert_eq!(rig.phone(0).report().arrivals_of(CommandKind::Tap), 6);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_sixteen_kibibytes_is_kept_and_a_longer_one_is_told_as_lost() {
    let rig = Rig::plain(1).await;
    let long = |bytes| Fault::from(Injection::LongMessage { bytes });
    rig.phone(0).fault(long(16_000));
    let kept = tap(&rig, "kept").await.unwrap();
    assert_eq!(kept.message.len(), 16_000);
    assert_replay(&tap(&rig, "kept").await.unwrap(), &kept);

    rig.phone(0).fault(long(17_000));
    let first = tap(&rig, "long").await.unwrap();
    assert_eq!(first.message.len(), 17_000);
    let again = tap(&rig, "long").await.unwrap();
    assert_eq!(again.message, "");
    let receipt = again.receipt.unwrap();
    assert_eq!(
        (receipt.fate(), receipt.effect(), receipt.replayed),
        (Fate::CompletedResultLost, Effect::Applied, true)
    );
    let row = rig.find("long").await.unwrap();
    assert_eq!(row.fate(), Fate::Completed, "what is on record stands");
    assert_eq!(effects(&rig.phone(0), "long").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_with_a_used_id_is_done_again_and_its_history_tells_so() {
    let rig = Rig::plain(1).await;
    let udid = rig.udid(0);
    for times in 1..=3 {
        let receipt = plain::send(&rig, &udid, CommandKind::Screenshot, "look")
            .await
            .unwrap();
        assert!(!receipt.replayed);
        assert_eq!(receipt.command_id, "look");
        let report = rig.phone(0).report();
        assert_eq!(report.arrivals_of(CommandKind::Screenshot), times);
        let request = pb::GetCommandRequest {
            command_id: "look".to_owned(),
        };
        let found = rig
            .ledger()
            .get_command(request)
            .await
            .unwrap()
            .into_inner();
        let revisions: Vec<_> = found.history.iter().map(|word| word.revision).collect();
        assert_eq!(
            revisions,
            (0..u32::try_from(times).unwrap()).collect::<Vec<_>>()
        );
    }
    rig.stop().await;
}
