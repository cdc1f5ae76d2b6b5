//! What a receipt says besides that all went well: an app brought to the
//! front, a doubt of the runner's, a wait.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::{Effect, Fate};
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection};
use fleetgate_tests::facts::{effects, on_record, parameters, rows, wait};
use fleetgate_tests::plain::normalized;
use fleetgate_tests::verdict::Verdict;
use fleetgate_tests::{APP, Rig, plain, refused, screen};
use tonic::Code;

fn aimed_tap(device: &str, command_id: &str) -> pb::TapRequest {
    pb::TapRequest {
        device: device.to_owned(),
        command_id: Some(command_id.to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
        point: normalized(0.5, 0.5),
        number_of_taps: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backgrounded_app_is_brought_to_the_front_and_the_receipt_says_so() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let kinds = [
        CommandKind::Viewport,
        CommandKind::Tap,
        CommandKind::LongPress,
        CommandKind::Drag,
    ];
    for (refronts, kind) in (1..).zip(kinds) {
        screen::leave(&phone);
        let receipt = plain::send(&rig, &udid, kind, kind.as_str()).await.unwrap();
        assert!(receipt.reactivated, "{kind}");
        assert_eq!(
            (receipt.fate(), receipt.effect()),
            (Fate::Completed, Effect::Applied)
        );
        let row = rig.find(kind.as_str()).await.unwrap();
        on_record(&rig, &udid, kind, &receipt, parameters(&row)).await;
        assert!(row.reactivated, "{kind}");
        assert_eq!(phone.screen().front, Some(screen::app()));
        assert_eq!(phone.report().refronts, refronts);

        let again = format!("{kind}-in-front");
        let receipt = plain::send(&rig, &udid, kind, &again).await.unwrap();
        assert!(!receipt.reactivated, "{kind}");
        assert_eq!(phone.report().refronts, refronts);
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verdict_against_a_command_says_that_the_app_was_brought_to_the_front() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::open(&phone);
    // The app in front again has no focus: a real verdict.
    for kind in [
        CommandKind::Type,
        CommandKind::KeyboardReturn,
        CommandKind::KeyboardDelete,
    ] {
        screen::leave(&phone);
        let id = format!("{kind}-unfocused");
        let refusal = refused(plain::send(&rig, &udid, kind, &id).await);
        let verdict = Verdict::of(&RunnerCode::TextInputNotFocused).saying(
            "nothing has keyboard focus",
            Some("tap the text field first"),
        );
        let verdict = Verdict {
            reactivated: true,
            ..verdict
        };
        verdict.assert(&rig, &udid, kind, &id, &refusal).await;
        assert_eq!(phone.screen().front, Some(screen::app()));
    }
    // A gesture that failed.
    screen::leave(&phone);
    let (message, hint) = ("it threw".to_owned(), None);
    let error = Injection::Error {
        code: RunnerCode::CommandFailed,
        message,
        hint,
        after_effect: false,
    };
    phone.fault(error);
    let refusal = refused(plain::send(&rig, &udid, CommandKind::Tap, "threw").await);
    let verdict = Verdict::of(&RunnerCode::CommandFailed).saying("it threw", None);
    let verdict = Verdict {
        reactivated: true,
        ..verdict
    };
    verdict
        .assert(&rig, &udid, CommandKind::Tap, "threw", &refusal)
        .await;
    assert_eq!(effects(&phone, "threw"), [""; 0]);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tap_reports_what_the_look_at_the_viewport_did_to_the_screen() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::leave(&phone);
    let reply = rig
        .automation()
        .tap(aimed_tap(&udid, "aimed"))
        .await
        .unwrap()
        .into_inner();
    let receipt = reply.receipt.unwrap();
    assert!(receipt.reactivated);
    assert_eq!(phone.report().refronts, 1);
    let [tap, viewport] = &rows(&rig).await[..] else {
        panic!("the tap and its viewport")
    };
    assert!(
        tap.reactivated && viewport.reactivated,
        "{tap:?} {viewport:?}"
    );
    assert_eq!(tap.command_id, "aimed");

    // The look brings the app to the front and fails: nothing is sent.
    screen::leave(&phone);
    let (message, hint) = ("it threw".to_owned(), None);
    let error = Injection::Error {
        code: RunnerCode::CommandFailed,
        message,
        hint,
        after_effect: false,
    };
    phone.fault(Fault::from(error).on(CommandKind::Viewport));
    let refusal = refused(rig.automation().tap(aimed_tap(&udid, "blind")).await);
    assert_eq!(
        (refusal.code, refusal.reason.as_str()),
        (Code::Unknown, "COMMAND_FAILED")
    );
    assert_eq!(
        (refusal.meta("fate"), refusal.meta("effect")),
        ("NOT_SENT", "NONE")
    );
    assert_eq!(refusal.meta("reactivated"), "true");
    let row = rig.find("blind").await.unwrap();
    assert_eq!(
        (row.fate(), row.effect(), row.reactivated),
        (Fate::NotSent, Effect::None, true)
    );
    assert_eq!(phone.report().arrivals_of(CommandKind::Tap), 1);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_muted_issue_becomes_a_warning_of_a_mutation_and_of_nothing_else() {
    let count = u32::try_from(plain::queued().count()).unwrap();
    let rig = Rig::plain(count).await;
    for (kind, phone) in plain::queued().zip(rig.lab.phones()) {
        screen::focus(&phone);
        let udid = phone.udid().to_string();
        phone.fault(Fault::from(Injection::SuppressedIssue).on(kind));
        let receipt = plain::send(&rig, &udid, kind, kind.as_str()).await.unwrap();
        let warning =
            format!("1 accessibility issue(s) were muted during {kind}: look at the screen again");
        assert_eq!(receipt.warning, kind.is_mutation().then_some(warning));
        assert_eq!(
            (receipt.fate(), receipt.effect()),
            (Fate::Completed, Effect::Applied)
        );
        let row = rig.find(kind.as_str()).await.unwrap();
        on_record(&rig, &udid, kind, &receipt, parameters(&row)).await;
        assert_eq!(
            effects(&phone, kind.as_str()).len(),
            usize::from(kind.is_mutation())
        );
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_and_a_reactivation_are_told_together() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::leave(&phone);
    phone.fault(Injection::SuppressedIssue);
    let receipt = plain::send(&rig, &udid, CommandKind::Tap, "both")
        .await
        .unwrap();
    assert!(
        receipt.reactivated && receipt.warning.is_some(),
        "{receipt:?}"
    );
    let row = rig.find("both").await.unwrap();
    assert_eq!((row.reactivated, row.warning), (true, receipt.warning));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wait_for_a_turn_and_the_time_on_the_device_are_told_apart() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let slow = Duration::from_secs(20);
    phone.fault(Injection::Slow { by: slow });
    let second = async {
        phone.wait_until(|report| report.in_flight == 1).await;
        plain::send(&rig, &udid, CommandKind::Button, "second")
            .await
            .unwrap()
    };
    let first = plain::send(&rig, &udid, CommandKind::Tap, "first");
    let (first, second) = tokio::join!(first, second);
    let first = first.unwrap();

    let slow = rig.scaled(slow);
    assert!(wait(first.device_time) >= slow, "{first:?}");
    assert!(wait(first.queue_wait) < slow, "{first:?}");
    // It was admitted when the first had just begun.
    assert!(wait(second.queue_wait) > slow / 4, "{second:?}");
    assert!(wait(second.device_time) < slow, "{second:?}");
    rig.stop().await;
}
