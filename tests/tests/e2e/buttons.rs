//! The phone's buttons, and the end of its runner.

use fleetgate_proto::v1 as pb;
use fleetgate_runner::CommandKind;
use fleetgate_simulator::Scenario;
use fleetgate_tests::facts::{clean, effects, on_record};
use fleetgate_tests::{Rig, plain, refused};
use serde_json::json;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn every_button_does_on_the_phone_what_it_says() {
    let mut scenario = Scenario::fleet(1).scaled(0.02);
    scenario.phones[0].screen.action_button = true;
    let rig = Rig::start(scenario).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let volume = phone.screen().volume;

    // The louder and quieter of it, the silence, and who is in front.
    let looks = || {
        let shown = phone.screen();
        (shown.volume, shown.silent, shown.front.is_some())
    };
    for (button, name, after) in [
        (pb::Button::VolumeUp, "volumeUp", (volume + 1, false, true)),
        (pb::Button::VolumeDown, "volumeDown", (volume, false, true)),
        (
            pb::Button::VolumeDown,
            "volumeDown",
            (volume - 1, false, true),
        ),
        (
            pb::Button::ActionButton,
            "actionButton",
            (volume - 1, true, true),
        ),
        (pb::Button::Home, "home", (volume - 1, true, false)),
    ] {
        let id = format!("{name}-{}", phone.effects().len());
        let request = pb::PressButtonRequest {
            device: udid.clone(),
            command_id: Some(id.clone()),
            lease: None,
            button: button.into(),
        };
        let reply = rig
            .automation()
            .press_button(request)
            .await
            .unwrap()
            .into_inner();

        assert_eq!(reply.message, format!("pressed {name}"));
        let receipt = clean(reply.receipt, &id);
        on_record(
            &rig,
            &udid,
            CommandKind::Button,
            &receipt,
            json!({ "button": name }),
        )
        .await;
        assert_eq!(looks(), after, "{name}");
        assert_eq!(effects(&phone, &id), [format!("pressed {name}")]);
    }
    assert_eq!(phone.screen().gestures.presses, 5);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_the_runner_after_its_reply() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let request = pb::ShutdownRunnerRequest {
        device: udid.clone(),
        command_id: Some("bye".to_owned()),
        lease: None,
    };
    let reply = rig
        .automation()
        .shutdown_runner(request)
        .await
        .unwrap()
        .into_inner();

    assert_eq!(reply.message, "shutting down");
    let receipt = clean(reply.receipt, "bye");
    on_record(&rig, &udid, CommandKind::Shutdown, &receipt, json!({})).await;
    assert_eq!(effects(&phone, "bye"), ["ended the runner"]);
    phone.wait_until(|report| report.runner.is_none()).await;

    let after = refused(plain::send(&rig, &udid, CommandKind::Tap, "late").await);
    assert_eq!(
        (after.code, after.reason.as_str()),
        (Code::Unavailable, "RUNNER_NOT_LISTENING")
    );
    assert_eq!(
        (after.meta("fate"), after.meta("effect")),
        ("NOT_SENT", "NONE")
    );
    assert!(after.retry_delay.is_some());
    assert_eq!(effects(&phone, "late"), [""; 0]);

    // Launched again, it serves again.
    phone.restart_runner(fleetgate_simulator::scenario::DEFAULT_PORT);
    plain::send(&rig, &udid, CommandKind::Tap, "again")
        .await
        .unwrap();
    rig.stop().await;
}
