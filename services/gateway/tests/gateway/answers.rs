//! What a gateway says of itself, and how it refuses.

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::ledger_service_client::LedgerServiceClient;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_types::{ErrorDetails, StatusExt};

use crate::support::{DEVICE, PORTLESS, reason, start, start_with, stuck, tap};

#[tokio::test]
async fn a_gateway_tells_what_it_is_and_which_phones_it_knows() {
    let running = start("").await;
    let mut fleet = FleetServiceClient::new(running.channel.clone());
    let gateway = fleet
        .get_gateway(pb::GetGatewayRequest {})
        .await
        .unwrap()
        .into_inner();
    assert_eq!(gateway.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(gateway.protocol_version, 1);
    assert!(!gateway.draining);
    assert_eq!(gateway.mux_hosts[0].address, "nowhere");
    assert!(!gateway.mux_hosts[0].connected);

    let page = |page_size, page_token| pb::ListDevicesRequest {
        page_size,
        page_token,
    };
    let first = fleet
        .list_devices(page(1, String::new()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(first.devices[0].udid, PORTLESS);
    let second = fleet
        .list_devices(page(1, first.next_page_token))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(second.devices[0].udid, DEVICE);
    assert_eq!(second.next_page_token, "");
    let status = fleet
        .list_devices(page(-1, "no token".to_owned()))
        .await
        .unwrap_err();
    let details = status.get_error_details();
    assert_eq!(details.bad_request().unwrap().field_violations.len(), 2);

    let device = pb::GetDeviceRequest {
        device: "left".to_owned(),
    };
    let device = fleet
        .get_device(device)
        .await
        .unwrap()
        .into_inner()
        .device
        .unwrap();
    assert_eq!(device.state(), pb::DeviceState::Detached);
    assert_eq!(
        (device.udid.as_str(), device.runner_port),
        (DEVICE, Some(8100))
    );
    let unknown = pb::GetDeviceRequest {
        device: "right".to_owned(),
    };
    let status = fleet.get_device(unknown).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::NotFound, "DEVICE_UNKNOWN".to_owned())
    );
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_tap_that_cannot_be_sent_is_refused_and_on_record() {
    let running = start("").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let status = automation.tap(tap("left", "c-1")).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::Unavailable, "MUX_UNAVAILABLE".to_owned())
    );
    let details = status.get_error_details();
    assert!(details.retry_info().is_some());
    let facts = &details.error_info().unwrap().metadata;
    assert_eq!(
        (facts["fate"].as_str(), facts["effect"].as_str()),
        ("NOT_SENT", "NONE")
    );
    assert_eq!(
        (facts["device"].as_str(), facts["command_id"].as_str()),
        (DEVICE, "c-1")
    );

    let mut ledger = LedgerServiceClient::new(running.channel.clone());
    let request = pb::GetCommandRequest {
        command_id: "c-1".to_owned(),
    };
    let record = ledger
        .get_command(request)
        .await
        .unwrap()
        .into_inner()
        .command
        .unwrap();
    assert_eq!(record.fate(), pb::Fate::NotSent);
    assert_eq!(record.reason.as_deref(), Some("MUX_UNAVAILABLE"));
    let listed = pb::ListCommandsRequest {
        device: "left".to_owned(),
        ..Default::default()
    };
    let listed = ledger.list_commands(listed).await.unwrap().into_inner();
    assert_eq!(listed.commands, [record]);

    let unknown = pb::ListCommandsRequest {
        device: "right".to_owned(),
        ..Default::default()
    };
    let status = ledger.list_commands(unknown).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::NotFound, "DEVICE_UNKNOWN".to_owned())
    );
    let gone = pb::ListCommandsRequest {
        device: "00008030-001A2B3C4D5E6F70".to_owned(),
        ..Default::default()
    };
    let listed = ledger.list_commands(gone).await.unwrap().into_inner();
    assert_eq!(
        listed.commands,
        [],
        "a phone that is gone may still be asked for"
    );

    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_refusal_that_is_on_record_is_told_again_and_asks_for_a_new_id() {
    let running = start("").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let first = automation.tap(tap("left", "c-1")).await.unwrap_err();
    let again = automation.tap(tap("left", "c-1")).await.unwrap_err();
    assert_eq!(
        (again.code(), again.message()),
        (first.code(), first.message())
    );
    let (first, again) = (first.get_error_details(), again.get_error_details());
    let delay = |details: &ErrorDetails| details.retry_info().unwrap().retry_delay;
    assert_eq!(delay(&again), delay(&first));
    let mut facts = again.error_info().unwrap().metadata.clone();
    assert_eq!(facts.remove("replayed").as_deref(), Some("true"));
    let hint = facts.insert("hint".to_owned(), String::new()).unwrap();
    assert!(hint.contains("use a new one"), "{hint}");
    let mut expected = first.error_info().unwrap().metadata.clone();
    let hinted = expected.insert("hint".to_owned(), String::new()).unwrap();
    assert!(hint.ends_with(&hinted), "{hint}");
    assert_eq!(facts, expected);

    let mut other = tap("left", "c-1");
    other.number_of_taps = Some(2);
    let status = automation.tap(other).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::AlreadyExists, "COMMAND_ID_CONFLICT".to_owned())
    );
    let details = status.get_error_details();
    let fields = &details.bad_request().unwrap().field_violations;
    assert_eq!(fields.len(), 1);
    assert_eq!(fields[0].field, "number_of_taps");
    assert_eq!(
        details.error_info().unwrap().metadata["differing"],
        "number_of_taps"
    );
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn commands_that_no_session_can_take_say_why() {
    let running = start("").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let status = automation.tap(tap("right", "c-1")).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::NotFound, "DEVICE_UNKNOWN".to_owned())
    );
    let status = automation.tap(tap(PORTLESS, "c-1")).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::FailedPrecondition, "RUNNER_PORT_UNKNOWN".to_owned())
    );
    let status = automation.tap(pb::TapRequest::default()).await.unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::InvalidArgument, "INVALID_ARGUMENT".to_owned())
    );
    assert_eq!(
        status
            .get_error_details()
            .bad_request()
            .unwrap()
            .field_violations
            .len(),
        3
    );

    let mut ledger = LedgerServiceClient::new(running.channel.clone());
    let request = pb::GetCommandRequest {
        command_id: "c-1".to_owned(),
    };
    let status = ledger.get_command(request).await.unwrap_err();
    assert_eq!(reason(&status), (Code::NotFound, "NEVER_SENT".to_owned()));
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_read_under_way_is_known_before_it_has_a_row() {
    let running = start_with("", stuck(), 1.0).await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let request = pb::CaptureScreenshotRequest {
        device: "left".to_owned(),
        command_id: Some("c-1".to_owned()),
        lease: None,
    };
    let mut calls = JoinSet::new();
    calls.spawn(async move { automation.capture_screenshot(request).await.map(drop) });

    let mut ledger = LedgerServiceClient::new(running.channel.clone());
    let request = pb::GetCommandRequest {
        command_id: "c-1".to_owned(),
    };
    let record = loop {
        match ledger.get_command(request.clone()).await {
            Ok(reply) => break reply.into_inner().command.unwrap(),
            Err(status) => assert_eq!(status.code(), Code::NotFound),
        }
    };
    assert_eq!(record.fate(), pb::Fate::Unspecified);
    assert_eq!(record.effect(), pb::Effect::Unspecified);
    assert_eq!(record.kind(), pb::CommandKind::Screenshot);
    assert_eq!(record.device, DEVICE);
    assert!(record.create_time.is_some() && record.conclude_time.is_none());
    let everything = pb::ListCommandsRequest::default();
    let listed = ledger.list_commands(everything).await.unwrap().into_inner();
    assert_eq!(listed.commands, [], "no row yet");

    running.gateway.shutdown().await;
    let status = calls.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::Unavailable, "GATEWAY_DRAINING".to_owned())
    );
}

#[tokio::test]
async fn a_request_above_the_limit_is_refused_and_the_connection_stays_usable() {
    let running = start("max_request_bytes = \"1KiB\"").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let large = pb::TapRequest {
        app_bundle_id: "x".repeat(5_000_000),
        ..tap("left", "c-1")
    };
    let status = automation.tap(large).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    let status = automation.tap(tap("right", "c-1")).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_page_above_the_limit_is_refused_with_advice() {
    let running = start("max_reply_bytes = 64").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    automation.tap(tap("left", "c-1")).await.unwrap_err();
    let mut ledger = LedgerServiceClient::new(running.channel.clone());
    let status = ledger
        .list_commands(pb::ListCommandsRequest::default())
        .await
        .unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::ResourceExhausted, "REPLY_TOO_LARGE".to_owned())
    );
    running.gateway.shutdown().await;
}
