//! How a gateway ends, whatever its clients do.

use std::time::Duration;

use fleetgate_gateway::{Config, Drained, Gateway, Overrides};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

use crate::support::{nowhere, start};

/// Far above `drain_timeout`.
const CAP: Duration = Duration::from_secs(30);

#[tokio::test]
async fn health_knows_each_service_and_tells_watchers_of_the_end() {
    let running = start("").await;
    let mut health = HealthClient::new(running.channel.clone());
    let named = |service: &str| HealthCheckRequest {
        service: service.to_owned(),
    };
    for service in [
        "",
        "fleetgate.v1.FleetService",
        "fleetgate.v1.AutomationService",
        "fleetgate.v1.LedgerService",
    ] {
        let reply = health.check(named(service)).await.unwrap().into_inner();
        assert_eq!(reply.status(), ServingStatus::Serving, "{service}");
    }
    assert_eq!(
        health.check(named("nobody")).await.unwrap_err().code(),
        Code::NotFound
    );

    let mut watch = health.watch(named("")).await.unwrap().into_inner();
    assert_eq!(
        watch.message().await.unwrap().unwrap().status(),
        ServingStatus::Serving
    );
    let (drained, told) = tokio::join!(timeout(CAP, running.gateway.shutdown()), watch.message());
    assert_eq!(told.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(drained.unwrap(), Drained::Clean);
    assert!(
        watch.message().await.unwrap().is_none(),
        "the stream ends with a status"
    );
}

#[tokio::test]
async fn a_client_that_holds_a_stream_open_is_cut_at_the_end() {
    let running = start("").await;
    let mut reflection = ServerReflectionClient::new(running.channel.clone());
    let questions = tokio_stream::pending();
    let _answers = reflection.server_reflection_info(questions).await.unwrap();
    assert_eq!(
        timeout(CAP, running.gateway.shutdown()).await.unwrap(),
        Drained::Cut
    );
}

#[tokio::test]
async fn a_gateway_that_has_ended_lets_the_next_one_have_its_ledger() {
    let running = start("").await;
    let address = running.gateway.local_addr();
    running.gateway.shutdown().await;
    assert!(
        TcpStream::connect(address).await.is_err(),
        "nobody listens any more"
    );

    let file = running.directory.path().join("next.toml");
    let ledger = running.directory.path().join("ledger.db");
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[auth]\ndiscovery = false\n\
         [ledger]\npath = \"{}\"\n",
        ledger.display()
    );
    std::fs::write(&file, text).unwrap();
    let config = Config::load_with(Some(&file), []).unwrap();
    let overrides = Overrides {
        dialer: Some(nowhere()),
        ..Overrides::default()
    };
    Gateway::start(config, overrides)
        .await
        .unwrap()
        .shutdown()
        .await;
}
