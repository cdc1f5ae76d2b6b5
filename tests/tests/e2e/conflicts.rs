//! A command id that is used again for another request: it is refused, the
//! fields that differ are named, and nothing is sent.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_tests::facts::effects;
use fleetgate_tests::lane::{in_hand, slow, tap, tap_request};
use fleetgate_tests::{Refusal, Rig, plain, refused, screen};
use tokio::task::JoinSet;
use tonic::{Code, Status};

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
async fn the_id_of_a_read_too_is_refused_to_any_other_request() {
    let rig = Rig::plain(2).await;
    let udid = rig.udid(0);
    plain::send(&rig, &udid, CommandKind::Screenshot, "look")
        .await
        .unwrap();
    let other = plain::send(&rig, &rig.udid(1), CommandKind::Screenshot, "look").await;
    assert_conflict(&refused(other), "look", &["device"]);
    let other = plain::send(&rig, &udid, CommandKind::Snapshot, "look").await;
    assert_conflict(&refused(other), "look", &["kind"]);
    assert_eq!(rig.phone(1).report().arrivals.len(), 0);
    rig.stop().await;
}
