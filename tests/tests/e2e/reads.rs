//! The reads: viewport, snapshot, status and the look into the journal. None
//! of them changes the phone.

use std::time::Duration;

use fleetgate_proto::v1 as pb;
use fleetgate_runner::{CommandKind, RunnerCode};
use fleetgate_simulator::{Fault, Injection, PhoneSpec, Scenario};
use fleetgate_tests::facts::{clean, on_record, wait};
use fleetgate_tests::{APP, Rig, plain, screen};
use serde_json::json;

async fn look_up(rig: &Rig, command_id: &str) -> pb::GetRunnerCommandStatusResponse {
    let request = pb::GetRunnerCommandStatusRequest {
        device: rig.udid(0),
        command_id: command_id.to_owned(),
    };
    rig.automation()
        .get_runner_command_status(request)
        .await
        .unwrap()
        .into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_viewport_is_the_frame_of_the_app() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    let request = pb::GetViewportRequest {
        device: udid.clone(),
        command_id: Some("viewport".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    let reply = rig
        .automation()
        .get_viewport(request)
        .await
        .unwrap()
        .into_inner();

    assert_eq!(
        reply.viewport,
        Some(pb::Rect {
            x: 0.0,
            y: 0.0,
            width: 393.0,
            height: 852.0
        })
    );
    let receipt = clean(reply.receipt, "viewport");
    on_record(&rig, &udid, CommandKind::Viewport, &receipt, json!({})).await;
    assert_eq!(phone.effects(), []);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_tells_every_field_of_every_node() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    screen::focus(&phone);
    phone.with_screen(|screen| screen.type_text("shown"));
    let shown = phone.with_screen(|screen| screen.snapshot(&screen::app()));

    let request = pb::CaptureSnapshotRequest {
        device: udid.clone(),
        command_id: Some("snapshot".to_owned()),
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    let reply = rig
        .automation()
        .capture_snapshot(request)
        .await
        .unwrap()
        .into_inner();

    let receipt = clean(reply.receipt, "snapshot");
    on_record(&rig, &udid, CommandKind::Snapshot, &receipt, json!({})).await;
    assert_eq!(phone.effects(), []);
    let healthy = pb::SnapshotQuality {
        state: pb::SnapshotState::Healthy.into(),
        backend: "xctest".to_owned(),
        reason: None,
        reason_code: None,
    };
    assert_eq!(reply.quality, Some(healthy));
    assert_eq!(reply.nodes.len(), shown.nodes.len());
    for (told, node) in reply.nodes.iter().zip(shown.nodes) {
        let rect = pb::Rect {
            x: node.rect.x,
            y: node.rect.y,
            width: node.rect.width,
            height: node.rect.height,
        };
        let expected = pb::SnapshotNode {
            index: node.index,
            r#type: node.kind,
            label: node.label,
            identifier: node.identifier,
            value: node.value,
            rect: Some(rect),
            enabled: node.enabled,
            focused: node.focused,
            selected: node.selected,
            depth: node.depth,
            parent_index: node.parent_index,
        };
        assert_eq!(*told, expected);
    }
    // What the fields are for.
    let root = &reply.nodes[0];
    assert_eq!(
        (root.depth, root.parent_index, root.r#type.as_str()),
        (0, None, "Application")
    );
    let field = reply
        .nodes
        .iter()
        .find(|node| node.r#type == "TextField")
        .unwrap();
    assert_eq!(field.value.as_deref(), Some("shown"));
    assert_eq!(
        (field.focused, field.enabled, field.selected),
        (Some(true), Some(true), None)
    );
    let parent = &reply.nodes[usize::try_from(field.parent_index.unwrap()).unwrap()];
    assert_eq!(parent.depth + 1, field.depth);
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_was_cut_says_so() {
    let mut scenario = Scenario::fleet(1).scaled(0.02);
    scenario.phones[0].screen.dense = true;
    scenario.phones[0].screen.rows = 2000;
    let rig = Rig::start(scenario).await;
    let request = pb::CaptureSnapshotRequest {
        device: rig.udid(0),
        command_id: None,
        lease: None,
        app_bundle_id: APP.to_owned(),
    };
    let reply = rig
        .automation()
        .capture_snapshot(request)
        .await
        .unwrap()
        .into_inner();

    assert_eq!(reply.nodes.len(), 1500);
    let quality = reply.quality.unwrap();
    assert_eq!(quality.state(), pb::SnapshotState::Degraded);
    assert_eq!(quality.reason_code.as_deref(), Some("node_cap"));
    assert!(quality.reason.is_some_and(|reason| reason.contains("1500")));
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_the_runners_health() {
    let spec = Scenario::fleet(1).phones.remove(0);
    let spec = PhoneSpec {
        uptime: Duration::from_secs(4000),
        ..spec
    };
    let rig = Rig::start(Scenario {
        phones: vec![spec],
        ..Scenario::fleet(0).scaled(0.02)
    })
    .await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(
        Fault::from(Injection::SuppressedIssue)
            .on(CommandKind::Tap)
            .times(2),
    );
    phone.fault(Fault::from(Injection::RecordedFailure).on(CommandKind::Button));
    plain::send(&rig, &udid, CommandKind::Tap, "s-1")
        .await
        .unwrap();
    plain::send(&rig, &udid, CommandKind::Tap, "s-2")
        .await
        .unwrap();
    plain::send(&rig, &udid, CommandKind::Button, "r-1")
        .await
        .unwrap_err();

    let request = pb::GetRunnerStatusRequest {
        device: udid.clone(),
    };
    let reply = rig
        .automation()
        .get_runner_status(request)
        .await
        .unwrap()
        .into_inner();

    assert_eq!(reply.state(), pb::RunnerState::Idle);
    assert_eq!((reply.suppressed_issues, reply.recorded_failures), (2, 1));
    let now = phone.report().runner.unwrap().uptime;
    let told = wait(reply.uptime);
    assert!(
        told >= Duration::from_secs(4000) && told <= now,
        "{told:?} of {now:?}"
    );
    let id = reply.receipt.clone().unwrap().command_id;
    let receipt = clean(reply.receipt, &id);
    on_record(&rig, &udid, CommandKind::Status, &receipt, json!({})).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_journal_is_told_in_each_of_its_states() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    plain::send(&rig, &udid, CommandKind::Tap, "tapped")
        .await
        .unwrap();
    plain::send(&rig, &udid, CommandKind::Snapshot, "seen")
        .await
        .unwrap();
    let (message, hint) = ("it broke".to_owned(), Some("mend it".to_owned()));
    let error = Injection::Error {
        code: RunnerCode::CommandFailed,
        message,
        hint,
        after_effect: false,
    };
    phone.fault(Fault::from(error));
    plain::send(&rig, &udid, CommandKind::Drag, "broken")
        .await
        .unwrap_err();

    let entry = |id: &str, state: pb::JournalState, kind| pb::GetRunnerCommandStatusResponse {
        command_id: id.to_owned(),
        state: state.into(),
        kind: Some(plain::kind(kind).into()),
        ..pb::GetRunnerCommandStatusResponse::default()
    };
    let done = |id, kind, retained| pb::GetRunnerCommandStatusResponse {
        response_ok: Some(true),
        response_retained: retained,
        ..entry(id, pb::JournalState::Completed, kind)
    };
    let failed = pb::GetRunnerCommandStatusResponse {
        response_ok: Some(false),
        response_retained: true,
        error_code: Some("COMMAND_FAILED".to_owned()),
        error_message: Some("it broke".to_owned()),
        error_hint: Some("mend it".to_owned()),
        ..entry("broken", pb::JournalState::Failed, CommandKind::Drag)
    };
    let never = pb::GetRunnerCommandStatusResponse {
        kind: None,
        ..entry("never", pb::JournalState::NotAccepted, CommandKind::Tap)
    };
    for expected in [
        done("tapped", CommandKind::Tap, true),
        done("seen", CommandKind::Snapshot, false),
        failed,
        never,
    ] {
        let reply = look_up(&rig, &expected.command_id).await;
        let id = reply.receipt.clone().unwrap().command_id;
        assert_ne!(
            id, expected.command_id,
            "the look-up is a command of its own"
        );
        let receipt = clean(reply.receipt.clone(), &id);
        let fields = json!({ "statusCommandId": expected.command_id });
        on_record(&rig, &udid, CommandKind::CommandStatus, &receipt, fields).await;
        assert_eq!(
            pb::GetRunnerCommandStatusResponse {
                receipt: None,
                ..reply
            },
            expected
        );
    }
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_runs_is_started_in_the_journal_and_one_sent_behind_it_accepted() {
    let rig = Rig::plain(1).await;
    let (phone, udid) = (rig.phone(0), rig.udid(0));
    phone.fault(Fault::from(Injection::Slow {
        by: Duration::from_secs(20),
    }));
    let running = plain::send(&rig, &udid, CommandKind::Tap, "runs");
    // Only somebody who is not a gateway sends a second one meanwhile.
    let behind = async {
        // What is to befall the tap has: it is being executed.
        phone
            .wait_until(|report| report.in_flight == 1 && report.faults.is_empty())
            .await;
        let post = fleetgate_tests::stranger::post(
            &rig,
            0,
            r#"{"command":"button","commandId":"waits","button":"home"}"#,
        );
        let looks = async {
            phone.wait_until(|report| report.in_flight == 2).await;
            (look_up(&rig, "runs").await, look_up(&rig, "waits").await)
        };
        tokio::join!(post, looks).1
    };
    let (ran, (runs, waits)) = tokio::join!(running, behind);
    ran.unwrap();

    assert_eq!(
        (runs.state(), runs.kind()),
        (pb::JournalState::Started, pb::CommandKind::Tap)
    );
    assert_eq!(
        (waits.state(), waits.kind()),
        (pb::JournalState::Accepted, pb::CommandKind::Button)
    );
    for entry in [runs, waits] {
        assert_eq!(
            (entry.response_ok, entry.response_retained, entry.error_code),
            (None, false, None)
        );
    }
    rig.stop().await;
}
