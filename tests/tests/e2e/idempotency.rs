//! A command id that is used again: the same request gets the same outcome and
//! nothing happens twice; another request is refused.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, PhoneReport};
use fleetgate_tests::bare::Bare;
use fleetgate_tests::facts::{effects, rows};
use fleetgate_tests::lane::{queued, tap, tap_request};
use fleetgate_tests::{Refusal, Rig, pause, plain, plain_lab, refused, screen, soon};
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

/// Asserts that a request with a used id was refused for these fields.
#[track_caller]
fn assert_conflict(refusal: &Refusal, id: &str, fields: &[&str]) {
    assert_eq!(refusal.code, Code::AlreadyExists, "{refusal:?}");
    assert_eq!(refusal.reason, "COMMAND_ID_CONFLICT");
    assert_eq!(refusal.meta("command_id"), id);
    assert_eq!(
        (refusal.meta("fate"), refusal.meta("effect")),
        ("NOT_SENT", "NONE")
    );
    assert_eq!(refusal.meta("differing"), fields.join(","));
    let named: Vec<_> = refusal
        .violations
        .iter()
        .map(|(field, _)| field.as_str())
        .collect();
    assert_eq!(named, fields);
    assert_eq!(refusal.retry_delay, None);
}

/// Waits until the first phone's runner has a command in hand.
async fn in_hand(rig: &Rig) {
    let busy = |report: &PhoneReport| report.in_flight == 1;
    soon("a command in hand", rig.phone(0).wait_until(busy)).await;
}

fn slow(phone_time: Duration) -> Fault {
    Injection::Slow { by: phone_time }.into()
}

/// A tap with a `grpc-timeout` that its client itself does not keep.
async fn tap_within(rig: &Rig, id: &str, timeout: &str) -> Result<pb::TapResponse, Status> {
    let bare = Bare::connect(rig).await;
    let mut client = bare.automation(Some(timeout));
    let reply = client.tap(tap_request(&rig.udid(0), id)).await?;
    Ok(reply.into_inner())
}

async fn type_text(rig: &Rig, id: &str, text: &str) -> Result<pb::TypeTextResponse, Status> {
    let request = pb::TypeTextRequest {
        device: rig.udid(0),
        command_id: Some(id.to_owned()),
        lease: None,
        app_bundle_id: fleetgate_tests::APP.to_owned(),
        text: text.to_owned(),
    };
    Ok(rig.automation().type_text(request).await?.into_inner())
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
async fn a_finished_id_is_refused_to_any_other_request_which_is_told_the_fields() {
    let rig = Rig::plain(2).await;
    tap(&rig, "once").await.unwrap();
    let request = || tap_request(&rig.udid(0), "once");
    let other_point = pb::TapRequest {
        point: plain::absolute(20.0, 31.0),
        ..request()
    };
    let other_form = pb::TapRequest {
        point: plain::normalized(0.5, 0.5),
        number_of_taps: Some(2),
        ..request()
    };
    let other_app = pb::TapRequest {
        app_bundle_id: "com.example.other".to_owned(),
        ..request()
    };
    let other_phone = pb::TapRequest {
        device: rig.udid(1),
        ..request()
    };
    let the_default = pb::TapRequest {
        number_of_taps: Some(1),
        ..request()
    };
    let mut rig = rig;
    for _ in 0..2 {
        for (request, fields) in [
            (&other_point, &["point"][..]),
            (&other_form, &["number_of_taps", "point"]),
            (&other_app, &["app_bundle_id"]),
            (&other_phone, &["device"]),
        ] {
            let refusal = refused(rig.automation().tap(request.clone()).await);
            assert_conflict(&refusal, "once", fields);
        }
        let same = rig.automation().tap(the_default.clone()).await.unwrap();
        assert!(same.into_inner().receipt.unwrap().replayed);
        let refusal = refused(plain::send(&rig, &rig.udid(0), CommandKind::Button, "once").await);
        assert_conflict(&refusal, "once", &["kind"]);
        rig = rig.restart_gateway().await;
    }
    assert_eq!(rig.phone(0).effects().len(), 1);
    assert_eq!(rig.phone(1).effects().len(), 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_in_flight_is_refused_to_any_other_request() {
    let rig = Rig::plain(2).await;
    rig.phone(0).fault(slow(Duration::from_secs(20)));
    let mut calls = JoinSet::new();
    calls.spawn(tap(&rig, "once"));
    in_hand(&rig).await;
    let other_point = pb::TapRequest {
        point: plain::absolute(21.0, 30.0),
        ..tap_request(&rig.udid(0), "once")
    };
    let refusal = refused(rig.automation().tap(other_point).await);
    assert_conflict(&refusal, "once", &["point"]);
    let other_phone = tap_request(&rig.udid(1), "once");
    let refusal = refused(rig.automation().tap(other_phone).await);
    assert_conflict(&refusal, "once", &["device"]);
    calls.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    assert_eq!(rig.phone(1).report().arrivals.len(), 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_phones_that_are_asked_at_once_one_gets_the_id() {
    let rig = Rig::plain(2).await;
    for n in 0..20 {
        let id = format!("id-{n}");
        let ask = |phone| {
            let request = tap_request(&rig.udid(phone), &id);
            let mut client = rig.automation();
            async move { client.tap(request).await }
        };
        let (one, other) = tokio::join!(ask(0), ask(1));
        let refusal = match (one, other) {
            (Ok(_), Err(refused)) | (Err(refused), Ok(_)) => Refusal::from(refused),
            both => panic!("one phone gets it: {both:?}"),
        };
        assert_conflict(&refusal, &id, &["device"]);
        let felt = effects(&rig.phone(0), &id).len() + effects(&rig.phone(1), &id).len();
        assert_eq!(felt, 1, "{id}");
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typed_text_is_compared_to_the_letter_in_flight_and_by_its_length_afterwards() {
    let rig = Rig::plain(1).await;
    screen::focus(&rig.phone(0));
    rig.phone(0).fault(slow(Duration::from_secs(20)));
    let first = type_text(&rig, "once", "hunter2");
    let others = async {
        in_hand(&rig).await;
        for text in ["hunter3", "hunter"] {
            let refusal = refused(type_text(&rig, "once", text).await);
            assert_conflict(&refusal, "once", &["text"]);
            assert!(!format!("{refusal:?}").contains("hunter"));
        }
    };
    let (first, ()) = tokio::join!(first, others);
    first.unwrap();

    let refusal = refused(type_text(&rig, "once", "hunter").await);
    assert_conflict(&refusal, "once", &["text"]);
    let same_length = type_text(&rig, "once", "hunter3").await.unwrap();
    assert!(same_length.receipt.unwrap().replayed);
    assert_eq!(effects(&rig.phone(0), "once").len(), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_with_a_used_id_is_done_again_and_its_history_tells_so() {
    let rig = Rig::plain(2).await;
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
    let other = plain::send(&rig, &rig.udid(1), CommandKind::Screenshot, "look").await;
    assert_conflict(&refused(other), "look", &["device"]);
    let other = plain::send(&rig, &udid, CommandKind::Snapshot, "look").await;
    assert_conflict(&refused(other), "look", &["kind"]);
    assert_eq!(rig.phone(1).report().arrivals.len(), 0);
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
async fn an_id_that_was_never_sent_is_told_from_one_that_may_have_been_pruned() {
    let look_up = async |rig: &Rig, id: &str| {
        let request = pb::GetCommandRequest {
            command_id: id.to_owned(),
        };
        rig.ledger().get_command(request).await
    };
    let rig = Rig::configured(plain_lab(1, 0.02), |config| {
        config.ledger.retention_interval = Duration::from_millis(20);
    })
    .await;
    for id in ["order-66", "0198c2f4-3c1e-7e0b-9a53-6d3f1d1c2b7a"] {
        let refusal = refused(look_up(&rig, id).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::NotFound, "NEVER_SENT"),
            "nothing was ever pruned"
        );
        assert_eq!(
            (refusal.meta("fate"), refusal.meta("effect")),
            ("NOT_SENT", "NONE")
        );
    }
    let before = fleetgate_runner::CommandId::mint();
    tap(&rig, "old").await.unwrap();
    // The newest of all always stays.
    tap(&rig, "newest").await.unwrap();
    let mut paused = rig.pause().await;
    paused.config.ledger.retention_max_age = Some(Duration::from_millis(1));
    let rig = paused.resume().await;
    soon("the tap's removal", async {
        while look_up(&rig, "old").await.is_ok() {
            pause().await;
        }
    })
    .await;

    for id in ["old", "order-66", before.as_str()] {
        let refusal = refused(look_up(&rig, id).await);
        assert_eq!(
            (refusal.code, refusal.reason.as_str()),
            (Code::NotFound, "NO_RECORD"),
            "{id} may have been pruned"
        );
        assert_eq!(refusal.meta("fate"), "", "nothing is known");
    }
    let after = fleetgate_runner::CommandId::mint();
    let refusal = refused(look_up(&rig, after.as_str()).await);
    assert_eq!(
        refusal.reason, "NEVER_SENT",
        "it is younger than all that was pruned"
    );
    rig.stop().await;
}
