//! Phones that are not fit for a command: the app is not there, nothing has
//! focus, a button is missing, the tree cannot be read. Nothing is scripted
//! here that a phone would not do by itself, but for what XCTest throws.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{CommandRecord, Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::{clean, effects, rows};
use fleetgate_tests::plain::{IN_AN_APP, normalized};
use fleetgate_tests::verdict::Verdict;
use fleetgate_tests::{APP, Rig, plain, refused, screen};
use tonic::Code;

async fn assert_refused(rig: &Rig, kind: CommandKind, id: &str, verdict: &Verdict) {
    let udid = rig.udid(0);
    let refusal = refused(plain::send(rig, &udid, kind, id).await);
    verdict.assert(rig, &udid, kind, id, &refusal).await;
    assert_eq!(effects(&rig.phone(0), id), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_launches_an_app_that_is_not_running() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    screen::quit(&phone);
    let verdict = Verdict::of(&RunnerCode::AppNotAvailable).saying(
        "com.example.settings is not running",
        Some("launch the app first"),
    );
    for kind in IN_AN_APP {
        assert_refused(&rig, kind, &format!("{kind}-gone"), &verdict).await;
    }
    assert_eq!(phone.screen().front, None);
    assert_eq!(phone.report().refronts, 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_locked_phone_no_app_can_be_reached_and_the_phone_itself_can() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    phone.set_locked(true);
    let verdict = Verdict::of(&RunnerCode::AppNotAvailable)
        .saying("cannot be reached", Some("unlock the phone"));
    for kind in IN_AN_APP {
        assert_refused(&rig, kind, &format!("{kind}-locked"), &verdict).await;
    }
    let udid = rig.udid(0);
    for kind in [
        CommandKind::Status,
        CommandKind::Screenshot,
        CommandKind::Button,
    ] {
        plain::send(&rig, &udid, kind, &format!("{kind}-locked"))
            .await
            .unwrap();
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_does_not_come_to_the_front_is_not_available() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    screen::leave(&phone);
    let verdict = Verdict::of(&RunnerCode::AppNotAvailable).saying(
        "did not come to the front",
        Some("check that the phone is unlocked and the app runs"),
    );
    for kind in IN_AN_APP
        .into_iter()
        .filter(|kind| *kind != CommandKind::Snapshot)
    {
        phone.fault(Fault::from(Injection::ActivationFails).on(kind));
        assert_refused(&rig, kind, &format!("{kind}-stays"), &verdict).await;
    }
    assert_eq!(phone.screen().front, None);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_a_backgrounded_app_is_refused_and_does_not_move_it() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    screen::leave(&phone);
    let verdict = Verdict::of(&RunnerCode::AppBackgrounded).saying(APP, None);
    assert_refused(&rig, CommandKind::Snapshot, "looks", &verdict).await;
    assert_eq!(phone.screen().front, None);
    assert_eq!(phone.report().refronts, 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_focus_nothing_is_typed_returned_or_deleted() {
    let rig = Rig::plain(1).await;
    let phone = rig.phone(0);
    screen::open(&phone);
    let verdict = Verdict::of(&RunnerCode::TextInputNotFocused).saying(
        "nothing has keyboard focus",
        Some("tap the text field first"),
    );
    for kind in [
        CommandKind::Type,
        CommandKind::KeyboardReturn,
        CommandKind::KeyboardDelete,
    ] {
        assert_refused(&rig, kind, &format!("{kind}-unfocused"), &verdict).await;
    }
    assert_eq!(screen::text(&phone), "");
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_that_the_phone_lacks_is_an_unsupported_operation() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let request = pb::PressButtonRequest {
        device: udid.clone(),
        command_id: Some("action".to_owned()),
        lease: None,
        button: pb::Button::ActionButton.into(),
    };
    let refusal = refused(rig.automation().press_button(request).await);
    let verdict = Verdict::of(&RunnerCode::UnsupportedOperation).saying("no actionButton", None);
    verdict
        .assert(&rig, &udid, CommandKind::Button, "action", &refusal)
        .await;
    assert_eq!(phone.effects(), []);
    assert_eq!(phone.screen().gestures.presses, 0);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_cannot_be_captured_twice_fails_and_one_that_can_the_second_time_does_not() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Injection::SnapshotFlaky);
    let receipt = plain::send(&rig, &udid, CommandKind::Snapshot, "flaky")
        .await
        .unwrap();
    clean(Some(receipt), "flaky");
    phone.fault(Injection::SnapshotFailed);
    let verdict = Verdict::of(&RunnerCode::SnapshotFailed)
        .saying("the accessibility tree could not be captured", None);
    assert_refused(&rig, CommandKind::Snapshot, "broken", &verdict).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_normalized_tap_is_not_sent_if_the_viewport_cannot_be_read() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::quit(&phone);
    let request = pb::TapRequest {
        device: udid.clone(),
        command_id: Some("blind".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        point: normalized(0.5, 0.5),
        number_of_taps: None,
    };
    let refusal = refused(rig.automation().tap(request).await);

    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::FailedPrecondition, "APP_NOT_AVAILABLE")
    );
    assert!(refusal.message.contains("not running"), "{refusal:?}");
    for (key, value) in [
        ("command_id", "blind"),
        ("device", &udid),
        ("fate", "NOT_SENT"),
        ("effect", "NONE"),
        ("hint", "launch the app first"),
        ("reactivated", "false"),
        ("attempts", "0"),
    ] {
        assert_eq!(refusal.meta(key), value, "{key}");
    }
    assert_eq!(refusal.retry_delay, None);
    let [tap, viewport] = &rows(&rig).await[..] else {
        panic!("the tap and its viewport")
    };
    assert_eq!(*tap, rig.find("blind").await.unwrap());
    let facts = |row: &CommandRecord| (row.kind(), row.fate(), row.effect(), row.attempts);
    assert_eq!(
        facts(tap),
        (pb::CommandKind::Tap, Fate::NotSent, Effect::None, 0)
    );
    assert_eq!(
        facts(viewport),
        (pb::CommandKind::Viewport, Fate::Failed, Effect::None, 1)
    );
    assert_eq!(tap.reason.as_deref(), Some("APP_NOT_AVAILABLE"));
    assert_eq!(viewport.reason.as_deref(), Some("APP_NOT_AVAILABLE"));
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 0);
    rig.stop().await;
}
