//! Keys of `[server]`, `[lane]` and `[usbmuxd]`, by what they do.

use std::net::SocketAddr;
use std::time::Duration;

use fleetgate_gateway::{Config, Gateway, Overrides};
use fleetgate_proto::v1 as pb;
use fleetgate_proto::v1::automation_service_client::AutomationServiceClient;
use fleetgate_proto::v1::fleet_service_client::FleetServiceClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixListener};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Code;

use crate::support::{reason, start, start_with, stuck, tap};

/// Longer than anything here takes.
const CAP: Duration = Duration::from_secs(30);

/// HTTP/2 by hand: one frame after another, none of them answered.
struct Raw(TcpStream);

struct Frame {
    kind: u8,
    payload: Vec<u8>,
}

const SETTINGS: u8 = 4;
const PING: u8 = 6;

impl Raw {
    async fn connect(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await
            .unwrap();
        Self(stream)
    }

    /// The next frame; `None` once the server has closed the connection.
    async fn frame(&mut self) -> Option<Frame> {
        let mut header = [0; 9];
        self.0.read_exact(&mut header).await.ok()?;
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        let mut payload = vec![0; length.try_into().unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame {
            kind: header[3],
            payload,
        })
    }

    /// The value of a setting, by its number in RFC 9113.
    async fn setting(&mut self, number: u16) -> Option<u32> {
        let frame = timeout(CAP, self.frame()).await.unwrap().unwrap();
        assert_eq!(frame.kind, SETTINGS, "the server's first frame");
        let settings = frame.payload.chunks_exact(6);
        settings
            .map(|entry| {
                let value = entry[2..].try_into().unwrap();
                (
                    u16::from_be_bytes([entry[0], entry[1]]),
                    u32::from_be_bytes(value),
                )
            })
            .find_map(|(known, value)| (known == number).then_some(value))
    }
}

#[tokio::test]
async fn a_connection_may_have_as_many_calls_open_as_is_set() {
    let running = start("max_concurrent_streams = 7").await;
    let mut raw = Raw::connect(running.gateway.local_addr()).await;
    assert_eq!(
        raw.setting(3).await,
        Some(7),
        "SETTINGS_MAX_CONCURRENT_STREAMS"
    );
    drop(raw);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn windows_are_large_and_headers_bounded() {
    let running = start("").await;
    let address = running.gateway.local_addr();
    let window = Raw::connect(address).await.setting(4).await;
    assert_eq!(window, Some(8 << 20), "SETTINGS_INITIAL_WINDOW_SIZE");
    let headers = Raw::connect(address).await.setting(6).await;
    assert_eq!(headers, Some(128 << 10), "SETTINGS_MAX_HEADER_LIST_SIZE");
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_client_that_does_not_answer_a_ping_is_let_go() {
    let running =
        start("http2_keepalive_interval = \"50ms\"\nhttp2_keepalive_timeout = \"50ms\"").await;
    let mut raw = Raw::connect(running.gateway.local_addr()).await;
    let mut pinged = false;
    let gone = async {
        while let Some(frame) = raw.frame().await {
            pinged |= frame.kind == PING;
        }
    };
    timeout(CAP, gone).await.unwrap();
    assert!(pinged);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn a_connection_above_the_limit_waits_for_one_to_end() {
    let running = start("max_connections = 1").await;
    let mut fleet = FleetServiceClient::new(running.channel.clone());
    let mut waiting = Raw::connect(running.gateway.local_addr()).await;
    let meanwhile = async {
        for _ in 0..10 {
            fleet.get_gateway(pb::GetGatewayRequest {}).await.unwrap();
        }
    };
    tokio::select! {
        biased;
        _frame = waiting.frame() => panic!("served although another is"),
        () = meanwhile => {}
    }
    drop((fleet, running.channel));
    assert!(
        waiting.setting(3).await.is_some(),
        "served once the other has gone"
    );
    drop(waiting);
    running.gateway.shutdown().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_kernel_probes_an_idle_connection_when_it_is_told_to() {
    let running = start("tcp_keepalive = \"7s\"").await;
    let mut raw = Raw::connect(running.gateway.local_addr()).await;
    raw.setting(3).await;
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let server = port(running.gateway.local_addr());
    let client = port(raw.0.local_addr().unwrap());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let socket = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|socket| socket[1].ends_with(&server) && socket[2].ends_with(&client))
        .unwrap();
    // The timer that runs, and the hundredths of a second that it has left.
    let (timer, left) = socket[5].split_once(':').unwrap();
    assert_eq!(timer, "02", "the keepalive timer");
    assert!(u32::from_str_radix(left, 16).unwrap() <= 700, "{left}");
    drop(raw);
    running.gateway.shutdown().await;
}

#[tokio::test]
async fn as_many_commands_wait_for_a_phone_as_is_set() {
    let running = start_with("[lane]\ncapacity = 1", stuck(), 1.0).await;
    let mut fleet = FleetServiceClient::new(running.channel.clone());
    let automation = AutomationServiceClient::new(running.channel.clone());
    let mut calls = JoinSet::new();
    for (id, in_flight, queued) in [("c-1", true, 0), ("c-2", true, 1)] {
        let mut automation = automation.clone();
        calls.spawn(async move { automation.tap(tap("left", id)).await });
        loop {
            let request = pb::GetDeviceRequest {
                device: "left".to_owned(),
            };
            let device = fleet
                .get_device(request)
                .await
                .unwrap()
                .into_inner()
                .device
                .unwrap();
            if (device.command_in_flight.is_some(), device.queued_commands) == (in_flight, queued) {
                assert_eq!(device.command_in_flight.as_deref(), Some("c-1"));
                break;
            }
        }
    }
    let status = automation
        .clone()
        .tap(tap("left", "c-3"))
        .await
        .unwrap_err();
    assert_eq!(
        reason(&status),
        (Code::ResourceExhausted, "LANE_FULL".to_owned())
    );

    running.gateway.shutdown().await;
    while let Some(call) = calls.join_next().await {
        let status = call.unwrap().unwrap_err();
        assert_eq!(
            reason(&status),
            (Code::Unavailable, "GATEWAY_DRAINING".to_owned())
        );
    }
}

#[tokio::test]
async fn usbmuxd_is_looked_for_where_it_is_set() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("mux");
    let usbmuxd = UnixListener::bind(&socket).unwrap();
    let ledger = directory.path().join("ledger.db");
    let variables = [
        ("FLEETGATE_SERVER__LISTEN", "127.0.0.1:0".to_owned()),
        ("FLEETGATE_USBMUXD__ADDRESS", socket.display().to_string()),
        ("FLEETGATE_LEDGER__PATH", ledger.display().to_string()),
        ("FLEETGATE_AUTH__DISCOVERY", "false".to_owned()),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value));
    let config = Config::load_with(None, variables).unwrap();
    let gateway = Gateway::start(config, Overrides::default()).await.unwrap();
    timeout(CAP, usbmuxd.accept()).await.unwrap().unwrap();
    assert!(ledger.exists(), "and the ledger is where it is set");
    gateway.shutdown().await;
}
