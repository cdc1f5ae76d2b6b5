//! How much one principal may take of the gateway.

use std::time::Duration;

use fleetgate_gateway::{Gateway, Overrides};
use fleetgate_identity::Role;
use fleetgate_proto::v1 as pb;
use fleetgate_runner::Budgets;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::guarded::{Clients, Guarded, Raw, code, detail, everywhere, pause, soon, token};
use crate::support::{reason, stuck, tap};

const LOOK: &str = "/fleetgate.v1.FleetService/GetGateway";

async fn metrics(gateway: &Gateway) -> String {
    let address = gateway.admin_addr().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn who_calls_too_often_is_told_when_to_call_again_and_nobody_else_notices() {
    let more = "limits.calls_per_second = 1\nlimits.call_burst = 3\n\
                admin.listen = \"127.0.0.1:0\"";
    let viewer = everywhere(Role::Viewer);
    let guarded = Guarded::knowing([("one", viewer.clone()), ("other", viewer)], more).await;
    let (one, other) = (guarded.says("one"), guarded.says("other"));
    let mut raw = Raw::to(&guarded.gateway).await;
    let mut limited = None;
    // A second may pass in which one more is taken.
    for _ in 0..20 {
        if let Some(status) = raw.by(LOOK, one).await {
            limited = Some(status);
            break;
        }
    }
    let limited = limited.unwrap();
    assert_eq!(
        reason(&limited),
        (Code::ResourceExhausted, "RATE_LIMITED".to_owned())
    );
    let details = limited.get_error_details();
    let wait = details.retry_info().unwrap().retry_delay.unwrap();
    assert!(
        wait > Duration::ZERO && wait <= Duration::from_secs(1),
        "{wait:?}"
    );
    assert_eq!(code(raw.by(LOOK, other).await.as_ref()), Code::Ok);
    let mut health = HealthClient::new(guarded.channel().await);
    for _ in 0..20 {
        health.check(HealthCheckRequest::default()).await.unwrap();
    }
    let text = metrics(&guarded.gateway).await;
    assert!(
        text.contains("fleetgate_calls_limited_total{limit=\"RATE_LIMITED\"} 1"),
        "{text}"
    );
    drop((raw, health));
    let entries = guarded.end().await;
    let [entry] = &entries[..] else {
        panic!("one denial: {entries:?}")
    };
    assert_eq!(entry.operation.who, "token:one");
    assert_eq!(entry.operation.detail["reason"], "RATE_LIMITED");
}

#[tokio::test]
async fn denied_calls_are_counted_by_reason() {
    let viewer = [("viewer", everywhere(Role::Viewer))];
    let guarded = Guarded::knowing(viewer, "admin.listen = \"127.0.0.1:0\"").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    raw.by(LOOK, "").await.unwrap();
    for _ in 0..2 {
        raw.by(
            "/fleetgate.v1.FleetService/DrainGateway",
            guarded.says("viewer"),
        )
        .await
        .unwrap();
    }
    let text = metrics(&guarded.gateway).await;
    for line in [
        "fleetgate_calls_denied_total{reason=\"CREDENTIALS_MISSING\"} 1",
        "fleetgate_calls_denied_total{reason=\"ROLE_TOO_LOW\"} 2",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    drop(raw);
    guarded.gateway.shutdown().await;
}

#[tokio::test]
async fn a_principal_has_so_many_commands_under_way_and_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let more = "limits.max_queued_commands = 2\nadmin.listen = \"127.0.0.1:0\"";
    let tokens = crate::guarded::tokens(&directory);
    let config = crate::guarded::config(&directory, more);
    let overrides = Overrides {
        // Nothing ends by itself while the test looks at it.
        budgets: Budgets::scaled(10.0),
        dialer: Some(stuck()),
        ..crate::guarded::overrides(&directory)
    };
    let new = |name| token(&tokens, name, everywhere(Role::Operator), None).1;
    let (one, other) = (new("one"), new("other"));
    let gateway = Gateway::start(config, overrides).await.unwrap();
    let address = format!("http://{}", gateway.local_addr());
    let channel = tonic::transport::Endpoint::from_shared(address).unwrap();
    let channel = channel.connect().await.unwrap();
    let mut clients = Clients::over(&channel, &one);
    let mut others = Clients::over(&channel, &other);

    let mut waiting = JoinSet::new();
    let (left, right) = (clients.automation.clone(), clients.automation.clone());
    for (mut client, device, id) in [(left, "left", "c-1"), (right, "right", "c-2")] {
        waiting.spawn(async move { client.tap(tap(device, id)).await });
    }
    for id in ["c-1", "c-2"] {
        let known = async {
            let command_id = id.to_owned();
            let request = pb::GetCommandRequest { command_id };
            while clients.ledger.get_command(request.clone()).await.is_err() {
                pause().await;
            }
        };
        soon("the command", known).await;
    }
    let refused = clients
        .automation
        .tap(tap("left", "c-3"))
        .await
        .unwrap_err();
    assert_eq!(
        reason(&refused),
        (Code::ResourceExhausted, "QUOTA_EXCEEDED".to_owned())
    );
    let details = refused.get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["fate"], "NOT_SENT");
    assert!(details.retry_info().is_some());
    let text = metrics(&gateway).await;
    assert!(
        text.contains("fleetgate_calls_limited_total{limit=\"QUOTA_EXCEEDED\"} 1"),
        "{text}"
    );
    let mut request = tonic::Request::new(tap("left", "c-4"));
    request.set_timeout(Duration::from_millis(50));
    let late = others.automation.tap(request).await.unwrap_err();
    assert_ne!(late.code(), Code::ResourceExhausted, "another has its own");
    let recorded = async {
        let denied = pb::ListOperationsRequest {
            who: "token:one".to_owned(),
            what: "deny-call".to_owned(),
            ..pb::ListOperationsRequest::default()
        };
        loop {
            let listed = others.ledger.list_operations(denied.clone()).await;
            match listed.unwrap().into_inner().operations.pop() {
                Some(operation) => break operation,
                None => pause().await,
            }
        }
    };
    let recorded = soon("the record", recorded).await;
    let reason = detail(&recorded.operation.unwrap(), "reason");
    assert_eq!(reason.as_deref(), Some("QUOTA_EXCEEDED"));
    gateway.shutdown().await;
    while let Some(answer) = waiting.join_next().await {
        answer.unwrap().unwrap_err();
    }
    drop((clients, others));
}

/// A connection over which nothing is said but that it is one.
async fn preface(gateway: &Gateway) -> TcpStream {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut stream = TcpStream::connect(gateway.local_addr()).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    stream.write_all(&SETTINGS).await.unwrap();
    stream
}

#[tokio::test]
async fn connections_of_strangers_do_not_take_the_places_of_those_who_are_known() {
    let more = "server.first_call_timeout = \"300ms\"\nserver.max_connections = 4";
    let viewer = everywhere(Role::Viewer);
    let guarded = Guarded::knowing([("one", viewer)], more).await;
    let one = guarded.says("one");
    let mut known = Raw::to(&guarded.gateway).await;
    assert_eq!(code(known.by(LOOK, one).await.as_ref()), Code::Ok);
    let mut denied = Raw::to(&guarded.gateway).await;
    denied.by(LOOK, "Bearer no").await.unwrap();
    let mut strangers = vec![
        preface(&guarded.gateway).await,
        TcpStream::connect(guarded.gateway.local_addr())
            .await
            .unwrap(),
    ];
    // There is room for no more, and so these wait for the others to go.
    for _ in 0..4 {
        strangers.push(preface(&guarded.gateway).await);
    }
    let mut late = Raw::to(&guarded.gateway).await;
    let answered = soon("an answer", late.by(LOOK, one)).await;
    assert_eq!(code(answered.as_ref()), Code::Ok);
    for mut stranger in strangers {
        let mut said = Vec::new();
        // That it was reset is an end as well.
        soon("its end", stranger.read_to_end(&mut said)).await.ok();
    }
    soon("its end", denied.closed()).await;
    assert_eq!(code(known.by(LOOK, one).await.as_ref()), Code::Ok);
    drop((known, late, denied));
    guarded.gateway.shutdown().await;
}
