//! The admin server: what it says, and to whom.

use std::net::SocketAddr;

use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use fleetgate_proto::v1::{CordonDeviceRequest, DrainGatewayRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{DEVICE, Running, nowhere, start_with};

const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"";

async fn get(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

pub(crate) async fn plain(running: &Running, path: &str) -> (u16, String) {
    let address = running.gateway.admin_addr().unwrap();
    get(address, path, "Host: 127.0.0.1\r\n").await
}

#[tokio::test]
async fn there_is_no_admin_server_unless_one_is_asked_for() {
    let running = start_with("", nowhere(), 0.01).await;
    assert_eq!(running.gateway.admin_addr(), None);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn metrics_tell_of_phones_hosts_and_what_is_out_of_service() {
    let running = start_with(ADMIN, nowhere(), 0.01).await;
    let (code, before) = plain(&running, "/metrics").await;
    assert_eq!(code, 200);
    assert!(
        before.contains("fleetgate_devices{stale=\"false\",state=\"DETACHED\"} 2"),
        "{before}"
    );
    assert!(before.contains("fleetgate_devices_cordoned 0"), "{before}");
    assert!(
        before.contains("fleetgate_hosts{connected=\"false\",host=\"local\"} 1"),
        "{before}"
    );

    let cordon = CordonDeviceRequest {
        device: DEVICE.to_owned(),
        reason: "a new battery".to_owned(),
        until: None,
    };
    let mut fleet = FleetServiceClient::new(running.channel.clone());
    fleet.cordon_device(cordon).await.unwrap();
    let (_, after) = plain(&running, "/metrics").await;
    assert!(after.contains("fleetgate_devices_cordoned 1"), "{after}");
    drop(fleet);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_gateway_is_ready_until_it_drains_and_healthy_to_the_end() {
    let running = start_with(ADMIN, nowhere(), 0.01).await;
    assert_eq!(
        plain(&running, "/readyz").await,
        (200, "ready\n".to_owned())
    );
    assert_eq!(plain(&running, "/healthz").await.0, 200);
    assert_eq!(plain(&running, "/else").await.0, 404);
    let admin = running.gateway.admin_addr().unwrap();
    let drain = DrainGatewayRequest {
        reason: "an upgrade".to_owned(),
    };
    let mut fleet = FleetServiceClient::new(running.channel.clone());
    fleet.drain_gateway(drain).await.unwrap();
    running.gateway.drain_requested().await;
    drop(fleet);
    running.gateway.shutdown().await;
    assert!(
        TcpStream::connect(admin).await.is_err(),
        "it ends with the gateway"
    );
}

#[tokio::test]
async fn no_page_of_another_origin_reads_it() {
    let running = start_with(ADMIN, nowhere(), 0.01).await;
    let address = running.gateway.admin_addr().unwrap();
    for headers in [
        "Host: rack.example\r\n",
        "Host: 127.0.0.1\r\nOrigin: http://rack.example\r\n",
    ] {
        assert_eq!(get(address, "/metrics", headers).await.0, 403, "{headers}");
    }
    running.gateway.shutdown().await;
}
