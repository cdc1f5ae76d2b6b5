//! The crate on real sockets, in a process of its own: its descriptors are
//! counted.

use std::sync::Arc;

use fleetgate_device::{Address, Dialer, HostConfig, Hosts, RunnerExchange, Stream, UsbmuxdConfig};
use fleetgate_runner::{Clearance, Command, DeviceCommand, Exchange, Request, Sent, Udid};
use fleetgate_usbmux::{
    ConnectionType, Decoder, Event, MuxDeviceId, Phone, Reply, Request as Asked,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

const ALICE: &str = "00008110-000978540290401E";

/// How many descriptors this process has open.
fn descriptors() -> std::io::Result<usize> {
    Ok(std::fs::read_dir("/dev/fd")?.count())
}

/// What the runner on the other end of a connection does with a request.
enum Runner {
    Answers,
    /// It says to the test that it has one, and nothing to its client.
    IsSilent(Arc<Notify>),
}

/// One connection of a usbmuxd with one phone.
async fn serve(
    mut stream: impl Stream,
    runner: Runner,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut decoder = Decoder::new();
    let packet = loop {
        if let Some(packet) = decoder.next_packet()? {
            break packet;
        }
        if stream.read_buf(decoder.input()).await? == 0 {
            return Ok(());
        }
    };
    stream
        .write_all(&Reply::Result(0.into()).encode(packet.header.tag)?)
        .await?;
    if Asked::decode(&packet)? == Asked::Listen {
        let phone = Phone {
            device: MuxDeviceId(1),
            connection: ConnectionType::Usb,
            serial: ALICE.to_owned(),
            product: None,
            location: None,
            speed: None,
        };
        stream.write_all(&Event::Attached(phone).encode()?).await?;
    } else {
        // A runner may answer as soon as it has read something.
        stream.read_u8().await?;
        match runner {
            Runner::Answers => {
                let body = r#"{"ok":true,"data":{"message":"shutting down"}}"#;
                let length = body.len();
                let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
                stream.write_all(reply.as_bytes()).await?;
            }
            Runner::IsSilent(asked) => asked.notify_one(),
        }
    }
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await?;
    Ok(())
}

fn shutdown() -> Exchange {
    Exchange {
        request: Request {
            command_id: None,
            command: Command::Device(DeviceCommand::Shutdown),
        },
        clearance: Clearance::granted(),
        sent: Sent::default(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanges_over_sockets_work_and_give_their_descriptors_back_even_when_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("usbmuxd");
    let unix = UnixListener::bind(&path).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let tcp_address = Address::Tcp(tcp.local_addr().unwrap().to_string());
    let baseline = descriptors().unwrap();

    for address in [Address::Unix(path), tcp_address] {
        let (hosts, task) = Hosts::spawn(vec![HostConfig {
            name: "local".into(),
            dialer: Dialer::to(address.clone()),
            usbmuxd: UsbmuxdConfig::default(),
        }]);
        let mut served = JoinSet::new();
        let asked = Arc::new(Notify::new());
        // One listens, and of twenty exchanges every other is answered.
        let accept = async {
            for number in 0..21 {
                let runner = if number % 2 == 0 {
                    Runner::Answers
                } else {
                    Runner::IsSilent(Arc::clone(&asked))
                };
                match &address {
                    Address::Unix(_) => {
                        let (stream, _) = unix.accept().await.unwrap();
                        served.spawn(serve(stream, runner));
                    }
                    Address::Tcp(_) => {
                        let (stream, _) = tcp.accept().await.unwrap();
                        served.spawn(serve(stream, runner));
                    }
                }
            }
        };
        let exchange = async {
            let device: Udid = ALICE.parse().unwrap();
            let port = watch::Sender::new(Some(8100));
            let runner = RunnerExchange::new(hosts.clone(), device.clone(), port.subscribe());
            let mut view = hosts.view();
            view.wait_for(|view| view.is_reachable(&device))
                .await
                .unwrap();
            for number in 1..21 {
                let (exchange, runner) = (shutdown(), runner.clone());
                if number % 2 == 0 {
                    let envelope = runner.oneshot(exchange).await.unwrap();
                    assert!(envelope.result.is_ok(), "{envelope:?}");
                } else {
                    tokio::select! {
                        outcome = runner.oneshot(exchange) => panic!("{outcome:?}"),
                        () = asked.notified() => {}
                    }
                }
            }
        };
        tokio::join!(accept, exchange);
        task.shutdown().await;
        // Every connection of the daemon ends once its other end is closed.
        while let Some(outcome) = served.join_next().await {
            outcome.unwrap().unwrap();
        }
        assert_eq!(descriptors().unwrap(), baseline, "{address}");
    }
}
