//! What a gateway's spans tell, and what no log line ever does.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::guarded::{Guarded, Raw, findable};
use crate::support::{DEVICE, start, tap};

/// Everything that this thread, and so this test's runtime, logs.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn begin() -> (Self, DefaultGuard) {
        let captured = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_span_events(FmtSpan::FULL)
            .with_ansi(false)
            .with_writer(captured.clone())
            .finish();
        (captured, tracing::subscriber::set_default(subscriber))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn a_calls_span_tells_the_method_the_command_and_how_it_ended() {
    let (captured, _guard) = Captured::begin();
    let running = start("").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    automation.tap(tap("left", "c-1")).await.unwrap_err();
    running.gateway.shutdown().await;

    let text = captured.text();
    let method = "rpc.method=\"fleetgate.v1.AutomationService/Tap\"";
    let closed = text
        .lines()
        .find(|line| {
            line.contains(method) && line.contains("fleetgate_gateway::server::span: close")
        })
        .unwrap();
    for field in [
        "otel.name=\"fleetgate.v1.AutomationService/Tap\"",
        "otel.kind=\"server\"",
        "rpc.system.name=\"grpc\"",
        "enduser.id=\"anonymous\"",
        "rpc.response.status_code=\"UNAVAILABLE\"",
        "error.type=\"UNAVAILABLE\"",
        "fleetgate.command.id=\"c-1\"",
        "fleetgate.command.kind=\"tap\"",
        "fleetgate.command.fate=\"NOT_SENT\"",
        &format!("device.id=\"{DEVICE}\""),
    ] {
        assert!(closed.contains(field), "{field} in {closed}");
    }
}

#[tokio::test]
async fn the_span_of_a_method_that_is_none_has_no_name_of_its_callers_making() {
    let (captured, _guard) = Captured::begin();
    let guarded = Guarded::start("").await;
    let mut raw = Raw::to(&guarded.gateway).await;
    raw.by("/nobody.v1.Service/Call", "").await.unwrap();
    drop(raw);
    guarded.gateway.shutdown().await;

    let text = captured.text();
    assert!(text.contains("rpc.method=\"unknown\""), "{text}");
    assert!(!text.contains("rpc.method=\"nobody"), "{text}");
    assert!(!text.contains("otel.name=\"nobody"), "{text}");
}

#[tokio::test]
async fn typed_text_is_in_no_log_line_of_any_level() {
    const CANARY: &str = "canary-8d1f";
    let (captured, _guard) = Captured::begin();
    let running = start("").await;
    let mut automation = AutomationServiceClient::new(running.channel.clone());
    let request = pb::TypeTextRequest {
        device: "left".to_owned(),
        app_bundle_id: "com.example.app".to_owned(),
        text: CANARY.to_owned(),
        ..pb::TypeTextRequest::default()
    };
    automation.type_text(request.clone()).await.unwrap_err();
    // Refused as invalid, text and all.
    let nameless = pb::TypeTextRequest {
        device: String::new(),
        ..request
    };
    automation.type_text(nameless).await.unwrap_err();
    running.gateway.shutdown().await;

    let text = captured.text();
    assert!(
        text.contains("fleetgate.v1.AutomationService/TypeText"),
        "something is captured"
    );
    assert!(!text.contains(CANARY));
}

#[tokio::test]
async fn a_token_is_in_no_log_line_of_any_level() {
    let (captured, _guard) = Captured::begin();
    let directory = tempfile::tempdir().unwrap();
    let guarded = Guarded::start_in(directory, |directory| findable(directory, "")).await;
    let look = "/fleetgate.v1.FleetService/GetGateway";
    let mut raw = Raw::to(&guarded.gateway).await;
    let valid = guarded.admin.clone();
    assert!(raw.by(look, &valid).await.is_none());
    let mut wrong = valid.clone();
    wrong.pop();
    for says in [&wrong, "Bearer canary-3b7c", "Basic canary-3b7c"] {
        raw.by(look, says).await.unwrap();
    }
    drop(raw);
    let record = guarded.instances().list().unwrap().remove(0);
    let local = record.token.expose().rsplit('_').next().unwrap().to_owned();
    guarded.end().await;

    let text = captured.text();
    assert!(
        text.contains("enduser.id=\"token:root\""),
        "something is captured"
    );
    let secret = wrong.rsplit('_').next().unwrap();
    for canary in [secret, local.as_str(), "canary-3b7c"] {
        assert!(!text.contains(canary));
    }
}
